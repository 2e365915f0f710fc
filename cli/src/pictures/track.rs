//! A size over time, of changes and of what is known at moments.

use std::collections::BTreeSet;

/// What was ever taken, and what of it was returned.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Taken {
    pub(super) taken: f64,
    pub(super) returned: f64,
}

/// What is known of a size at a moment.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Mark {
    /// It changed by so much.
    Change(f64),
    /// The program has counted so much since the owner was created.
    Counted(Taken),
    /// It is so much.
    Value(f64),
}

/// A size from a moment on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Known {
    pub(super) ns: u64,
    /// What it is at least.
    pub(super) size: f64,
    /// What it may be more.
    pub(super) unknown: f64,
}

/// A size over time. Between two counts it is exact if the changes that were seen are all that were counted, or if no
/// events were missed there. Otherwise it is exact after the last gap, counted back from the later count; before that it
/// is as much as the changes that were seen leave of it, and what was counted beyond them is not known
/// ([design/cli.md `.plot.track`](crate::design::cli)).
#[derive(Clone, Debug, Default)]
pub(super) struct Track {
    marks: Vec<(u64, Mark)>,
    /// When the owner was created, if that was seen.
    begun: Option<u64>,
}

impl Track {
    /// The owner is created, and has nothing.
    pub(super) fn begin(&mut self, ns: u64) {
        self.begun = Some(ns);
        self.value(ns, 0.0);
    }

    pub(super) fn change(&mut self, ns: u64, by: f64) {
        self.marks.push((ns, Mark::Change(by)));
    }

    pub(super) fn count(&mut self, ns: u64, taken: Taken) {
        self.marks.push((ns, Mark::Counted(taken)));
    }

    pub(super) fn value(&mut self, ns: u64, value: f64) {
        self.marks.push((ns, Mark::Value(value)));
    }

    /// The size after each mark, by time, in a recording that begins at `first` and missed events before each of the
    /// moments `gaps`.
    pub(super) fn course(&self, first: u64, gaps: &BTreeSet<u64>) -> Vec<Known> {
        let mut marks = self.marks.clone();
        // Marks of one moment stay in their order.
        marks.sort_by_key(|(ns, _)| *ns);
        let mut course = Course { known: Vec::new(), size: 0.0, since: self.begun };
        let mut counted = Taken::default();
        for part in marks.split_inclusive(|(_, mark)| matches!(mark, Mark::Counted(_))) {
            let Some(((ns, Mark::Counted(end)), changes)) = part.split_last() else {
                course.add_all(part);
                continue;
            };
            let missing = seen(changes).missing_of(counted, *end);
            let since = course.since;
            let last_gap = gaps.range(..=*ns).next_back().copied();
            let gap = last_gap.filter(|gap| since.is_none_or(|since| *gap > since));
            let may_miss = gap.is_some() || since.is_none();
            if may_miss && missing != Taken::default() {
                course.guess(changes, missing, since.unwrap_or(first), gap.unwrap_or(*ns), end.left());
            } else {
                course.add_all(changes);
            }
            course.add(*ns, end.left());
            (counted, course.since) = (*end, Some(*ns));
        }
        course.known
    }
}

impl Taken {
    fn left(self) -> f64 {
        self.taken - self.returned
    }

    /// What was counted between two moments beyond what was seen there.
    fn missing_of(self, begin: Self, end: Self) -> Self {
        Self {
            taken: (end.taken - begin.taken - self.taken).max(0.0),
            returned: (end.returned - begin.returned - self.returned).max(0.0),
        }
    }
}

/// The sum of the changes among marks.
fn seen(marks: &[(u64, Mark)]) -> Taken {
    let mut seen = Taken::default();
    for (_, mark) in marks {
        match mark {
            Mark::Change(by) if *by > 0.0 => seen.taken += by,
            Mark::Change(by) => seen.returned -= by,
            _ => {}
        }
    }
    seen
}

/// What is known of a size up to some mark.
struct Course {
    known: Vec<Known>,
    size: f64,
    /// Since when nothing is missing, if that is known.
    since: Option<u64>,
}

impl Course {
    fn add(&mut self, ns: u64, size: f64) {
        self.size = size;
        // It is never less than zero.
        self.known.push(Known { ns, size: size.max(0.0), unknown: 0.0 });
    }

    /// Adds marks of which none is missing.
    fn add_all(&mut self, marks: &[(u64, Mark)]) {
        for (ns, mark) in marks {
            match mark {
                Mark::Change(by) => self.add(*ns, self.size + by),
                Mark::Value(value) => self.add(*ns, *value),
                Mark::Counted(end) => self.add(*ns, end.left()),
            }
        }
    }

    /// Adds marks among which some are missing before the moment `gap`. The size is `last` after all of them.
    fn guess(&mut self, marks: &[(u64, Mark)], missing: Taken, begin: u64, gap: u64, last: f64) {
        let (before, after) = marks.split_at(marks.partition_point(|(ns, _)| *ns < gap));
        let guess = |ns, size: f64| {
            let least = (size - missing.returned).max(0.0);
            Known { ns, size: least, unknown: (size + missing.taken).max(0.0) - least }
        };
        self.known.push(guess(begin, self.size));
        for (ns, mark) in before {
            match mark {
                Mark::Change(by) => self.size += by,
                Mark::Value(value) => self.size = *value,
                Mark::Counted(_) => {}
            }
            self.known.push(guess(*ns, self.size));
        }
        self.add(gap, last - seen(after).left());
        self.add_all(after);
    }
}

/// Several sizes at the moments of all of them. A size that is not there yet is zero.
pub(super) fn join(tracks: &[Vec<(u64, f64)>]) -> (Vec<u64>, Vec<Vec<f64>>) {
    let mut moments: Vec<u64> = tracks.iter().flatten().map(|(ns, _)| *ns).collect();
    moments.sort_unstable();
    moments.dedup();
    let at_moments = |track: &Vec<(u64, f64)>| {
        let (mut next, mut size) = (0, 0.0);
        let at = |ns: &u64| {
            while let Some((_, value)) = track.get(next).filter(|(at, _)| at <= ns) {
                size = *value;
                next += 1;
            }
            size
        };
        moments.iter().map(at).collect()
    };
    let joined = tracks.iter().map(at_moments).collect();
    (moments, joined)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(taken: f64, returned: f64) -> Taken {
        Taken { taken, returned }
    }

    fn course(track: &Track, gaps: &[u64]) -> Vec<(u64, f64, f64)> {
        track
            .course(1, &gaps.iter().copied().collect())
            .into_iter()
            .map(|known| (known.ns, known.size, known.unknown))
            .collect()
    }

    /// A pool of which early changes were not seen: 98 of 105 that it took, and 1 of 3 that it returned.
    fn of_a_late_reader() -> Track {
        let mut track = Track::default();
        track.change(10, 5.0);
        track.change(20, -2.0);
        track.change(40, 2.0);
        track.count(50, taken(105.0, 3.0));
        track.change(60, 7.0);
        track
    }

    #[test]
    fn what_changed_before_the_last_gap_is_not_known_and_later_changes_are_counted_back() {
        let before = [(1, 0.0, 98.0), (10, 4.0, 99.0), (20, 2.0, 99.0)];
        let after = [(40, 102.0, 0.0), (50, 102.0, 0.0), (60, 109.0, 0.0)];
        let found = course(&of_a_late_reader(), &[15, 30]);
        assert_eq!(found, [&before[..], &[(30, 100.0, 0.0)], &after].concat());
    }

    #[test]
    fn without_any_change_nothing_is_known_up_to_the_count() {
        let mut track = Track::default();
        track.count(50, taken(105.0, 3.0));
        assert_eq!(course(&track, &[30]), [(1, 0.0, 105.0), (30, 102.0, 0.0), (50, 102.0, 0.0)]);
        track.begin(40);
        assert_eq!(
            course(&track, &[30])[..2],
            [(40, 0.0, 0.0), (50, 102.0, 0.0)],
            "the gap was before it was created"
        );
    }

    /// Whatever was missed elsewhere.
    #[test]
    fn if_all_that_was_counted_was_seen_the_size_is_exact() {
        let mut track = Track::default();
        track.change(10, 5.0);
        track.change(20, -2.0);
        track.count(50, taken(5.0, 2.0));
        track.change(60, 1.0);
        track.count(70, taken(6.0, 2.0));
        let exact = [(10, 5.0, 0.0), (20, 3.0, 0.0), (50, 3.0, 0.0), (60, 4.0, 0.0), (70, 4.0, 0.0)];
        assert_eq!(course(&track, &[15, 30, 65]), exact);
    }

    /// Between two looks the events of a few moments may be on the other side.
    #[test]
    fn without_a_gap_the_changes_that_were_seen_are_all() {
        let mut track = Track::default();
        track.begin(5);
        track.change(10, 5.0);
        track.count(20, taken(7.0, 0.0));
        track.change(21, 2.0);
        track.count(30, taken(7.0, 0.0));
        let exact = [(5, 0.0, 0.0), (10, 5.0, 0.0), (20, 7.0, 0.0), (21, 9.0, 0.0), (30, 7.0, 0.0)];
        assert_eq!(course(&track, &[]), exact);
    }

    /// As of a reader that was always behind. If each count looked at all gaps, this would take minutes.
    #[test]
    fn a_course_takes_no_longer_for_each_count_if_there_are_many_gaps() {
        const LOOKS: u64 = 200_000;
        let mut track = Track::default();
        (1..=LOOKS).for_each(|look| track.count(10 * look, taken(look as f64, 0.0)));
        let gaps = (1..=LOOKS).map(|look| 10 * look - 5).collect();
        let course = track.course(1, &gaps);
        let last = &course[course.len() - 3..];
        let [begun, end] = [LOOKS - 1, LOOKS].map(|look| look as f64);
        let known = |ns, size, unknown| Known { ns, size, unknown };
        let [before, gap, now] = [10, 5, 0].map(|ago| 10 * LOOKS - ago);
        assert_eq!(last, [known(before, begun, 1.0), known(gap, end, 0.0), known(now, end, 0.0)]);
    }

    #[test]
    fn sizes_are_joined_at_all_moments() {
        let (moments, joined) = join(&[vec![(1, 1.0), (5, 2.0)], vec![(3, 10.0), (5, 20.0), (5, 30.0)]]);
        assert_eq!(moments, [1, 3, 5]);
        assert_eq!(joined, [vec![1.0, 1.0, 2.0], vec![0.0, 10.0, 30.0]]);
    }
}
