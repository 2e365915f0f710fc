//! The title, the charts and the notes of a picture, one below the other.

use plotters::prelude::{IntoDrawingArea as _, SVGBackend, Text};

use super::canvas::{Area, Drawn, Style};
use super::chart;
use super::picture::Picture;
use super::text::fitted;
use super::theme::Theme;

/// How large a picture is, in pixels, and what it is read on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Page {
    pub(crate) width: u32,
    pub(crate) height: u32,
    pub(crate) theme: Theme,
}

/// The margin on all sides, in pixels.
const MARGIN: i32 = 14;

/// The most notes; the rest is a number.
const NOTES: usize = 4;

/// The picture as SVG. Thin it before.
pub(super) fn svg(picture: &Picture, page: &Page) -> Drawn<String> {
    let mut svg = String::new();
    {
        let all = SVGBackend::with_string(&mut svg, (page.width, page.height)).into_drawing_area();
        let style = Style { theme: page.theme };
        all.fill(&page.theme.background())?;
        let inside = all.margin(MARGIN, MARGIN, MARGIN, MARGIN);
        let below = head(&inside, picture, &style)?;
        let mut rest = foot(&below, picture, &style)?;
        let heights: Vec<_> = picture.charts.iter().map(|chart| f64::from(chart.height())).collect();
        for (number, chart) in picture.charts.iter().enumerate() {
            let share = heights[number] / heights[number..].iter().sum::<f64>();
            let (part, below) = rest.split_vertically(share * f64::from(rest.dim_in_pixel().1));
            chart::draw(chart, &part, &style)?;
            rest = below;
        }
        all.present()?;
    }
    Ok(svg)
}

/// Draws the title, and returns what is below it.
fn head<'s>(area: &Area<'s>, picture: &Picture, style: &Style) -> Drawn<Area<'s>> {
    let (head, below) = area.split_vertically(46);
    let room = head.dim_in_pixel().0 as i32;
    let title = style.text(18, style.theme.text());
    head.draw(&Text::new(fitted(&picture.title, 18, room), (0, 10), title))?;
    let about = style.text(12, style.theme.faint());
    head.draw(&Text::new(fitted(&picture.about, 12, room), (0, 31), about))?;
    Ok(below)
}

/// Draws the notes at the bottom, and returns what is above them.
fn foot<'s>(area: &Area<'s>, picture: &Picture, style: &Style) -> Drawn<Area<'s>> {
    let mut notes: Vec<String> = picture.notes.iter().take(NOTES).cloned().collect();
    if picture.notes.len() > NOTES {
        notes.push(format!("and {} notes more", picture.notes.len() - NOTES));
    }
    let (width, height) = area.dim_in_pixel();
    let (above, foot) = area.split_vertically(height as i32 - 16 * notes.len() as i32);
    for (row, note) in notes.iter().enumerate() {
        let text = style.text(11, style.theme.faint());
        foot.draw(&Text::new(fitted(note, 11, width as i32), (0, 16 * row as i32 + 9), text))?;
    }
    Ok(above)
}
