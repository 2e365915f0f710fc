//! Where objects moved away from, in the last collections.
//!
//! Epochs are counted by collections in which objects moved. For each of the last few there are the zones from which
//! objects moved since it began; for all that are older, the zones from which objects ever moved (design/gc.md
//! `.location.history`).

use tripoint_core::internal::{AtomicUsize, Ordering};

use crate::locations::dependency::LocationDependency;
use crate::segments::zones::Zones;

/// How many epochs are remembered.
const EPOCHS: usize = 8;

/// The history of a heap. It is written while the heap is stopped, and read by its mutators while they run, so
/// all is ordered by their attendance.
#[derive(Debug)]
pub(crate) struct History {
    epoch: AtomicUsize,
    /// The zones from which objects moved since an epoch began, by its number modulo [`EPOCHS`].
    since: [AtomicUsize; EPOCHS],
    /// The zones from which objects ever moved.
    ever: AtomicUsize,
}

impl History {
    pub(crate) fn new() -> Self {
        Self {
            epoch: AtomicUsize::new(0),
            since: core::array::from_fn(|_| AtomicUsize::new(0)),
            ever: AtomicUsize::new(0),
        }
    }

    /// A dependency on nothing, from now on.
    pub(crate) fn dependency(&self) -> LocationDependency {
        LocationDependency { epoch: self.epoch.load(Ordering::Relaxed), zones: Zones::default() }
    }

    /// While the heap is stopped: objects moved away from these zones.
    pub(crate) fn age(&self, moved: Zones) {
        if moved.is_empty() {
            return;
        }
        for zones in self.since.iter().chain([&self.ever]) {
            zones.store(zones.load(Ordering::Relaxed) | moved.0, Ordering::Relaxed);
        }
        let epoch = self.epoch.load(Ordering::Relaxed).wrapping_add(1);
        self.since[epoch % EPOCHS].store(0, Ordering::Relaxed);
        self.epoch.store(epoch, Ordering::Relaxed);
    }

    /// Whether an object may have moved that the dependency is on.
    pub(crate) fn is_stale(&self, dependency: LocationDependency) -> bool {
        let age = self.epoch.load(Ordering::Relaxed).wrapping_sub(dependency.epoch);
        let zones = match age {
            0 => return false,
            1..EPOCHS => &self.since[dependency.epoch % EPOCHS],
            _ => &self.ever,
        };
        dependency.zones.meet(Zones(zones.load(Ordering::Relaxed)))
    }
}

#[cfg(all(test, not(tripoint_loom)))]
mod tests {
    use super::*;
    use core::ptr;
    use proptest::prelude::*;
    use std::collections::BTreeSet;
    use std::vec::Vec;
    use tripoint_core::{Addr, AddrRange};

    const MIB: usize = 1 << 20;

    fn moved(base: usize, size: usize) -> Zones {
        Zones::of(AddrRange::new(Addr::new(base), Addr::new(base + size)).unwrap())
    }

    #[test]
    fn ranges_take_the_zones_that_they_touch() {
        assert_eq!(moved(5 * MIB, 1), Zones(1 << 5));
        assert_eq!(moved(6 * MIB - 1, 2), Zones(3 << 5));
        assert_eq!(moved(MIB * (usize::BITS as usize - 1), 2 * MIB), Zones(1 | 1 << (usize::BITS - 1)));
        assert_eq!(moved(1, MIB * usize::BITS as usize), Zones(usize::MAX));
    }

    /// What a test does to a history.
    #[derive(Clone, Debug)]
    enum Step {
        Reset(usize),
        Add(usize, usize),
        Merge(usize, usize),
        Move(Vec<usize>),
    }

    fn step() -> impl Strategy<Value = Step> {
        // More stripes than zones, so that different ones meet in one.
        let stripe = || 0_usize..150;
        prop_oneof![
            1 => (0_usize..3).prop_map(Step::Reset),
            4 => (0_usize..3, stripe()).prop_map(|(which, stripe)| Step::Add(which, stripe)),
            1 => (0_usize..3, 0_usize..3).prop_map(|(to, from)| Step::Merge(to, from)),
            3 => prop::collection::vec(stripe(), 0..3).prop_map(Step::Move),
        ]
    }

    /// An address that an object had, and the number of moves before.
    type Known = BTreeSet<(usize, usize)>;

    /// Follows the steps, with objects moving in the history as `age` says.
    fn follow(steps: &[Step], first: usize, age: impl Fn(&History, Zones)) {
        let history = History::new();
        history.epoch.store(first, Ordering::Relaxed);
        let mut dependencies = [history.dependency(); 3];
        let (mut known, mut moves): ([Known; 3], Vec<Vec<usize>>) = Default::default();
        for step in steps {
            match step {
                Step::Reset(which) => {
                    dependencies[*which] = history.dependency();
                    known[*which].clear();
                }
                Step::Add(which, stripe) => {
                    dependencies[*which].add(ptr::without_provenance(stripe * MIB + 8));
                    known[*which].insert((*stripe, moves.len()));
                }
                Step::Merge(to, from) => {
                    let other = dependencies[*from];
                    dependencies[*to].merge(other);
                    let other = known[*from].clone();
                    known[*to].extend(other);
                }
                Step::Move(stripes) => {
                    let mut zones = Zones::default();
                    stripes.iter().for_each(|stripe| zones |= moved(stripe * MIB, MIB));
                    age(&history, zones);
                    moves.push(stripes.clone());
                }
            }
            for (dependency, known) in dependencies.iter().zip(&known) {
                let has_moved =
                    known.iter().any(|(stripe, at)| moves[*at..].iter().any(|move_| move_.contains(stripe)));
                assert!(history.is_stale(*dependency) || !has_moved, "an object has moved unnoticed");
                let zones = |stripe: &usize| stripe % usize::BITS as usize;
                let may_meet = known
                    .iter()
                    .any(|(stripe, _)| moves.iter().flatten().any(|moved| zones(moved) == zones(stripe)));
                assert!(!history.is_stale(*dependency) || may_meet, "nothing near it has moved");
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig {
            cases: if cfg!(miri) { 8 } else { 512 },
            failure_persistence: None,
            ..ProptestConfig::default()
        })]

        #[test]
        fn what_has_moved_makes_stale(
            steps in prop::collection::vec(step(), 0..80),
            first in prop_oneof![Just(0_usize), usize::MAX - 20..=usize::MAX],
        ) {
            follow(&steps, first, History::age);
        }
    }

    /// The twin: a history in which what moved in the epoch itself is not noted.
    #[test]
    #[should_panic(expected = "an object has moved unnoticed")]
    fn a_move_that_is_not_noted_is_noticed() {
        let steps = [Step::Reset(0), Step::Add(0, 3), Step::Move(Vec::from([3]))];
        follow(&steps, 0, |history, _| history.age(Zones(1 << 9)));
    }

    /// Collections that move nothing age nothing: what moved before is not confused with what moves later.
    #[test]
    fn an_epoch_begins_only_if_something_moved() {
        let history = History::new();
        history.age(moved(0, MIB));
        let mut dependency = history.dependency();
        dependency.add(ptr::without_provenance(8));
        for _ in 0..2 * EPOCHS {
            history.age(Zones::default());
        }
        assert!(!history.is_stale(dependency));
    }

    /// What moved before a dependency was reset does not make it stale, as long as its epoch is remembered.
    #[test]
    fn a_new_dependency_is_fresh() {
        let history = History::new();
        for round in 0..3 * EPOCHS {
            history.age(moved(0, MIB));
            let mut dependency = history.dependency();
            dependency.add(ptr::without_provenance(8));
            for later in 1..EPOCHS {
                history.age(moved(MIB, MIB));
                assert!(!history.is_stale(dependency), "round {round}, {later} epochs later");
            }
            history.age(moved(MIB, MIB));
            assert!(history.is_stale(dependency), "its epoch is forgotten");
        }
    }
}
