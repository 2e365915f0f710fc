//! Which objects are live, step by step: each free and realloc must be of one that is
//! ([design/cli-traces.md `.memory`](crate::design::cli_traces)).

use rustc_hash::FxHashMap;
use serde::Serialize;

use super::operation::{Kind, Operation, Step};

/// Counts over a trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Totals {
    pub(crate) allocations: u64,
    pub(crate) reallocs: u64,
    pub(crate) frees: u64,
    pub(crate) threads: u32,
    /// How often a step is of another thread than the one before.
    pub(crate) switches: u64,
    /// The most bytes that were live at once, as they were asked for.
    pub(crate) peak_live: u64,
    /// The most objects that were live at once.
    pub(crate) peak_objects: u64,
    /// Bytes that are live at the end.
    pub(crate) final_live: u64,
}

/// An object that is live.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Object {
    pub(crate) kind: Kind,
    pub(crate) size: u64,
    /// A number that no other live object has, and less than the most objects that were live at once and those that were
    /// freed since [`Account::recycle`].
    pub(crate) slot: u32,
    /// How many operations objects with this slot have had before.
    pub(crate) operations: u32,
}

/// Why a step cannot follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// No program can have made it.
    Impossible(&'static str),
    /// There is no memory for the account of this many objects or threads.
    Memory { entries: u64 },
}

/// What is live, and what was counted. It takes memory for the objects that are live and for the threads, not for the steps.
#[derive(Debug, Default)]
pub(super) struct Account {
    live: FxHashMap<u64, Object>,
    /// Slots that may be used again, and how many operations they have had; and those that may be used later.
    free: Vec<(u32, u32)>,
    freed: Vec<(u32, u32)>,
    slots: u32,
    ended: Vec<bool>,
    live_bytes: u64,
    last: Option<u32>,
    totals: Totals,
}

impl Account {
    /// Takes a step. Returns the object that it is about, as it is before the step, or after it if it is new.
    pub(super) fn step(&mut self, step: Step) -> Result<Option<Object>, Refusal> {
        let thread = self.check_thread(step.thread)?;
        let object = match step.operation {
            Operation::Alloc { kind, size } => Some(self.allocate(kind, size)?),
            Operation::Realloc { object, size } => {
                let object = self.live.get_mut(&object).ok_or(NOT_LIVE)?;
                let before = *object;
                object.size = size;
                object.operations = object.operations.wrapping_add(1);
                self.live_bytes -= before.size;
                self.grow(size)?;
                self.totals.reallocs += 1;
                Some(before)
            }
            Operation::Free { object } => {
                let object = self.live.remove(&object).ok_or(NOT_LIVE)?;
                reserve(&mut self.freed)?;
                self.freed.push((object.slot, object.operations.wrapping_add(1)));
                self.live_bytes -= object.size;
                self.totals.frees += 1;
                Some(object)
            }
            Operation::EndThread => {
                self.ended[thread] = true;
                None
            }
            Operation::Fork { .. } => None,
        };
        self.totals.switches += u64::from(self.last.is_some_and(|last| last != step.thread));
        self.last = Some(step.thread);
        Ok(object)
    }

    fn check_thread(&mut self, thread: u32) -> Result<usize, Refusal> {
        let thread = thread as usize;
        if thread == self.ended.len() {
            reserve(&mut self.ended)?;
            self.ended.push(false);
        }
        match self.ended.get(thread) {
            None => Err(Refusal::Impossible("a thread's number is too large")),
            Some(true) => Err(Refusal::Impossible("its thread has ended")),
            Some(false) => Ok(thread),
        }
    }

    fn allocate(&mut self, kind: Kind, size: u64) -> Result<Object, Refusal> {
        let entries = self.live.len() as u64 + 1;
        self.live.try_reserve(1).map_err(|_| Refusal::Memory { entries })?;
        self.grow(size)?;
        let (slot, operations) = match self.free.pop() {
            Some(free) => free,
            None => {
                let slot = self.slots;
                self.slots = slot.checked_add(1).ok_or(Refusal::Memory { entries })?;
                (slot, 0)
            }
        };
        let object = Object { kind, size, slot, operations };
        let after = Object { operations: operations.wrapping_add(1), ..object };
        self.live.insert(self.totals.allocations, after);
        self.totals.allocations += 1;
        self.totals.peak_objects = self.totals.peak_objects.max(entries);
        Ok(object)
    }

    fn grow(&mut self, size: u64) -> Result<(), Refusal> {
        // No process has more than half of its address space.
        let live = self.live_bytes.checked_add(size).filter(|&live| live <= i64::MAX as u64);
        self.live_bytes = live.ok_or(Refusal::Impossible("a size is too large"))?;
        self.totals.peak_live = self.totals.peak_live.max(self.live_bytes);
        Ok(())
    }

    /// Lets the slots of objects that were freed be used again.
    pub(super) fn recycle(&mut self) {
        // The memory was reserved while these slots were new: there are as many at most.
        self.free.append(&mut self.freed);
    }

    /// Takes the memory that this many live objects need now, and not little by little later.
    pub(super) fn reserve(&mut self, objects: u64) -> Result<(), Refusal> {
        let refusal = Refusal::Memory { entries: objects };
        let count = usize::try_from(objects).map_err(|_| refusal)?;
        self.live.try_reserve(count).map_err(|_| refusal)?;
        self.free.try_reserve(count).map_err(|_| refusal)?;
        self.freed.try_reserve(count).map_err(|_| refusal)?;
        // Each page is written to, so that it is there.
        let object = Object { kind: Kind::Plain, size: 0, slot: 0, operations: 0 };
        self.live.extend((0..objects).map(|number| (number, object)));
        self.live.clear();
        self.free.resize(count, (0, 0));
        self.free.clear();
        self.freed.resize(count, (0, 0));
        self.freed.clear();
        Ok(())
    }

    /// The bytes that are live.
    pub(super) fn live_bytes(&self) -> u64 {
        self.live_bytes
    }

    /// How many objects are live.
    pub(super) fn live_objects(&self) -> usize {
        self.live.len()
    }

    /// The objects that are live, with their numbers, in no order.
    pub(super) fn live(&self) -> impl Iterator<Item = (u64, Object)> {
        self.live.iter().map(|(&number, &object)| (number, object))
    }

    pub(super) fn totals(&self) -> Totals {
        Totals { threads: self.ended.len() as u32, final_live: self.live_bytes, ..self.totals }
    }
}

const NOT_LIVE: Refusal = Refusal::Impossible("its object is not live");

/// Makes room for one more.
fn reserve<T>(list: &mut Vec<T>) -> Result<(), Refusal> {
    list.try_reserve(1).map_err(|_| Refusal::Memory { entries: list.len() as u64 + 1 })
}
