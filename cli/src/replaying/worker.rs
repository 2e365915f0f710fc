//! One thread of a replay.

use core::alloc::Layout;
use core::ptr::{self, NonNull};
use core::sync::atomic::{AtomicPtr, Ordering};
use core::time::Duration;
use std::time::Instant;

use hdrhistogram::Histogram;

use super::footprint;
use super::memory::Memory;
use super::plan::{Action, Plan};
use super::run::Measure;
use super::stamp;
use super::turns::Turns;

/// What all threads of a replay see.
#[derive(Debug)]
pub(super) struct Stage<'a> {
    pub(super) plan: &'a Plan,
    pub(super) measure: Measure,
    pub(super) turns: Turns,
    /// Where each object is; null if it is not live. Only the thread whose turn it is looks.
    pub(super) addresses: Box<[AtomicPtr<u8>]>,
}

/// What a thread, or all of them, found.
#[derive(Debug, Default)]
pub(super) struct Findings {
    pub(super) time: Duration,
    pub(super) latencies: Option<Histogram<u64>>,
    pub(super) differences: u64,
    pub(super) first_difference: Option<String>,
    pub(super) refused: u64,
    /// The resident bytes of the process when the most were live.
    pub(super) resident_at_peak: Option<u64>,
}

/// A second: nothing takes longer, or it is counted as that.
const LONGEST: u64 = 1_000_000_000;

impl Findings {
    fn of_thread(measure: Measure) -> Self {
        let latencies = || Histogram::new_with_bounds(1, LONGEST, 3).ok();
        Self { latencies: (measure == Measure::Latency).then(latencies).flatten(), ..Self::default() }
    }

    /// Adds what another thread found.
    pub(super) fn add(&mut self, other: Self) {
        self.time += other.time;
        self.differences += other.differences;
        self.refused += other.refused;
        self.first_difference = self.first_difference.take().or(other.first_difference);
        self.resident_at_peak = self.resident_at_peak.or(other.resident_at_peak);
        match (&mut self.latencies, other.latencies) {
            // Both have the same bounds.
            (Some(all), Some(latencies)) => _ = all.add(latencies),
            (none, latencies) => *none = latencies,
        }
    }

    fn note_difference(&mut self, text: impl FnOnce() -> String) {
        self.differences += 1;
        self.first_difference.get_or_insert_with(text);
    }
}

/// One thread of a replay.
pub(super) struct Worker<'a> {
    stage: &'a Stage<'a>,
    thread: usize,
    /// Ends a turn, and starts the thread that has the next one if that is its first.
    pass: &'a dyn Fn(usize),
    /// Whether it only clears what is live at the end.
    clears: bool,
    pub(super) findings: Findings,
}

impl<'a> Worker<'a> {
    pub(super) fn new(stage: &'a Stage<'a>, thread: usize, pass: &'a dyn Fn(usize)) -> Self {
        Self { stage, thread, pass, clears: false, findings: Findings::of_thread(stage.measure) }
    }

    /// A thread after the last turn, which compares and frees what is still live.
    pub(super) fn to_clear(stage: &'a Stage<'a>) -> Self {
        Self { clears: true, ..Self::new(stage, 0, &|_| {}) }
    }

    /// Takes all turns of this thread. The last is passed on by the caller, when the memory of the thread is gone.
    pub(super) fn run(&mut self, memory: &impl Memory) {
        if self.clears {
            return self.clear(memory);
        }
        let (plan, turns) = (self.stage.plan, &self.stage.plan.turns_of[self.thread]);
        for (index, &turn) in turns.iter().enumerate() {
            if !self.stage.turns.wait(turn) {
                return;
            }
            let actions = plan.turns[turn].actions.clone();
            match self.stage.measure {
                Measure::Contents => actions.for_each(|index| self.check(memory, index)),
                Measure::Time => {
                    let begin = footprint::processor_time();
                    actions.for_each(|index| self.act(memory, &plan.actions[index]));
                    self.findings.time += footprint::processor_time() - begin;
                }
                Measure::Latency => actions.for_each(|index| {
                    let begin = Instant::now();
                    self.act(memory, &plan.actions[index]);
                    let time = begin.elapsed().as_nanos() as u64;
                    if let Some(latencies) = &mut self.findings.latencies {
                        latencies.saturating_record(time.max(1));
                    }
                }),
            }
            if index + 1 < turns.len() {
                (self.pass)(turn);
            }
        }
    }

    fn place(&self, object: u32) -> &AtomicPtr<u8> {
        &self.stage.addresses[object as usize]
    }

    /// The address of an object. None if its allocation was refused.
    fn get(&self, object: u32) -> Option<NonNull<u8>> {
        NonNull::new(self.place(object).load(Ordering::Relaxed))
    }

    fn set(&self, object: u32, block: Option<NonNull<u8>>) {
        self.place(object).store(block.map_or(ptr::null_mut(), NonNull::as_ptr), Ordering::Relaxed);
    }

    /// Does an action as a program would: it writes to what it allocates.
    #[inline]
    fn act(&mut self, memory: &impl Memory, action: &Action) {
        match *action {
            Action::Alloc { object, layout, zeroed } => {
                let block = memory.alloc(layout, zeroed);
                if let Some(block) = block {
                    // SAFETY: a layout has at least one byte.
                    unsafe { block.write(1) };
                }
                self.findings.refused += u64::from(block.is_none());
                self.set(object, block);
            }
            Action::Resize { object, from, to } => {
                let Some(block) = self.get(object) else { return };
                // SAFETY: the plan has the layout of every object; its new block is the one that is used.
                let moved = unsafe { memory.resize(block, from, to) };
                self.refuse_or_set(object, moved);
            }
            Action::Free { object, layout } => {
                let Some(block) = self.get(object) else { return };
                // SAFETY: the plan has the layout of every object, and frees it once.
                unsafe { memory.free(block, layout) };
                self.set(object, None);
            }
        }
    }

    /// An object whose resize was refused is left where it is, and not used any more.
    fn refuse_or_set(&mut self, object: u32, moved: Option<NonNull<u8>>) {
        self.findings.refused += u64::from(moved.is_none());
        self.set(object, moved);
    }

    /// Does an action, stamps every byte that is new, and compares every byte that is to go or may have moved.
    fn check(&mut self, memory: &impl Memory, index: usize) {
        let plan = self.stage.plan;
        match plan.actions[index] {
            Action::Alloc { object, layout, zeroed } => {
                let block = memory.alloc(layout, zeroed);
                self.findings.refused += u64::from(block.is_none());
                self.set(object, block);
                if let Some(block) = block {
                    if block.addr().get() % layout.align() != 0 {
                        let text =
                            || format!("step {index}: object {object} is not aligned to {}", layout.align());
                        self.findings.note_difference(text);
                    }
                    if !zeroed {
                        // Otherwise a slice of it would be of bytes that were never written.
                        // SAFETY: the block has that many bytes.
                        unsafe { block.write_bytes(0, layout.size()) };
                    }
                    // SAFETY: the block has these bytes, they are written, and no other thread has them.
                    let bytes = unsafe { core::slice::from_raw_parts_mut(block.as_ptr(), layout.size()) };
                    if zeroed && let Some(at) = bytes.iter().position(|&byte| byte != 0) {
                        let text = || format!("step {index}: byte {at} of object {object} is not zero");
                        self.findings.note_difference(text);
                    }
                    stamp::put(bytes, object, 0);
                }
            }
            Action::Resize { object, from, to } => {
                let Some(block) = self.get(object) else { return };
                self.compare(index, object, block, from.size(), "before it was resized");
                // SAFETY: the plan has the layout of every object; its new block is the one that is used.
                let moved = unsafe { memory.resize(block, from, to) };
                self.refuse_or_set(object, moved);
                if let Some(block) = moved {
                    let kept = from.size().min(to.size());
                    self.compare(index, object, block, kept, "after it was resized");
                    // SAFETY: the block has the bytes of the new layout.
                    unsafe { block.add(kept).write_bytes(0, to.size() - kept) };
                    // SAFETY: the block has these bytes, they are written, and no other thread has them.
                    let bytes = unsafe { core::slice::from_raw_parts_mut(block.as_ptr(), to.size()) };
                    stamp::put(bytes, object, kept);
                }
            }
            Action::Free { object, layout } => {
                let Some(block) = self.get(object) else { return };
                self.compare(index, object, block, layout.size(), "before it was freed");
                // SAFETY: the plan has the layout of every object, and frees it once.
                unsafe { memory.free(block, layout) };
                self.set(object, None);
            }
        }
        if plan.peak == Some(index) {
            self.findings.resident_at_peak = footprint::resident();
        }
    }

    fn compare(&mut self, index: usize, object: u32, block: NonNull<u8>, size: usize, when: &str) {
        // SAFETY: the object is live and has these bytes; all were stamped, and no other thread has them.
        let bytes = unsafe { core::slice::from_raw_parts(block.as_ptr(), size) };
        if let Some(at) = stamp::find_difference(bytes, object) {
            let text = || format!("step {index}: byte {at} of {size} of object {object} had changed {when}");
            self.findings.note_difference(text);
        }
    }

    fn clear(&mut self, memory: &impl Memory) {
        let plan = self.stage.plan;
        for &(object, layout) in &plan.left {
            let Some(block) = self.get(object) else { continue };
            if self.stage.measure == Measure::Contents {
                self.compare(plan.actions.len(), object, block, layout.size(), "at the end");
            }
            self.free_left(memory, object, block, layout);
        }
    }

    fn free_left(&self, memory: &impl Memory, object: u32, block: NonNull<u8>, layout: Layout) {
        // SAFETY: the object is live with this layout, and no action frees it.
        unsafe { memory.free(block, layout) };
        self.set(object, None);
    }
}
