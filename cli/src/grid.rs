//! Tables that are shown as text or in a terminal.

use core::cmp::Ordering;
use core::fmt::Display;
use std::io::{self, Write};

use comfy_table::{CellAlignment, Table, presets};

/// A table whose first columns are texts and whose other columns are numbers.
#[derive(Clone, Debug)]
pub(crate) struct Grid {
    pub(crate) title: &'static str,
    /// The title of each column.
    pub(crate) columns: &'static [&'static str],
    /// How many columns are texts.
    pub(crate) texts: usize,
    pub(crate) rows: Vec<Row>,
}

#[derive(Clone, Debug)]
pub(crate) struct Row {
    texts: Vec<String>,
    /// There may be fewer than the table has columns for.
    numbers: Vec<u64>,
}

impl Row {
    /// The text of each column.
    pub(crate) fn cells(&self) -> impl Iterator<Item = String> {
        self.texts.iter().cloned().chain(self.numbers.iter().map(u64::to_string))
    }

    /// The numbers, which follow the texts.
    pub(crate) fn numbers(&self) -> &[u64] {
        &self.numbers
    }

    /// Numbers are compared with the greatest first.
    fn compare(&self, other: &Self, column: usize) -> Ordering {
        match (self.texts.get(column), other.texts.get(column)) {
            (Some(one), Some(other)) => one.cmp(other),
            _ => {
                let number = |row: &Self| row.numbers.get(column - row.texts.len()).copied();
                number(other).cmp(&number(self))
            }
        }
    }
}

impl Grid {
    pub(crate) fn new(title: &'static str, texts: usize, columns: &'static [&'static str]) -> Self {
        Self { title, columns, texts, rows: Vec::new() }
    }

    pub(crate) fn add(&mut self, texts: &[&dyn Display], numbers: &[u64]) {
        let texts = texts.iter().map(|text| text.to_string()).collect();
        self.rows.push(Row { texts, numbers: numbers.to_vec() });
    }

    /// Sorts by a column, the greatest number first; the other way round if it is reversed.
    pub(crate) fn sort(&mut self, column: usize, reversed: bool) {
        self.rows.sort_by(|one, other| {
            let order = one.compare(other, column);
            if reversed { order.reverse() } else { order }
        });
    }

    /// Writes the table, after an empty line, unless it has no rows.
    pub(crate) fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        if self.rows.is_empty() {
            return Ok(());
        }
        let mut table = Table::new();
        table.load_style(presets::NOTHING).set_header(self.columns);
        table.add_rows(self.rows.iter().map(Row::cells));
        for column in table.column_iter_mut().skip(self.texts) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        writeln!(out, "\n{}", self.title)?;
        table.lines().try_for_each(|line| writeln!(out, " {}", line.trim_end()))
    }
}
