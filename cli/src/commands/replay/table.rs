//! Tables of a comparison, each with what its columns mean.

use std::io::{self, Write};

use crate::plotting::Unit;
use crate::trace::replay::Row;

/// What a column has.
pub(crate) struct Column {
    /// With the unit, or what the cells' units are of.
    pub(crate) heading: &'static str,
    pub(crate) meaning: &'static str,
}

/// A table whose first column has names, and whose other columns have numbers with their units.
pub(crate) struct Table {
    pub(crate) title: &'static str,
    pub(crate) columns: &'static [Column],
    pub(crate) rows: Vec<Vec<String>>,
}

const fn column(heading: &'static str, meaning: &'static str) -> Column {
    Column { heading, meaning }
}

const NAME: Column = column("allocator", "the contender; `none` is a replay without an allocator");

const MEANS: &[Column] = &[
    NAME,
    column("first (time)", "the mean time of an operation in a new process, as the median of the rounds"),
    column("rounds (time)", "the least and the most of the rounds"),
    column("net (time)", "the median, less that of `none`"),
    column(
        "warm (time)",
        "the same when the process replays the trace again, and finds the memory of the first replay",
    ),
    column("warm rounds (time)", "the least and the most of the rounds"),
    column("warm net (time)", "the median, less that of `none`"),
];

const SINGLE: &[Column] = &[
    NAME,
    column("p50 (time)", "half of all operations took no longer, with reading the clock, which `none` shows"),
    column("p90 (time)", "90 of 100 operations took no longer"),
    column("p99 (time)", "99 of 100"),
    column("p99.9 (time)", "999 of 1,000"),
    column("p99.99 (time)", "9,999 of 10,000"),
    column("longest (time)", "the longest operation"),
];

const MEMORY: &[Column] = &[
    NAME,
    column("peak (bytes)", "resident bytes when the most were live, less those before the replay"),
    column("peak (× live)", "the same, over the bytes that were live then"),
    column(
        "mean (× live)",
        "resident over live bytes, both as means over the replay: fragmentation over time",
    ),
    column("end (× live)", "resident bytes at the end, over the most bytes that were live"),
    column("faults (count)", "page faults"),
    column("growth (bytes)", "what the arena of a pool committed"),
    column("fills (count)", "allocations that the cache of a thread could not serve by itself"),
    column("wrong (count)", "operations after which bytes had changed, and requests that were refused"),
];

/// What all columns mean, as it is in the help.
pub(crate) fn legends() -> String {
    let legend = |(title, columns): (&str, &[Column])| format!("{title}:\n{}", legend(columns));
    [(MEANS_TITLE, MEANS), (SINGLE_TITLE, SINGLE), (MEMORY_TITLE, MEMORY)].map(legend).join("\n")
}

const MEANS_TITLE: &str = "Mean time of an operation";
const SINGLE_TITLE: &str = "Time of single operations";
const MEMORY_TITLE: &str = "Memory";

/// A line for each column that is not the name.
fn legend(columns: &[Column]) -> String {
    let line = |column: &Column| format!("  {:<18}  {}\n", column.heading, column.meaning);
    columns[1..].iter().map(line).collect()
}

/// The tables of rows, if the most bytes that were live are that many. Times are left out if they were not measured.
pub(crate) fn tables(rows: &[Row], peak_live: u64) -> Vec<Table> {
    let of = |title, columns, cells: &dyn Fn(&Row) -> Option<Vec<String>>| {
        let rows = rows.iter().filter_map(|row| {
            let mut all = vec![row.name.clone()];
            all.extend(cells(row)?);
            Some(all)
        });
        Table { title, columns, rows: rows.collect() }
    };
    let mut tables = vec![
        of(MEANS_TITLE, MEANS, &means),
        of(SINGLE_TITLE, SINGLE, &single),
        of(MEMORY_TITLE, MEMORY, &|row: &Row| memory(row, peak_live)),
    ];
    tables.retain(|table| !table.rows.is_empty());
    tables
}

fn time(ns: f64) -> String {
    Unit::Nanoseconds.brief(ns)
}

fn means(row: &Row) -> Option<Vec<String>> {
    let (first, warm) = row.outcome.mean.zip(row.outcome.warm)?;
    let net = |net: Option<f64>| net.filter(|_| row.is_allocator()).map(time).unwrap_or_default();
    Some(vec![
        time(first),
        span(&row.rounds),
        net(row.net),
        time(warm),
        span(&row.rounds_warm),
        net(row.net_warm),
    ])
}

/// The least and the most of several rounds; of one there is nothing to say.
fn span(rounds: &[f64]) -> String {
    match bounds(rounds) {
        Some((least, most)) if rounds.len() > 1 => format!("{} to {}", time(least), time(most)),
        _ => String::new(),
    }
}

/// The least and the most of some times.
pub(super) fn bounds(times: &[f64]) -> Option<(f64, f64)> {
    let least = times.iter().copied().reduce(f64::min)?;
    Some((least, times.iter().copied().fold(least, f64::max)))
}

fn single(row: &Row) -> Option<Vec<String>> {
    Some(row.outcome.percentiles?.iter().map(|ns| time(*ns as f64)).collect())
}

fn memory(row: &Row, peak_live: u64) -> Option<Vec<String>> {
    if !row.is_allocator() {
        return None;
    }
    let outcome = &row.outcome;
    let shown =
        |unit: Unit, number: Option<u64>| number.map(|number| unit.brief(number as f64)).unwrap_or_default();
    let share = |share: Option<f64>| share.map(|share| format!("{share:.2}")).unwrap_or_default();
    let of_live =
        |bytes: Option<i64>| share(bytes.map(|bytes| bytes.max(0) as f64 / peak_live.max(1) as f64));
    Some(vec![
        shown(Unit::Bytes, outcome.at_peak.map(|bytes| bytes.max(0).unsigned_abs())),
        of_live(outcome.at_peak),
        share(outcome.mean_share()),
        of_live(outcome.at_end),
        shown(Unit::Count, outcome.faults),
        shown(Unit::Bytes, outcome.growth.filter(|_| outcome.faults.is_some())),
        shown(Unit::Count, outcome.fills),
        shown(Unit::Count, Some(outcome.differences + outcome.refused)),
    ])
}

impl Table {
    /// Writes it as Markdown, and what its columns mean below it.
    pub(crate) fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let headings = self.columns.iter().map(|column| column.heading.to_owned()).collect();
        let lines: Vec<Vec<String>> = core::iter::once(headings).chain(self.rows.iter().cloned()).collect();
        let width = |index: usize| lines.iter().map(|line| line[index].chars().count()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..self.columns.len()).map(width).collect();
        writeln!(out, "\n{}\n", self.title)?;
        for (number, line) in lines.iter().enumerate() {
            let cell = |(index, cell): (usize, &String)| match index {
                0 => format!(" {cell:<0$} |", widths[0]),
                _ => format!(" {cell:>0$} |", widths[index]),
            };
            writeln!(out, "|{}", line.iter().enumerate().map(cell).collect::<String>())?;
            if number == 0 {
                let rule = |(index, width): (usize, &usize)| match index {
                    0 => format!("{:-<1$}|", "", width + 2),
                    _ => format!("{:-<1$}:|", "", width + 1),
                };
                writeln!(out, "|{}", widths.iter().enumerate().map(rule).collect::<String>())?;
            }
        }
        write!(out, "\n{}", legend(self.columns))
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::trace::replay::Outcome;

    /// A contender whose rounds took these times, and whose second replays took half of them.
    pub(crate) fn row(name: &str, rounds: &[f64], none: f64) -> Row {
        let outcome = Outcome {
            mean: Some(rounds[0]),
            warm: Some(rounds[0] / 2.0),
            percentiles: Some([5, 16, 999, 1_000, 12_000_000, 2_000_000_000]),
            at_peak: Some(320_077_823),
            at_end: Some(-7),
            faults: Some(6_915),
            growth: Some(1 << 20),
            ..Outcome::default()
        };
        Row {
            name: name.to_owned(),
            net: Some((rounds[0] - none).max(0.0)),
            net_warm: Some((rounds[0] / 2.0 - none / 2.0).max(0.0)),
            rounds: rounds.to_vec(),
            rounds_warm: rounds.iter().map(|round| round / 2.0).collect(),
            outcome,
        }
    }

    fn written(table: &Table) -> String {
        let mut text = Vec::new();
        table.write(&mut text).unwrap();
        String::from_utf8(text).unwrap()
    }

    #[test]
    fn numbers_are_scaled_and_have_units_and_every_column_is_explained() {
        let rows = [row("tlsf", &[24_863.0, 20_000.0, 30_000.5], 3.0), row("none", &[3.0, 2.5, 4.0], 3.0)];
        let tables = tables(&rows, 160_038_912);
        let [means, single, memory] = &tables[..] else { panic!("{} tables", tables.len()) };
        let expected =
            ["tlsf", "24.9 µs", "20.0 µs to 30.0 µs", "24.9 µs", "12.4 µs", "10.0 µs to 15.0 µs", "12.4 µs"];
        assert_eq!(means.rows[0], expected);
        assert_eq!(means.rows[1][3], "", "nothing is taken from `none`");
        assert_eq!(single.rows[0][1..], ["5 ns", "16 ns", "999 ns", "1.0 µs", "12.0 ms", "2.0 s"]);
        assert_eq!(memory.rows.len(), 1, "`none` has no memory");
        assert_eq!(memory.rows[0][1..], ["305.2 MiB", "2.00", "", "0.00", "6915", "1.0 MiB", "", "0"]);
        for table in &tables {
            let text = written(table);
            let lines: Vec<&str> = text.lines().filter(|line| line.starts_with('|')).collect();
            let widths: Vec<_> = lines.iter().map(|line| line.chars().count()).collect();
            assert!(
                lines.len() == table.rows.len() + 2 && widths.iter().all(|wide| *wide == widths[0]),
                "{text}"
            );
            for column in &table.columns[1..] {
                assert!(column.heading.ends_with(')'), "{} has no unit", column.heading);
                assert!(text.contains(&format!("  {:<18}  {}\n", column.heading, column.meaning)), "{text}");
                assert!(legends().contains(column.meaning), "{}", column.heading);
            }
        }
    }

    #[test]
    fn what_was_not_measured_is_no_table_and_one_round_has_no_span() {
        let unmeasured =
            Outcome { percentiles: None, mean: None, warm: None, ..row("mfs", &[1.0], 0.0).outcome };
        let rows = [Row { outcome: unmeasured, ..row("mfs", &[1.0], 0.0) }];
        let titles: Vec<_> = tables(&rows, 1).iter().map(|table| table.title).collect();
        assert_eq!(titles, [MEMORY_TITLE]);
        assert_eq!(means(&row("mfs", &[7.0], 1.0)).unwrap()[1], "");
    }
}
