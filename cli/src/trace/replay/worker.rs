//! One thread of a replay, and contenders that run it.

use core::alloc::Layout;
use core::ptr::{self, NonNull};
use core::sync::atomic::{AtomicPtr, AtomicU32, Ordering};
use core::time::Duration;
use std::sync::{PoisonError, RwLock, RwLockReadGuard};
use std::time::Instant;

use clap::ValueEnum;

use hdrhistogram::Histogram;

use super::footprint;
use super::memory::Memory;
use super::stamp;
use super::turns::Turns;
use super::window::{Action, What, Window};

/// What a run measures: one thing, so that it does not disturb the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Measure {
    /// Every byte is stamped and compared; footprint, faults, growth.
    Contents,
    /// The time of all operations together.
    Time,
    /// The time of each operation.
    Latency,
}

/// Which operations wait for which ([design/cli-traces.md `.contended`](crate::design::cli_traces)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// One thread at a time, in the order of the trace.
    Strict,
    /// All threads at once: an operation waits for those before it on the same object, and for nothing else.
    Contended,
}

/// Where an object is.
#[derive(Debug, Default)]
pub(super) struct Slot {
    /// Null if nothing is live here.
    address: AtomicPtr<u8>,
    /// Operations that were done here.
    done: AtomicU32,
}

/// What all threads of a replay see.
#[derive(Debug)]
pub(super) struct Stage {
    pub(super) measure: Measure,
    pub(super) order: Order,
    pub(super) turns: Turns,
    pub(super) window: RwLock<Window>,
    pub(super) slots: Box<[Slot]>,
}

impl Stage {
    /// The present window, as long as this thread has work in it.
    pub(super) fn window(&self) -> RwLockReadGuard<'_, Window> {
        self.window.read().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a thread, or all of them, found.
#[derive(Debug, Default)]
pub(super) struct Findings {
    pub(super) time: Duration,
    pub(super) interruptions: u64,
    pub(super) latencies: Option<Histogram<u64>>,
    pub(super) differences: u64,
    pub(super) first_difference: Option<String>,
    pub(super) refused: u64,
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
        self.interruptions += other.interruptions;
        self.differences += other.differences;
        self.refused += other.refused;
        self.first_difference = self.first_difference.take().or(other.first_difference);
        match (&mut self.latencies, other.latencies) {
            // Both have the same bounds.
            (Some(all), Some(latencies)) => _ = all.add(latencies),
            (none, latencies) => *none = latencies,
        }
    }

    /// The time of the 50th, 90th, 99th, 99.9th and 99.99th percentile, and the longest.
    pub(super) fn percentiles(&self) -> Option<[u64; 6]> {
        let times = self.latencies.as_ref()?;
        let at = |percent| times.value_at_percentile(percent);
        Some([at(50.0), at(90.0), at(99.0), at(99.9), at(99.99), times.max()])
    }

    fn note_difference(&mut self, text: impl FnOnce() -> String) {
        self.differences += 1;
        self.first_difference.get_or_insert_with(text);
    }
}

/// A contender: an allocator with as many threads as the trace has.
pub(super) trait Threads: Sync {
    /// Calls [`Worker::run`] with the memory of a new thread.
    fn on_thread(&self, worker: &mut Worker<'_>);

    /// How many allocations the caches of its threads could not serve by themselves; none if it has no caches that count.
    fn fills(&self) -> Option<u64> {
        None
    }
}

/// One thread of a replay.
pub(super) struct Worker<'a> {
    stage: &'a Stage,
    thread: usize,
    /// Ends a turn, and starts the thread that has the next one if that is its first.
    pass: &'a dyn Fn(&Window, usize),
    /// What this thread only clears, instead of taking turns.
    clears: Option<&'a [(u64, u32, Layout)]>,
    /// The last turn of this thread, when it has come.
    pub(super) last: Option<usize>,
    pub(super) findings: Findings,
}

impl<'a> Worker<'a> {
    pub(super) fn new(stage: &'a Stage, thread: usize, pass: &'a dyn Fn(&Window, usize)) -> Self {
        let findings = Findings::of_thread(stage.measure);
        Self { stage, thread, pass, clears: None, last: None, findings }
    }

    /// A thread after the last window, which compares and frees what is still live.
    pub(super) fn to_clear(stage: &'a Stage, left: &'a [(u64, u32, Layout)]) -> Self {
        Self { clears: Some(left), ..Self::new(stage, 0, &|_, _| {}) }
    }

    /// Takes all turns of this thread. The last is passed on by the caller, when the memory of the thread is gone.
    pub(super) fn run(&mut self, memory: &impl Memory) {
        if let Some(left) = self.clears {
            return self.clear(memory, left);
        }
        let mut number = 0;
        while let Some(next) = self.stage.turns.wait_for_window(self.thread, number) {
            number = next;
            let window = self.stage.window();
            let mut next = window.threads.get(&self.thread).map(|&(first, _)| first);
            while let Some(index) = next {
                if self.stage.order == Order::Strict && !self.stage.turns.wait_for_turn(index) {
                    return;
                }
                let turn = &window.turns[index];
                if !self.take(memory, &window.actions[turn.actions.clone()]) {
                    return;
                }
                if turn.ends {
                    self.last = Some(index);
                    return;
                }
                (self.pass)(&window, index);
                next = turn.next;
            }
            drop(window);
            self.stage.turns.finish_part();
        }
    }

    /// Does the actions of a turn. Returns false if another thread has failed.
    fn take(&mut self, memory: &impl Memory, actions: &[Action]) -> bool {
        match self.stage.measure {
            Measure::Contents => {
                actions.iter().all(|action| self.in_order(action, |worker| worker.check(memory, action)))
            }
            Measure::Time => {
                let begin = footprint::processor_time();
                let went_on =
                    actions.iter().all(|action| self.in_order(action, |worker| worker.act(memory, action)));
                self.findings.time += footprint::processor_time() - begin;
                went_on
            }
            Measure::Latency => actions.iter().all(|action| {
                self.in_order(action, |worker| {
                    let begin = Instant::now();
                    worker.act(memory, action);
                    let time = begin.elapsed().as_nanos() as u64;
                    if let Some(latencies) = &mut worker.findings.latencies {
                        latencies.saturating_record(time.max(1));
                    }
                })
            }),
        }
    }

    /// Does one action, after those before it on the same object. Returns false if another thread has failed.
    #[inline]
    fn in_order(&mut self, action: &Action, act: impl FnOnce(&mut Self)) -> bool {
        if self.stage.order == Order::Strict {
            act(self);
            return true;
        }
        let done = &self.stage.slots[action.slot as usize].done;
        if !self.stage.turns.look_until(|| done.load(Ordering::Acquire) == action.after) {
            return false;
        }
        act(self);
        done.store(action.after.wrapping_add(1), Ordering::Release);
        true
    }

    fn place(&self, slot: u32) -> &AtomicPtr<u8> {
        &self.stage.slots[slot as usize].address
    }

    /// The address of an object. None if its allocation was refused.
    fn get(&self, slot: u32) -> Option<NonNull<u8>> {
        NonNull::new(self.place(slot).load(Ordering::Relaxed))
    }

    fn set(&self, slot: u32, block: Option<NonNull<u8>>) {
        self.place(slot).store(block.map_or(ptr::null_mut(), NonNull::as_ptr), Ordering::Relaxed);
    }

    /// Does an action as a program would: it writes to what it allocates.
    #[inline]
    fn act(&mut self, memory: &impl Memory, action: &Action) {
        let slot = action.slot;
        match action.what {
            What::Alloc { layout, zeroed } => {
                let block = memory.alloc(layout, zeroed);
                if let Some(block) = block {
                    // SAFETY: a layout has at least one byte.
                    unsafe { block.write(1) };
                }
                self.note_and_set(slot, block);
            }
            What::Resize { from, to } => {
                let Some(block) = self.get(slot) else { return };
                // SAFETY: the window has the layout of every object; its new block is the one that is used.
                let moved = unsafe { memory.resize(block, from, to) };
                self.note_and_set(slot, moved);
            }
            What::Free { layout } => {
                let Some(block) = self.get(slot) else { return };
                // SAFETY: the window has the layout of every object, and frees it once.
                unsafe { memory.free(block, layout) };
                self.set(slot, None);
            }
        }
    }

    /// An object whose resize was refused is left where it is, and not used any more.
    fn note_and_set(&mut self, slot: u32, block: Option<NonNull<u8>>) {
        self.findings.refused += u64::from(block.is_none());
        self.set(slot, block);
    }

    /// Does an action, stamps every byte that is new, and compares every byte that is to go or may have moved.
    fn check(&mut self, memory: &impl Memory, action: &Action) {
        let Action { object, slot, .. } = *action;
        match action.what {
            What::Alloc { layout, zeroed } => {
                let block = memory.alloc(layout, zeroed);
                self.note_and_set(slot, block);
                if let Some(block) = block {
                    self.stamp_new(object, block, layout, zeroed);
                }
            }
            What::Resize { from, to } => {
                let Some(block) = self.get(slot) else { return };
                self.compare(object, block, from.size(), "before it was resized");
                // SAFETY: the window has the layout of every object; its new block is the one that is used.
                let moved = unsafe { memory.resize(block, from, to) };
                self.note_and_set(slot, moved);
                if let Some(block) = moved {
                    let kept = from.size().min(to.size());
                    self.compare(object, block, kept, "after it was resized");
                    // SAFETY: the block has the bytes of the new layout.
                    unsafe { block.add(kept).write_bytes(0, to.size() - kept) };
                    // SAFETY: the block has these bytes, they are written, and no other thread has them.
                    let bytes = unsafe { core::slice::from_raw_parts_mut(block.as_ptr(), to.size()) };
                    stamp::put(bytes, object, kept);
                }
            }
            What::Free { layout } => {
                let Some(block) = self.get(slot) else { return };
                self.compare(object, block, layout.size(), "before it was freed");
                // SAFETY: the window has the layout of every object, and frees it once.
                unsafe { memory.free(block, layout) };
                self.set(slot, None);
            }
        }
    }

    fn stamp_new(&mut self, object: u64, block: NonNull<u8>, layout: Layout, zeroed: bool) {
        if !block.addr().get().is_multiple_of(layout.align()) {
            let text = || format!("object {object} is not aligned to {}", layout.align());
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
            let text = || format!("byte {at} of object {object} is not zero");
            self.findings.note_difference(text);
        }
        stamp::put(bytes, object, 0);
    }

    fn compare(&mut self, object: u64, block: NonNull<u8>, size: usize, when: &str) {
        // SAFETY: the object is live and has these bytes; all were stamped, and no other thread has them.
        let bytes = unsafe { core::slice::from_raw_parts(block.as_ptr(), size) };
        if let Some(at) = stamp::find_difference(bytes, object) {
            let text = || format!("byte {at} of {size} of object {object} had changed {when}");
            self.findings.note_difference(text);
        }
    }

    fn clear(&mut self, memory: &impl Memory, left: &[(u64, u32, Layout)]) {
        for &(object, slot, layout) in left {
            let Some(block) = self.get(slot) else { continue };
            if self.stage.measure == Measure::Contents {
                self.compare(object, block, layout.size(), "at the end");
            }
            // SAFETY: the object is live with this layout, and no action frees it.
            unsafe { memory.free(block, layout) };
            self.set(slot, None);
        }
    }
}
