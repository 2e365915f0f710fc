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
