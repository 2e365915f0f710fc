//! What a comparison comes to, in one line.

use super::table::bounds;
use crate::plotting::Unit;
use crate::trace::replay::{Contender, Row};
use crate::words::counted;

/// Which allocator was fastest, and which needed least memory, if there are several; and whether anything was wrong.
pub(super) fn verdict(rows: &[Row], is_doubtful: bool) -> String {
    let allocators: Vec<&Row> = rows.iter().filter(|row| row.is_allocator()).collect();
    let time = fastest(&allocators).map(|text| match is_doubtful {
        true => format!("{text} (doubtful)"),
        false => text,
    });
    let parts: Vec<String> =
        time.into_iter().chain(smallest(&allocators)).chain([wrong(&allocators)]).collect();
    parts.join("; ")
}

/// By the net time of a warm replay.
fn fastest(rows: &[&Row]) -> Option<String> {
    let mut timed: Vec<(&Row, f64)> = rows.iter().filter_map(|row| Some((*row, row.net_warm?))).collect();
    timed.sort_by(|one, other| one.1.total_cmp(&other.1));
    let [(first, least), (second, _), ..] = timed[..] else { return None };
    let system = Contender::System.name();
    let beside = timed.iter().find(|(row, _)| row.name == system && row.name != first.name);
    let (beside, theirs) = beside.copied().unwrap_or(timed[1]);
    let ratio = if theirs > 0.0 {
        format!(", {:.2}× the time of {}", least / theirs, beside.name)
    } else {
        String::new()
    };
    let time = Unit::Nanoseconds.brief(least);
    let equals = if overlap(first, second) {
        format!(", within the rounds of {}", second.name)
    } else {
        String::new()
    };
    Some(format!("{} is fastest when warm ({time} net{ratio}{equals})", first.name))
}

/// Whether some round of the one that is slower was as fast as one of the other.
fn overlap(faster: &Row, slower: &Row) -> bool {
    let bounds = bounds(&faster.rounds_warm).zip(bounds(&slower.rounds_warm));
    bounds.is_some_and(|((_, most), (least, _))| least <= most)
}

fn smallest(rows: &[&Row]) -> Option<String> {
    let known = rows.iter().filter_map(|row| Some((row, row.outcome.at_peak?.max(0))));
    let (row, bytes) = known.min_by_key(|(_, bytes)| *bytes).filter(|_| rows.len() > 1)?;
    Some(format!("{} takes the least memory at the peak ({})", row.name, Unit::Bytes.brief(bytes as f64)))
}

fn wrong(rows: &[&Row]) -> String {
    let wrong = rows.iter().filter(|row| row.outcome.is_wrong()).map(|row| {
        let outcome = &row.outcome;
        let changed = counted(outcome.differences, "operation");
        format!(
            "{}: bytes had changed after {changed}, {} refused",
            row.name,
            counted(outcome.refused, "request")
        )
    });
    let wrong: Vec<_> = wrong.collect();
    if wrong.is_empty() { "nothing was wrong".to_owned() } else { wrong.join("; ") }
}

#[cfg(test)]
mod tests {
    use super::super::table::tests::row;
    use super::*;

    #[test]
    fn the_fastest_is_beside_the_system_s_and_the_smallest_is_named() {
        let mut rows =
            vec![row("mfs", &[10.0, 11.0], 2.0), row("system", &[18.0, 19.0], 2.0), row("none", &[2.0], 2.0)];
        rows[1].outcome.at_peak = Some(5 << 20);
        let expected = "mfs is fastest when warm (4 ns net, 0.50× the time of system); \
                        system takes the least memory at the peak (5.0 MiB); nothing was wrong";
        assert_eq!(verdict(&rows, false), expected);
        assert!(verdict(&rows, true).contains("system) (doubtful); "));
        rows[0].rounds_warm.push(9.2);
        assert!(verdict(&rows, false).contains("0.50× the time of system, within the rounds of system)"));
        rows[0].outcome.differences = 1;
        rows[0].outcome.refused = 2;
        assert!(
            verdict(&rows, false).ends_with("mfs: bytes had changed after 1 operation, 2 requests refused")
        );
        // One alone is neither fastest nor smallest.
        assert_eq!(verdict(&[row("mfs", &[1.0], 0.5), row("none", &[0.5], 0.5)], false), "nothing was wrong");
    }
}
