//! A trace as actions with layouts, and whose turn it is.

use core::alloc::Layout;
use core::ops::Range;

use crate::trace::{History, Kind, Operation};

/// The alignment that `malloc` promises for any type of C.
const MALLOC_ALIGN: usize = 16;

/// An operation with everything that it needs known.
#[derive(Clone, Copy, Debug)]
pub(super) enum Action {
    Alloc { object: u32, layout: Layout, zeroed: bool },
    Resize { object: u32, from: Layout, to: Layout },
    Free { object: u32, layout: Layout },
}

/// Actions in a row of one thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Turn {
    pub(super) thread: usize,
    pub(super) actions: Range<usize>,
}

/// What to replay.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(super) actions: Vec<Action>,
    pub(super) turns: Vec<Turn>,
    /// For each thread, which turns are its own.
    pub(super) turns_of: Vec<Vec<usize>>,
    pub(super) objects: usize,
    /// The first action after which the most bytes are live.
    pub(super) peak: Option<usize>,
    /// What is live at the end.
    pub(super) left: Vec<(u32, Layout)>,
}

/// Why a trace cannot be replayed.
#[derive(Debug)]
pub(crate) struct TooLarge(pub(crate) &'static str);

impl Plan {
    /// A plan of a history. Sizes of zero become one, because a layout of no bytes has no object.
    pub(crate) fn of(history: &History) -> Result<Self, TooLarge> {
        let mut layouts: Vec<Option<Layout>> = Vec::new();
        let mut plan = Self {
            actions: Vec::with_capacity(history.steps.len()),
            turns: Vec::new(),
            turns_of: vec![Vec::new(); history.totals.threads as usize],
            objects: 0,
            peak: None,
            left: Vec::new(),
        };
        let (mut live, mut most) = (0_u64, 0);
        for step in &history.steps {
            let action = match step.operation {
                Operation::Alloc { kind, size } => {
                    let layout = layout_of(size, kind.align().unwrap_or(1).max(MALLOC_ALIGN))?;
                    let object =
                        u32::try_from(layouts.len()).map_err(|_| TooLarge("it has 2^32 objects or more"))?;
                    layouts.push(Some(layout));
                    live += size;
                    Action::Alloc { object, layout, zeroed: kind == Kind::Zeroed }
                }
                Operation::Realloc { object, size } => {
                    let Some(Some(place)) = layouts.get_mut(object as usize) else { continue };
                    let (from, to) = (*place, layout_of(size, place.align())?);
                    *place = to;
                    live = live.saturating_sub(from.size() as u64) + size;
                    Action::Resize { object: object as u32, from, to }
                }
                Operation::Free { object } => {
                    let Some(layout) = layouts.get_mut(object as usize).and_then(Option::take) else {
                        continue;
                    };
                    live = live.saturating_sub(layout.size() as u64);
                    Action::Free { object: object as u32, layout }
                }
                Operation::EndThread | Operation::Fork { .. } => continue,
            };
            let index = plan.actions.len();
            plan.actions.push(action);
            plan.take_turn(step.thread as usize, index);
            if live > most {
                (most, plan.peak) = (live, Some(index));
            }
        }
        plan.objects = layouts.len();
        let left = layouts.iter().zip(0..).filter_map(|(layout, object)| Some((object, (*layout)?)));
        plan.left = left.collect();
        Ok(plan)
    }

    fn take_turn(&mut self, thread: usize, action: usize) {
        match self.turns.last_mut() {
            Some(turn) if turn.thread == thread => turn.actions.end = action + 1,
            _ => {
                self.turns_of[thread].push(self.turns.len());
                self.turns.push(Turn { thread, actions: action..action + 1 });
            }
        }
    }

    /// How many operations it has.
    pub(crate) fn operations(&self) -> usize {
        self.actions.len()
    }
}

fn layout_of(size: u64, align: usize) -> Result<Layout, TooLarge> {
    let size = usize::try_from(size.max(1)).map_err(|_| TooLarge("it has sizes of a wider machine"))?;
    Layout::from_size_align(size, align).map_err(|_| TooLarge("it has a size that no machine has"))
}
