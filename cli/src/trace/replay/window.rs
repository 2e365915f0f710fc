//! A part of a trace in memory, as actions with layouts, and whose turn it is. The next part takes its place
//! ([design/cli-traces.md `.memory`](crate::design::cli_traces)).

use core::alloc::Layout;
use core::ops::Range;
use std::fs::File;
use std::io::{self, BufReader};

use rustc_hash::FxHashMap;

use super::layouts::layout_of;
use super::outline::Outline;
use crate::trace::format::{Course, Kind, Object, Operation};

/// The most actions of a window.
pub(super) const MOST: usize = 1 << 16;

/// What an action does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    Alloc { layout: Layout, zeroed: bool },
    Resize { from: Layout, to: Layout },
    Free { layout: Layout },
}

/// An operation with everything that it needs known.
#[derive(Clone, Copy, Debug)]
pub(super) struct Action {
    /// The number of the object, which its stamp has.
    pub(super) object: u64,
    /// Where its address is kept.
    pub(super) slot: u32,
    /// How many operations must have been done in that slot before.
    pub(super) after: u32,
    pub(super) what: What,
}

/// Actions in a row of one thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Turn {
    pub(super) thread: usize,
    pub(super) actions: Range<usize>,
    /// Whether it is the first turn of its thread, and whether it is the last.
    pub(super) begins: bool,
    pub(super) ends: bool,
    /// The next turn of its thread in this window.
    pub(super) next: Option<usize>,
}

/// A part of a trace.
#[derive(Debug, Default)]
pub(super) struct Window {
    pub(super) actions: Vec<Action>,
    pub(super) turns: Vec<Turn>,
    /// The first turn, and the last up to now, of each thread that has one.
    pub(super) threads: FxHashMap<usize, (usize, usize)>,
}

impl Window {
    /// A window whose memory is there, so that it is no part of what a replay is measured to take.
    fn with_room_for(actions: usize, turns: usize) -> io::Result<Self> {
        let mut window = Self::default();
        let refused = |_| io::Error::other(format!("there is no memory for {actions} operations at a time"));
        window.actions.try_reserve_exact(actions).map_err(refused)?;
        window.turns.try_reserve_exact(turns).map_err(refused)?;
        let none = Action { object: 0, slot: 0, after: 0, what: What::Free { layout: Layout::new::<u8>() } };
        window.actions.resize(actions, none);
        window.turns.resize(turns, Turn { thread: 0, actions: 0..0, begins: false, ends: false, next: None });
        window.clear();
        Ok(window)
    }

    fn clear(&mut self) {
        self.actions.clear();
        self.turns.clear();
        self.threads.clear();
    }

    /// Adds an action to the turn of its thread. Returns that turn.
    fn push(&mut self, thread: usize, action: Action) -> &mut Turn {
        let index = self.actions.len();
        self.actions.push(action);
        if self.turns.last().is_none_or(|turn| turn.thread != thread) {
            let turn = self.turns.len();
            let (begins, ends) = Default::default();
            self.turns.push(Turn { thread, actions: index..index, begins, ends, next: None });
            let first_and_last = self.threads.entry(thread).or_insert((turn, turn));
            let former = core::mem::replace(&mut first_and_last.1, turn);
            if former != turn {
                self.turns[former].next = Some(turn);
            }
        }
        let last = self.turns.len() - 1;
        let turn = &mut self.turns[last];
        turn.actions.end = index + 1;
        turn
    }
}

/// Fills one window after the other.
#[derive(Debug)]
pub(super) struct Windows<'a> {
    outline: &'a Outline,
    course: Course<BufReader<File>>,
    /// The most actions of a window.
    most: usize,
    /// How many operations were in windows.
    pub(super) operations: u64,
    /// Which threads have begun.
    begun: Vec<bool>,
}

impl<'a> Windows<'a> {
    /// With this many actions in a window at most.
    pub(super) fn open(outline: &'a Outline, most: usize) -> io::Result<Self> {
        let mut course = Course::open(&outline.path, outline.steps).map_err(io::Error::other)?;
        course.reserve(outline.totals.peak_objects).map_err(io::Error::other)?;
        let most = most.clamp(1, MOST);
        Ok(Self { outline, course, most, operations: 0, begun: vec![false; outline.last_of.len()] })
    }

    /// A window that all parts fit into.
    pub(super) fn make(&self) -> io::Result<Window> {
        let fits = |number: u64| usize::try_from(number).map_or(self.most, |number| number.min(self.most));
        let totals = &self.outline.totals;
        Window::with_room_for(fits(self.outline.operations), fits(totals.switches.saturating_add(1)))
    }

    /// The slots that objects of this trace have: those that were freed in a window are not used again before the next.
    pub(super) fn slots(&self) -> usize {
        self.outline.totals.peak_objects as usize + self.most
    }

    /// Puts the next part into a window. Returns whether there was anything left. A window ends where the most bytes are live.
    pub(super) fn fill(&mut self, window: &mut Window) -> io::Result<bool> {
        window.clear();
        self.course.recycle();
        while window.actions.len() < self.most {
            let Some((step, object)) = self.course.step().map_err(io::Error::other)? else { break };
            let Some((object, number)) = object.zip(self.number(step.operation)) else { continue };
            let what = match step.operation {
                Operation::Alloc { kind, size } => {
                    What::Alloc { layout: fitting(kind, size)?, zeroed: kind == Kind::Zeroed }
                }
                Operation::Realloc { size, .. } => {
                    What::Resize { from: fitting(object.kind, object.size)?, to: fitting(object.kind, size)? }
                }
                _ => What::Free { layout: fitting(object.kind, object.size)? },
            };
            let Object { slot, operations: after, .. } = object;
            let thread = step.thread as usize;
            if slot as usize >= self.slots() || thread >= self.begun.len() {
                return Err(io::Error::other("the trace changed while it was read"));
            }
            let turn = window.push(thread, Action { object: number, slot, after, what });
            turn.begins |= !core::mem::replace(&mut self.begun[thread], true);
            turn.ends = self.outline.last_of[thread] == Some(self.operations);
            self.operations += 1;
            if self.outline.peak == Some(self.operations - 1) {
                break;
            }
        }
        Ok(!window.actions.is_empty())
    }

    /// The number of the object that an operation is about.
    fn number(&self, operation: Operation) -> Option<u64> {
        match operation {
            // It was the last that was allocated.
            Operation::Alloc { .. } => self.course.totals().allocations.checked_sub(1),
            Operation::Realloc { object, .. } | Operation::Free { object } => Some(object),
            Operation::EndThread | Operation::Fork { .. } => None,
        }
    }

    /// Whether the most bytes are live now.
    pub(super) fn is_at_peak(&self) -> bool {
        self.operations.checked_sub(1).is_some_and(|last| self.outline.peak == Some(last))
    }

    /// The bytes that are live now.
    pub(super) fn live_bytes(&self) -> u64 {
        self.course.live_bytes()
    }

    /// What is live now: number, slot and layout, in the order of allocation.
    pub(super) fn left(&self) -> Vec<(u64, u32, Layout)> {
        let live = self.course.live();
        let mut left: Vec<_> = live
            .filter_map(|(number, object)| {
                Some((number, object.slot, layout_of(object.kind, object.size).ok()?))
            })
            .collect();
        left.sort_unstable_by_key(|&(number, ..)| number);
        left
    }
}

/// A layout of a trace whose outline has none that does not fit.
fn fitting(kind: Kind, size: u64) -> io::Result<Layout> {
    layout_of(kind, size).map_err(io::Error::other)
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;
    use crate::trace::format::History;
    use crate::trace::synthesize::tests::trace;

    /// What each action says against what the steps say.
    #[test]
    fn windows_have_all_steps_and_no_two_live_objects_share_a_slot() {
        let options = "--objects 3000 --lifetime 40 --threads 5 --turn 3 --foreign 50 --reallocs 30";
        for (seed, most) in [(31, 1), (32, 7), (33, 500), (34, MOST)] {
            let file = trace(options, seed);
            let steps = History::read(file.reopen().unwrap()).unwrap().0.steps;
            let mut steps = steps.iter().filter(|step| step.operation != Operation::EndThread);
            let outline = Outline::read(file.path(), u64::MAX, &indicatif::ProgressBar::hidden()).unwrap();
            let mut windows = Windows::open(&outline, most).unwrap();
            let mut window = windows.make().unwrap();
            // The slot of each live object, who lives in each slot, and the operations that each has had.
            let (mut slots, mut residents, mut operations) =
                (HashMap::new(), HashMap::new(), HashMap::<_, u32>::new());
            let (mut freed_in_window, mut peaks) = (Vec::new(), 0);
            while windows.fill(&mut window).unwrap() {
                freed_in_window.clear();
                assert!(window.actions.len() <= most);
                for turn in &window.turns {
                    for action in &window.actions[turn.actions.clone()] {
                        let step = steps.next().unwrap();
                        assert_eq!(turn.thread, step.thread as usize);
                        let slot = action.slot;
                        assert!((slot as usize) < windows.slots());
                        let before = operations.entry(slot).or_default();
                        assert_eq!(action.after, *before, "seed {seed}: the operations in slot {slot}");
                        *before += 1;
                        match (action.what, step.operation) {
                            (What::Alloc { layout, .. }, Operation::Alloc { size, .. }) => {
                                assert_eq!(layout.size() as u64, size);
                                assert_eq!(residents.insert(slot, action.object), None, "seed {seed}");
                                assert!(
                                    !freed_in_window.contains(&slot),
                                    "seed {seed}: used again too early"
                                );
                                slots.insert(action.object, slot);
                            }
                            (What::Resize { to, .. }, Operation::Realloc { object, size }) => {
                                assert_eq!((to.size() as u64, action.object), (size, object));
                                assert_eq!(slots[&object], slot);
                            }
                            (What::Free { .. }, Operation::Free { object }) => {
                                assert_eq!(slots.remove(&object), Some(slot));
                                assert_eq!(residents.remove(&slot), Some(object));
                                freed_in_window.push(slot);
                            }
                            other => panic!("seed {seed}: {other:?}"),
                        }
                    }
                }
                peaks += usize::from(windows.is_at_peak());
            }
            assert!(steps.next().is_none() && residents.is_empty());
            assert_eq!(peaks, 1, "seed {seed}: one window ends at the peak");
        }
    }
}
