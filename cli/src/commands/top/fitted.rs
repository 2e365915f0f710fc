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
mod tests {
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    use super::super::screen::table;
    use super::*;

    /// Two pools of an order book.
    fn pools() -> Grid {
        let columns =
            &["", "class", "arena", "pool", "held", "noted", "noted free", "fills", "filled", "emptied"];
        let mut grid = Grid::new("pools (bytes)", 2, columns);
        grid.add(&[&"", &"MFS"], &[1, 2, 1_900_544, 1_900_544, 1_588_776, 0, 0, 0]);
        grid.add(&[&"gone", &"MVFF"], &[1, 4, 2_555_904, 2_555_904, 39_328, 12_345, 2_516_576, 1_125_248]);
        grid
    }

    fn violations() -> Grid {
        let columns = &["thread", "kind", "class", "site", "count", "bytes"];
        let mut grid = Grid::new("violations", 4, columns);
        let site = "order_book::inject::inject_alloc at apps/order-book/src/inject.rs:103";
        grid.add(&[&"hot", &"violation", &"alloc", &site], &[4_595_712, 8]);
        grid
    }

    /// The lines of a screen this wide.
    fn screen(grid: &Grid, width: u16) -> String {
        let mut terminal = Terminal::new(TestBackend::new(width, grid.rows.len() as u16 + 1)).unwrap();
        let shown = table(grid, None, usize::from(width));
        terminal.draw(|frame| frame.render_widget(shown, frame.area())).unwrap();
        let buffer = terminal.backend().buffer();
        let cells: Vec<_> = buffer.content.iter().map(|cell| cell.symbol()).collect();
        cells.chunks(usize::from(width)).map(|line| format!("{}\n", line.concat().trim_end())).collect()
    }

    #[test]
    fn screens_have_whole_numbers_however_narrow_they_are() {
        for (grid, width, expected) in [
            (
                pools(),
                120,
                "
      class  arena  pool     held    noted  noted free  fills   filled  emptied
      MFS        1     2  1900544  1900544     1588776      0        0        0
gone  MVFF       1     4  2555904  2555904       39328  12345  2516576  1125248
",
            ),
            (
                pools(),
                60,
                "
      class  arena  pool   held  noted  noted free  fills
      MFS        1     2  1.9 M  1.9 M       1.5 M      0
gone  MVFF       1     4  2.5 M  2.5 M        39 k   12 k
",
            ),
            (
                pools(),
                40,
                "
      class  arena  pool   held  noted
      MFS        1     2  1.9 M  1.9 M
gone  MVFF       1     4  2.5 M  2.5 M
",
            ),
            (
                violations(),
                120,
                "
thread  kind       class  site                                                                     count  bytes
hot     violation  alloc  order_book::inject::inject_alloc at apps/order-book/src/inject.rs:103  4595712      8
",
            ),
            (
                violations(),
                60,
                "
thread  kind       class  site                  count  bytes
hot     violation  alloc  order_book::inject::  4.5 M      8
",
            ),
            (
                violations(),
                40,
                "
thread  kind      class  site      count
hot     violatio  alloc  order_bo  4.5 M
",
            ),
        ] {
            assert_eq!(screen(&grid, width), expected[1..], "{width}:\n{}", screen(&grid, width));
        }
    }

    /// A number is whole, scaled, or not there.
    #[test]
    fn no_width_cuts_a_number() {
        for grid in [pools(), violations()] {
            for width in 1..=130 {
                let fitted = Fitted::new(&grid, width);
                for &(column, width) in fitted.columns.iter().filter(|(column, _)| *column >= grid.texts) {
                    assert!(fitted.rows.iter().all(|row| row[column].chars().count() <= width), "{column}");
                }
                let needed: usize = fitted.columns.iter().map(|(_, width)| width + SPACING).sum();
                assert!(fitted.columns.len() == 1 || needed - SPACING <= width, "{needed} in {width}");
            }
        }
    }

    #[test]
    fn a_scaled_number_is_not_more_than_it_is() {
        for (number, text) in [
            (9_999, "9999"),
            (10_000, "10 k"),
            (999_999, "999 k"),
            (1_999_999, "1.9 M"),
            (12_345_678, "12 M"),
            (2_199_023_255_552, "2.1 T"),
            (u64::MAX, "18 E"),
        ] {
            assert_eq!(scaled(number), text);
        }
    }
}
