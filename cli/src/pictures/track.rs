//! A size over time, of changes and of values that are known at moments.

/// What is known of a size at a moment.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Mark {
    /// It changed by so much.
    Change(f64),
    /// It is so much.
    Value(f64),
}

/// A size over time. Before the first value it is what the changes since then leave of that value; after each value,
/// the changes are added to it. So changes that are missing make it wrong only between two values
/// ([design/cli.md `.plot.track`](crate::design::cli)).
#[derive(Clone, Debug, Default)]
pub(super) struct Track {
    marks: Vec<(u64, Mark)>,
}

impl Track {
    pub(super) fn change(&mut self, ns: u64, by: f64) {
        self.marks.push((ns, Mark::Change(by)));
    }

    pub(super) fn value(&mut self, ns: u64, value: f64) {
        self.marks.push((ns, Mark::Value(value)));
    }

    /// Forgets changes of which some may be missing, if no value is known yet.
    pub(super) fn lose(&mut self) {
        if !self.marks.iter().any(|(_, mark)| matches!(mark, Mark::Value(_))) {
            self.marks.clear();
        }
    }

    /// The size after each mark, by time. It is never less than zero.
    pub(super) fn points(&self) -> Vec<(u64, f64)> {
        let mut marks = self.marks.clone();
        // Marks of one moment stay in their order.
        marks.sort_by_key(|(ns, _)| *ns);
        let mut size = first(&marks);
        let step = |(ns, mark): (u64, Mark)| {
            size = match mark {
                Mark::Change(by) => size + by,
                Mark::Value(value) => value,
            };
            (ns, size.max(0.0))
        };
        marks.into_iter().map(step).collect()
    }
}

/// The size before all marks.
fn first(marks: &[(u64, Mark)]) -> f64 {
    let mut changes = 0.0;
    for (_, mark) in marks {
        match mark {
            Mark::Change(by) => changes += by,
            Mark::Value(value) => return value - changes,
        }
    }
    0.0
}

/// Several sizes at the moments of all of them. A size that is not known yet is zero.
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

    #[test]
    fn changes_before_the_first_value_are_undone_and_later_ones_added() {
        let mut track = Track::default();
        track.change(10, 5.0);
        track.change(20, -2.0);
        track.value(30, 103.0);
        track.change(40, 7.0);
        track.value(50, 200.0);
        let sizes: Vec<_> = track.points();
        assert_eq!(sizes, [(10, 105.0), (20, 103.0), (30, 103.0), (40, 110.0), (50, 200.0)]);
    }

    #[test]
    fn after_a_loss_only_a_value_tells_what_was_before() {
        let mut track = Track::default();
        track.change(10, 5.0);
        track.lose();
        assert_eq!(track.points(), []);
        track.value(20, 3.0);
        track.lose();
        assert_eq!(track.points(), [(20, 3.0)]);
    }

    #[test]
    fn sizes_are_joined_at_all_moments() {
        let (moments, joined) = join(&[vec![(1, 1.0), (5, 2.0)], vec![(3, 10.0), (5, 20.0), (5, 30.0)]]);
        assert_eq!(moments, [1, 3, 5]);
        assert_eq!(joined, [vec![1.0, 1.0, 2.0], vec![0.0, 10.0, 30.0]]);
    }
}
