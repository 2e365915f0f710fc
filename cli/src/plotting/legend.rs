//! The names of the colours, in rows from left to right.

use plotters::prelude::{Rectangle, Text};
use plotters::style::Color as _;

use super::canvas::{Area, Drawn, Style};
use super::text::{fitted, width};
use super::theme::Theme;

/// The size of its texts, in pixels.
const SIZE: u32 = 12;

/// How high a row is, in pixels.
const ROW: i32 = 18;

/// The widest name, in pixels.
const WIDEST: i32 = 260;

/// Names with their places.
pub(super) struct Legend {
    /// The name, the number of its colour, and the left upper corner of that.
    places: Vec<(String, usize, (i32, i32))>,
    pub(super) height: i32,
}

impl Legend {
    /// Lays out the names in this many pixels.
    pub(super) fn new(names: &[(&str, usize)], room: i32) -> Self {
        let (mut x, mut y) = (0, 0);
        let mut places = Vec::new();
        for (name, colour) in names {
            let name = fitted(name, SIZE, WIDEST.min(room - 30));
            let wide = width(&name, SIZE) + 30;
            if x > 0 && x + wide > room {
                (x, y) = (0, y + ROW);
            }
            places.push((name, *colour, (x, y)));
            x += wide;
        }
        let height = if places.is_empty() { 0 } else { y + ROW };
        Self { places, height }
    }

    pub(super) fn draw(&self, area: &Area<'_>, style: &Style) -> Drawn {
        for (name, colour, (x, y)) in &self.places {
            let fill = style.theme.colour(*colour).filled();
            // As a line of this number is drawn.
            let parts: &[(i32, i32)] =
                if Theme::is_dashed(*colour) { &[(0, 5), (8, 13)] } else { &[(0, 12)] };
            for (left, right) in parts {
                area.draw(&Rectangle::new([(x + left, y + 4), (x + right, y + 14)], fill))?;
            }
            let text = style.text(SIZE, style.theme.text());
            area.draw(&Text::new(name.clone(), (x + 18, y + 9), text))?;
        }
        Ok(())
    }
}
