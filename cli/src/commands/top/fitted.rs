//! A table that is fitted to the width of the screen (design/cli.md `.top.narrow`).

use crate::grid::Grid;

/// Characters between two columns.
pub(super) const SPACING: usize = 2;

/// The fewest characters of a text.
const NARROWEST: usize = 8;

/// What there is room for.
pub(super) struct Fitted {
    /// The indices of the columns that are shown, and their widths.
    pub(super) columns: Vec<(usize, usize)>,
    /// The cells of each row, those of columns that are not shown included.
    pub(super) rows: Vec<Vec<String>>,
}

impl Fitted {
    /// As much as there is room for. A number is never cut off: first numbers are scaled, then the widest texts are
    /// made narrower, down to a few characters each, and then the last columns are left out; the first column stays.
    pub(super) fn new(grid: &Grid, room: usize) -> Self {
        let count = grid.columns.len();
        let mut rows: Vec<Vec<String>> = grid.rows.iter().map(|row| row.cells().collect()).collect();
        let mut widths = widths(grid, &rows);
        if needed(&widths) > room {
            for (row, cells) in grid.rows.iter().zip(&mut rows) {
                let scaled = row.numbers().iter().map(|number| scaled(*number));
                cells.iter_mut().skip(grid.texts).zip(scaled).for_each(|(cell, scaled)| *cell = scaled);
            }
            widths = self::widths(grid, &rows);
        }
        let mut shown = count;
        loop {
            let least = widths[..shown].iter().enumerate().map(|(column, width)| match column < grid.texts {
                true => NARROWEST.min(*width),
                false => *width,
            });
            if needed(&least.collect::<Vec<_>>()) <= room || shown <= 1 {
                break;
            }
            shown -= 1;
        }
        widths.truncate(shown);
        shrink(&mut widths, grid.texts.min(shown), room);
        Self { columns: widths.into_iter().enumerate().collect(), rows }
    }
}

/// The characters that columns need.
fn needed(widths: &[usize]) -> usize {
    widths.iter().sum::<usize>() + SPACING * widths.len().saturating_sub(1)
}

/// The longest cell of each column.
fn widths(grid: &Grid, rows: &[Vec<String>]) -> Vec<usize> {
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count());
        cells.chain([grid.columns[column].chars().count()]).max().unwrap_or(0)
    };
    (0..grid.columns.len()).map(width).collect()
}

/// Makes the widest texts narrower until all columns have room.
fn shrink(widths: &mut [usize], texts: usize, room: usize) {
    while needed(widths) > room {
        match widths[..texts].iter_mut().max() {
            Some(widest) if *widest > NARROWEST => *widest -= 1,
            _ => break,
        }
    }
}

/// A number with its two leading digits at least, as `1.9 M`; never more than it is.
fn scaled(number: u64) -> String {
    const UNITS: [(u64, char); 6] = [
        (1_000_000_000_000_000_000, 'E'),
        (1_000_000_000_000_000, 'P'),
        (1_000_000_000_000, 'T'),
        (1_000_000_000, 'G'),
        (1_000_000, 'M'),
        (1_000, 'k'),
    ];
    if number < 10_000 {
        return number.to_string();
    }
    let Some((unit, letter)) = UNITS.into_iter().find(|(unit, _)| number >= *unit) else {
        return number.to_string();
    };
    match number / unit {
        whole @ 0..10 => format!("{whole}.{} {letter}", number % unit / (unit / 10)),
        whole => format!("{whole} {letter}"),
    }
}

#[cfg(test)]
mod tests;
