//! Pictures of numbers: lines, stacked areas, bars and blocks, as SVG or PNG, light or dark
//! ([design/cli.md `.plot`](crate::design::cli)).
//!
//! ```text
//! picture.rs   what a picture shows; the part that subcommands make
//! unit.rs      bytes, times, counts: their numbers as people read them
//! ticks.rs     the marks of an axis
//! thin.rs      fewer points with the same peaks
//! theme.rs     light and dark: colours that everyone can tell apart
//! text.rs      texts that fit
//! canvas.rs    what is drawn on, and how texts look there
//! legend.rs    the names of the colours
//! chart.rs     one pair of axes and what is between them
//! page.rs      title, charts and notes, one below the other
//! file.rs      SVG and PNG files
//! ```

mod canvas;
mod chart;
mod file;
mod legend;
mod page;
mod picture;
mod text;
mod theme;
mod thin;
mod ticks;
mod unit;

pub(crate) use file::{Form, svg, write};
pub(crate) use page::Page;
pub(crate) use picture::{Axis, Block, Chart, Content, Group, Layer, Moment, Picture, Series};
pub(crate) use text::plain;
pub(crate) use theme::Theme;
pub(crate) use unit::Unit;
