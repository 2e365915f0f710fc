//! Events that begin or end something that lasts.

/// What an event does to the slices of its thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Edge {
    Begin(&'static str),
    End(&'static str),
}

/// What an event of this kind begins and ends; nothing if it has no duration.
pub(super) fn edges(kind: &str) -> &'static [Edge] {
    use Edge::{Begin, End};
    match kind {
        "begin stop" => &[Begin("ask for a stop")],
        "stop" => &[End("ask for a stop"), Begin("heap stopped")],
        "postpone stop" => &[End("ask for a stop")],
        "end stop" => &[End("heap stopped")],
        "give way" => &[Begin("wait for a stop")],
        "go on" => &[End("wait for a stop")],
        "begin collection" => &[Begin("collection"), Begin("mark or copy")],
        // A collection in steps has a step here, and no part before it.
        "begin sweep" => &[End("mark or copy"), Begin("sweep")],
        "end collection" => &[End("collection")],
        "begin step" => &[Begin("step")],
        "end step" => &[End("step")],
        "begin amnesty" => &[Begin("amnesty")],
        "end amnesty" => &[End("amnesty")],
        _ => &[],
    }
}

/// The slices of a thread that have begun and not ended, the outermost first. A viewer needs them nested.
#[derive(Clone, Debug, Default)]
pub(super) struct Open(Vec<&'static str>);

impl Open {
    pub(super) fn begin(&mut self, name: &'static str) {
        self.0.push(name);
    }

    /// Ends a slice, and returns how many end with it: those within it too. None if its beginning was not read.
    pub(super) fn end(&mut self, name: &str) -> usize {
        let Some(place) = self.0.iter().rposition(|open| *open == name) else { return 0 };
        self.0.drain(place..).count()
    }

    /// Ends all, and returns how many they were.
    pub(super) fn end_all(&mut self) -> usize {
        self.0.drain(..).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_ends_what_is_within_and_one_without_a_beginning_nothing() {
        let mut open = Open::default();
        assert_eq!(open.end("step"), 0);
        for name in ["heap stopped", "step", "sweep"] {
            open.begin(name);
        }
        assert_eq!(open.end("mark or copy"), 0);
        assert_eq!(open.end("step"), 2);
        assert_eq!(open.end_all(), 1);
        assert_eq!(open.end_all(), 0);
    }

    /// A kind that was renamed would be drawn without its duration.
    #[test]
    fn edges_are_those_of_kinds_that_there_are_and_every_end_has_a_beginning() {
        use tripoint_telemetry::format::EventKind;

        let all: Vec<Edge> = EventKind::ALL.iter().flat_map(|kind| edges(kind.name())).copied().collect();
        assert_eq!(all.len(), 16);
        for edge in &all {
            if let Edge::End(name) = edge {
                assert!(all.contains(&Edge::Begin(name)), "{name}");
            }
        }
    }
}
