//! What charts, legends and pages are drawn on, and how texts look there.

use std::io;

use plotters::coord::Shift;
use plotters::prelude::{DrawingArea, DrawingAreaErrorKind, SVGBackend};
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{Color as _, IntoFont as _, RGBColor, TextStyle};

use super::theme::Theme;

/// A part of a picture that is drawn on.
pub(super) type Area<'s> = DrawingArea<SVGBackend<'s>, Shift>;

pub(super) type Drawn<T = ()> = Result<T, DrawingAreaErrorKind<io::Error>>;

/// How texts look.
pub(super) struct Style {
    pub(super) theme: Theme,
}

impl Style {
    /// A text whose left end has its vertical middle at a point.
    pub(super) fn text(&self, size: u32, colour: RGBColor) -> TextStyle<'static> {
        // The backend takes sizes of a font's box.
        let font = ("sans-serif", f64::from(size) * 1.24).into_font();
        let mut style = TextStyle::from(font).pos(Pos::new(HPos::Left, VPos::Center));
        style.color = colour.to_backend_color();
        style
    }
}
