//! Memory that was released, kept in itself.

use core::ptr::NonNull;

use tripoint_core::Align;

/// Where memory is wanted: `size` bytes at a multiple of `align`, not below `from`, and ending at `limit` at the latest.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted {
    pub(super) size: usize,
    pub(super) align: Align,
    pub(super) from: usize,
    pub(super) limit: usize,
}

impl Wanted {
    /// The lowest place for it in memory from `base` on; `None` if that is above its limit.
    pub(super) fn place(self, base: usize) -> Option<usize> {
        let place = self.align.round_up(base.max(self.from))?;
        (place.checked_add(self.size)? <= self.limit).then_some(place)
    }
}

/// A range of released memory: what its first bytes say. The others are zero.
#[derive(Debug)]
struct Run {
    size: usize,
    next: Option<NonNull<Self>>,
}

/// Runs of released memory, the lowest first. No two of them touch.
///
/// Invariant: each run is valid for reads and writes for good, is nothing else's, has the provenance of all, and is zero
/// but for its `Run`.
#[derive(Debug, Default)]
pub struct Released {
    first: Option<NonNull<Run>>,
}

// SAFETY: the runs are the value's alone, in whichever thread it is.
unsafe impl Send for Released {}

impl Released {
    /// Nothing was released.
    #[must_use]
    pub const fn new() -> Self {
        Self { first: None }
    }

    /// The runs: base and size, in bytes.
    pub fn runs(&self) -> impl Iterator<Item = (NonNull<u8>, usize)> + '_ {
        let mut next = self.first;
        core::iter::from_fn(move || {
            let run = next?;
            // SAFETY: the invariant of the type.
            let Run { size, next: behind } = unsafe { run.read() };
            next = behind;
            Some((run.cast(), size))
        })
    }

    /// Where the run begins that ends at `end`.
    pub(super) fn begin_of_run_to(&self, end: usize) -> Option<usize> {
        self.runs()
            .map(|(base, size)| (base.addr().get(), size))
            .find(|(base, size)| end.checked_sub(*base) == Some(*size))
            .map(|run| run.0)
    }

    /// The place that refers to the first run above `addr`, and the run before it.
    fn place_of(&mut self, addr: usize) -> (NonNull<Option<NonNull<Run>>>, Option<NonNull<Run>>) {
        let (mut place, mut before) = (NonNull::from(&mut self.first), None);
        // SAFETY: the place is in the value, or in a run of it.
        while let Some(run) = unsafe { place.read() }.filter(|run| run.addr().get() < addr) {
            before = Some(run);
            // SAFETY: the invariant of the type.
            place = unsafe { NonNull::from(&mut (*run.as_ptr()).next) };
        }
        (place, before)
    }

    /// Adds a range, and joins it with those that it touches.
    ///
    /// # Safety
    /// - The range is one or more whole pages; it is zero, valid for reads and writes for good, and no
    ///   code uses it any more. It has the provenance of all ranges.
    pub(super) unsafe fn give(&mut self, base: NonNull<u8>, size: usize) {
        let (place, before) = self.place_of(base.addr().get());
        let mut run = base.cast::<Run>();
        // SAFETY: the place is in the value, or in a run of it. The range is large enough for a run, and no code uses it.
        unsafe {
            let next = place.read();
            run.write(Run { size, next });
            place.write(Some(run));
        }
        if let Some(before) = before {
            // SAFETY: both are runs in a row.
            run = unsafe { Self::join(before) };
        }
        // SAFETY: as before, if there is one behind.
        unsafe { Self::join(run) };
    }

    /// Joins a run with the next if they touch. Returns the run that the next lies in, or the next.
    ///
    /// # Safety
    /// - It is a run of a value that the caller has exclusively.
    unsafe fn join(run: NonNull<Run>) -> NonNull<Run> {
        // SAFETY: the invariant of the type.
        let Run { size, next } = unsafe { run.read() };
        let Some(next) = next else { return run };
        if next.addr().get() - run.addr().get() != size {
            return next;
        }
        // SAFETY: the invariant of the type: both are valid, and have one provenance. What was the next run's first bytes is
        // zero after that, as the others.
        unsafe {
            let Run { size: more, next: behind } = next.read();
            next.cast::<u8>().write_bytes(0, size_of::<Run>());
            run.write(Run { size: size + more, next: behind });
        }
        run
    }

    /// Takes the lowest memory that is wanted, all of it zero.
    pub(super) fn take(&mut self, wanted: Wanted) -> Option<NonNull<u8>> {
        let (base, size, place) = self.runs().find_map(|(base, size)| {
            let place = wanted.place(base.addr().get())?;
            // The end may be that of all addresses.
            let room = size.checked_sub(place - base.addr().get())?;
            (wanted.size <= room).then_some((base, size, place))
        })?;
        let offset = place - base.addr().get();
        let rest = size - offset - wanted.size;
        let (referrer, _) = self.place_of(base.addr().get());
        // SAFETY: the place is in the value or in a run of it; the run is taken out of the list, and is all zero then. What is
        // before and behind the wanted memory lies in it, and is given back.
        unsafe {
            let Run { next, .. } = base.cast::<Run>().read();
            referrer.write(next);
            base.write_bytes(0, size_of::<Run>());
            if offset > 0 {
                self.give(base, offset);
            }
            if rest > 0 {
                self.give(base.add(offset + wanted.size), rest);
            }
            Some(base.add(offset))
        }
    }
}
