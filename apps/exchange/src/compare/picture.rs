//! A comparison as a picture: for each phase a dot for each home, at its time to that of the list by hand
//! (design/exchange.md `.compare.picture`).

use svg::Document;
use svg::node::element::{Circle, Group, Line, Text};

use super::entrants::Entrant;
use super::tables::{Comparison, Row, Table};

/// Panels beside each other.
const ACROSS: usize = 3;

/// Sizes in pixels: the names of homes, a panel, the room between two, a row, what is above the first row and below the
/// last.
const NAMES: f64 = 120.0;
const PANEL: f64 = 200.0;
const GAP: f64 = 20.0;
const ROW: f64 = 16.0;
const ABOVE: f64 = 34.0;
const BELOW: f64 = 30.0;

/// Ratios that have a line, if they are in sight.
const TICKS: [f64; 9] = [0.25, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 5.0, 10.0];

/// Readable on white and on black.
const INK: &str = "#808080";

/// Blue, orange and green, which people who see few colours can tell apart.
const fn colour(entrant: Entrant) -> &'static str {
    match entrant {
        Entrant::Hand | Entrant::HandTouched | Entrant::HandHuge | Entrant::Known => "#009e73",
        Entrant::Pools
        | Entrant::PoolsPrefault
        | Entrant::PoolsHuge
        | Entrant::PoolsTrimmed
        | Entrant::Point
        | Entrant::Owned => "#0072b2",
        _ => "#d55e00",
    }
}

/// What all panels have: ratios from left to right, by their logarithms.
struct Scale {
    least: f64,
    most: f64,
}

impl Scale {
    /// All ratios that a comparison has, and 1.
    fn of(tables: &[Table]) -> Self {
        let rows = || tables.iter().flat_map(|table| &table.rows).map(ends);
        Self {
            least: rows().map(|(least, _)| least).fold(0.7, f64::min) / 1.05,
            most: rows().map(|(_, most)| most).fold(1.5, f64::max) * 1.05,
        }
    }

    /// Where a ratio is in a panel.
    fn x(&self, ratio: f64) -> f64 {
        (ratio / self.least).ln() / (self.most / self.least).ln() * PANEL
    }
}

/// The least and the greatest ratio of a row.
fn ends(row: &Row) -> (f64, f64) {
    row.spread.unwrap_or((row.ratio, row.ratio))
}

fn text(content: &str, x: f64, y: f64, anchor: &str) -> Text {
    Text::new(content).set("x", x).set("y", y).set("text-anchor", anchor).set("fill", INK)
}

fn line(from: (f64, f64), to: (f64, f64), colour: &str, width: f64) -> Line {
    Line::new()
        .set("x1", from.0)
        .set("y1", from.1)
        .set("x2", to.0)
        .set("y2", to.1)
        .set("stroke", colour)
        .set("stroke-width", width)
}

/// A phase.
fn panel(table: &Table, scale: &Scale, has_names: bool) -> Group {
    let height = ROW * table.rows.len() as f64;
    let mut group = Group::new().add(text(table.phase.name(), PANEL / 2.0, -14.0, "middle"));
    for tick in TICKS.into_iter().filter(|&tick| tick > scale.least && tick < scale.most) {
        let x = scale.x(tick);
        let width = if tick == 1.0 { 1.0 } else { 0.25 };
        group = group.add(line((x, -6.0), (x, height), INK, width));
        group = group.add(text(&tick.to_string(), x, height + 13.0, "middle"));
    }
    for (at, row) in table.rows.iter().enumerate() {
        let (y, colour) = (ROW * (at as f64 + 0.5), colour(row.entrant));
        let (least, most) = ends(row);
        if has_names {
            group = group.add(text(&row.entrant.to_string(), -10.0, y + 4.0, "end"));
        }
        if !row.ratio.is_finite() {
            continue;
        }
        group = group
            .add(line((scale.x(least), y), (scale.x(most), y), colour, 2.0))
            .add(Circle::new().set("cx", scale.x(row.ratio)).set("cy", y).set("r", 4.0).set("fill", colour));
    }
    group
}

impl Comparison {
    /// The comparison as an SVG.
    pub fn svg(&self) -> String {
        let scale = Scale::of(&self.tables);
        let homes = self.tables.first().map_or(0, |table| table.rows.len());
        let height = ABOVE + ROW * homes as f64 + BELOW;
        let across = self.tables.len().clamp(1, ACROSS);
        let lines = self.tables.len().div_ceil(across);
        let size = (NAMES + (PANEL + GAP) * across as f64, 24.0 + height * lines as f64);
        let title = format!(
            "time of a message, to that of the list by hand: {} orders live; green by hand, blue pools, orange others",
            crate::report::Commas(self.live as u64)
        );
        let mut document = Document::new()
            .set("viewBox", (0, 0, size.0, size.1))
            .set("font-family", "sans-serif")
            .set("font-size", 11)
            .add(text(&title, 10.0, 16.0, "start"));
        for (at, table) in self.tables.iter().enumerate() {
            let x = NAMES + (PANEL + GAP) * (at % across) as f64;
            let y = 24.0 + ABOVE + height * (at / across) as f64;
            let place = format!("translate({x} {y})");
            document = document.add(panel(table, &scale, at % across == 0).set("transform", place));
        }
        document.to_string()
    }
}
