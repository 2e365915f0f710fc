//! Reading the words of a buffer together, from any thread, and checking them.

use core::fmt;

use bitflags::bitflags;
use tripoint_core::ensure;
use tripoint_core::internal::Ordering;
use tripoint_core::line;
use tripoint_core::{Addr, AddrRange, Check, CheckError, CheckLevel, Describe};

use crate::protocol::buffer::{Buffer, SIGNATURE, UNDECIDED};

bitflags! {
    /// The state of a buffer at one moment.
    ///
    /// With no flag set it is **reset**. With `ATTACHED` alone it is **ready** or, between
    /// a reserve and its commit, **busy**.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct BufferMode: u8 {
        /// The buffer has memory.
        const ATTACHED = 1 << 0;
        /// `limit` is zero: the owner's next reserve or commit gives way.
        const TRAPPED = 1 << 1;
        /// The buffer was flipped, and the owner has not yet gone on from the flip.
        const FLIPPED = 1 << 2;
        /// `limit` lies before the buffer's end, at a stop.
        const STOPPED = 1 << 3;
    }
}

/// The words of a buffer, read together. In a buffer without memory all addresses are zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// Where the buffer's memory begins.
    pub base: Addr,
    /// Up to where objects are declared. In a flippable pool the last of them may be one
    /// whose commit fails; the owner then takes it back.
    pub init: Addr,
    /// Up to where memory is allocated, as far as observers can tell. A reservation that
    /// is held as a token does not show.
    pub alloc: Addr,
    /// What `limit` held: zero, a stop, or `pool_limit`.
    pub limit: Addr,
    /// Where the buffer's memory ends.
    pub pool_limit: Addr,
    /// Up to where a flip saw whole objects; `init` if there was no flip.
    /// [`Buffer::scan_limit`] says which threads may read objects by it.
    pub scan_limit: Addr,
    /// The state that these words amount to.
    pub mode: BufferMode,
}

impl Snapshot {
    /// The memory of the buffer.
    ///
    /// A snapshot of a buffer holds words that were read together: torn reads are thrown away.
    /// If its fields were set otherwise and `base` is above `pool_limit`, the range is empty.
    #[must_use]
    pub fn range(&self) -> AddrRange {
        AddrRange::new(self.base, self.pool_limit).unwrap_or_default()
    }
}

/// Whether the owner of a buffer is between a reserve and its commit, as far as the words of the buffer tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Readiness {
    /// It is not: the buffer has no memory, so there is nothing that could be reserved.
    Ready,
    /// It is: `alloc` lies behind `init`. So it is with clients in C, which move `alloc`. (A frame that is popped at this moment
    /// may look so, too.)
    Busy,
    /// The words do not tell: a reservation that is held as a token moves no word.
    Unknown,
}

impl Snapshot {
    /// Whether the owner was between a reserve and its commit. Only the owner itself always knows
    /// ([`AllocationPoint::is_ready`](crate::AllocationPoint::is_ready)).
    #[must_use]
    pub fn readiness(&self) -> Readiness {
        match self.mode.contains(BufferMode::ATTACHED) {
            false => Readiness::Ready,
            true if self.alloc > self.init => Readiness::Busy,
            true => Readiness::Unknown,
        }
    }
}

impl Buffer {
    /// Reads the words together, from any thread. Returns `None` if the owner was changing
    /// them each time this tried; ask again later.
    #[must_use]
    pub fn snapshot(&self) -> Option<Snapshot> {
        // Models explore every outcome of a try; one is enough for them.
        const TRIES: usize = if cfg!(tripoint_loom) { 1 } else { 8 };
        (0..TRIES).find_map(|_| self.try_snapshot())
    }

    /// Returns what `read` finds, unless words changed together meanwhile.
    pub(crate) fn undisturbed<T>(&self, read: impl FnOnce() -> T) -> Option<T> {
        let before = self.transitions.load(Ordering::Acquire);
        // The loads of `read` acquire. So if one of the words is newer than the first look at the count, the second one sees that.
        let found = read();
        let after = self.transitions.load(Ordering::Relaxed);
        (before == after && before.is_multiple_of(2)).then_some(found)
    }

    fn try_snapshot(&self) -> Option<Snapshot> {
        self.undisturbed(|| self.read_words())
    }

    fn read_words(&self) -> Snapshot {
        let base = Addr::of(self.base.load(Ordering::Acquire));
        let pool_limit = Addr::of(self.pool_limit.load(Ordering::Acquire));
        let limit = Addr::of(self.fields.limit.load(Ordering::Acquire));
        // Before `init`, which is not older than a flip that saw it.
        let flip = self.init_at_flip.load(Ordering::Acquire);
        // `alloc` is read before `init`, so that it is not newer.
        let alloc = Addr::of(self.fields.alloc.load(Ordering::Acquire));
        let init = Addr::of(self.fields.init.load(Ordering::Acquire));
        let scan_limit = if flip.is_null() || flip == UNDECIDED { init } else { Addr::of(flip) };
        let mut mode = BufferMode::empty();
        mode.set(BufferMode::ATTACHED, base != Addr::ZERO);
        mode.set(BufferMode::TRAPPED, base != Addr::ZERO && limit == Addr::ZERO);
        mode.set(BufferMode::FLIPPED, !flip.is_null());
        mode.set(BufferMode::STOPPED, limit != Addr::ZERO && limit < pool_limit);
        // Only a torn read, which `undisturbed` throws away, has a flip of other memory.
        let scan_limit = if scan_limit < base || scan_limit > pool_limit { base } else { scan_limit };
        Snapshot { base, init, alloc: alloc.max(init), limit, pool_limit, scan_limit, mode }
    }

    fn check_words(&self) -> Result<(), CheckError> {
        // During a transition nothing holds, and no thread relies on it.
        let Some(now) = self.snapshot() else { return Ok(()) };
        let attached = now.mode.contains(BufferMode::ATTACHED);
        let all_or_none = (now.init != Addr::ZERO) == attached && (now.pool_limit != Addr::ZERO) == attached;
        ensure("Buffer", all_or_none, "base, init and limit are all set or all zero")?;
        ensure("Buffer", now.base <= now.init, "base <= init")?;
        ensure(
            "Buffer",
            now.init <= now.alloc && now.alloc <= now.pool_limit,
            "init <= alloc <= pool limit",
        )?;
        let aligned = |addr: Addr| addr.get().is_multiple_of(self.align());
        ensure(
            "Buffer",
            [now.base, now.init, now.alloc, now.pool_limit].into_iter().all(aligned),
            "base, init, alloc and limit are aligned as objects of the pool",
        )?;
        ensure("Buffer", now.limit <= now.pool_limit, "limit is zero, a stop, or the pool limit")?;
        ensure("Buffer", now.scan_limit <= now.init, "a flip saw no more than init")?;
        let ranked = !self.rank_set().is_empty() || !now.mode.contains(BufferMode::FLIPPED);
        ensure("Buffer", ranked, "a flipped buffer has a rank")
    }
}

impl Check for Buffer {
    fn check(&self, level: CheckLevel) -> Result<(), CheckError> {
        self.signature.check("Buffer", SIGNATURE)?;
        if level >= CheckLevel::Shallow {
            // What was emptied is read first, since it had been filled before. A pop is not a
            // transition, but only makes it grow, and a carry is seen late.
            let agree = self.undisturbed(|| self.empty_size() <= self.fill_size());
            ensure("Buffer", agree.unwrap_or(true), "empty size <= fill size")?;
            self.check_words()?;
        }
        Ok(())
    }
}

impl Describe for Buffer {
    fn describe(&self, out: &mut dyn fmt::Write, depth: usize) -> fmt::Result {
        let Some(now) = self.snapshot() else {
            return line(out, depth, "buffer", format_args!("in transition"));
        };
        line(out, depth, "buffer", format_args!("{:?} {:?}", self.kind(), now.mode))?;
        line(out, depth + 1, "base", format_args!("{}", now.base))?;
        line(out, depth + 1, "init", format_args!("{}", now.init))?;
        line(out, depth + 1, "alloc", format_args!("{}", now.alloc))?;
        line(out, depth + 1, "limit", format_args!("{} of {}", now.limit, now.pool_limit))?;
        line(out, depth + 1, "scan limit", format_args!("{}", now.scan_limit))?;
        line(out, depth + 1, "ranks", format_args!("{:?}", self.rank_set()))?;
        line(out, depth + 1, "filled", format_args!("{} bytes", self.fill_size()))?;
        line(out, depth + 1, "emptied", format_args!("{} bytes", self.empty_size()))
    }
}

#[cfg(all(test, not(tripoint_loom)))]
mod tests {
    use super::*;
    use core::ptr;

    use tripoint_core::internal::AtomicPtr;
    use tripoint_core::{BufferKind, RankSet};

    use crate::protocol::owner::Owner;

    fn addr(value: usize) -> *mut u8 {
        ptr::without_provenance_mut(value)
    }

    /// A flippable buffer of `[0x1000, 0x2000)` with objects up to 0x1100, armed.
    fn armed() -> Buffer {
        let buffer = Buffer::new(BufferKind::Mutator, RankSet::EXACT);
        // SAFETY: the buffer has no other owner.
        let mut owner = unsafe { Owner::new(&buffer) };
        owner.attach(addr(0x1000), addr(0x1100), addr(0x2000));
        owner.rearm(addr(0x2000), &mut |_| {});
        buffer
    }

    /// What a snapshot says after `change`.
    fn shown(change: impl FnOnce(&Buffer)) -> Snapshot {
        let buffer = armed();
        change(&buffer);
        buffer.snapshot().unwrap()
    }

    #[test]
    fn a_snapshot_says_what_the_words_amount_to() {
        let attached = BufferMode::ATTACHED;
        let ready = Snapshot {
            base: Addr::new(0x1000),
            init: Addr::new(0x1100),
            alloc: Addr::new(0x1100),
            limit: Addr::new(0x2000),
            pool_limit: Addr::new(0x2000),
            scan_limit: Addr::new(0x1100),
            mode: attached,
        };
        assert_eq!(shown(|_| ()), ready);
        assert_eq!((ready.range().base(), ready.range().size()), (Addr::new(0x1000), 0x1000));
        let stopped = shown(|buffer| buffer.fields.limit.store(addr(0x1800), Ordering::Relaxed));
        assert_eq!(
            stopped,
            Snapshot { limit: Addr::new(0x1800), mode: attached | BufferMode::STOPPED, ..ready }
        );
        let trapped = shown(Buffer::trip);
        assert_eq!(trapped, Snapshot { limit: Addr::ZERO, mode: attached | BufferMode::TRAPPED, ..ready });
        let reserved = shown(|buffer| buffer.fields.alloc.store(addr(0x1180), Ordering::Relaxed));
        assert_eq!(reserved, Snapshot { alloc: Addr::new(0x1180), ..ready });
        assert_eq!((ready.readiness(), reserved.readiness()), (Readiness::Unknown, Readiness::Busy));
        let reset = Buffer::new(BufferKind::Mutator, RankSet::empty());
        reset.trip();
        assert_eq!(reset.snapshot().unwrap().mode, BufferMode::empty(), "there is nothing to trap");
    }

    #[test]
    fn a_snapshot_of_a_flip_says_up_to_where_objects_were_seen() {
        let flipped = |seen| {
            let now = shown(|buffer| buffer.init_at_flip.store(seen, Ordering::Relaxed));
            assert_eq!(now.mode, BufferMode::ATTACHED | BufferMode::FLIPPED);
            now.scan_limit.get()
        };
        assert_eq!(flipped(addr(0x1080)), 0x1080);
        assert_eq!(flipped(addr(0x1000)), 0x1000);
        assert_eq!(flipped(UNDECIDED), 0x1100, "all objects so far will be seen");
        assert_eq!(flipped(addr(0x0800)), 0x1000, "what was seen was in other memory");
        assert_eq!(flipped(addr(0x2800)), 0x1000, "what was seen was in other memory");
        assert_eq!(flipped(addr(0x2000)), 0x2000);
    }

    #[test]
    fn words_that_change_together_are_not_shown_while_they_do() {
        let buffer = armed();
        buffer.transitions.fetch_add(1, Ordering::Relaxed);
        assert_eq!(buffer.snapshot(), None);
        assert_eq!(buffer.check(CheckLevel::Deep), Ok(()), "no thread relies on them");
        let mut text = std::string::String::new();
        buffer.describe(&mut text, 1).unwrap();
        assert_eq!(text, "  buffer: in transition\n");
        buffer.transitions.fetch_add(1, Ordering::Relaxed);
        assert!(buffer.snapshot().is_some());
    }

    /// The rule that a check finds broken after `damage`.
    fn broken(damage: impl FnOnce(&Buffer)) -> &'static str {
        let buffer = armed();
        damage(&buffer);
        assert!(buffer.check(CheckLevel::Cheap).is_ok());
        assert_eq!(buffer.check(CheckLevel::Shallow), buffer.check(CheckLevel::Deep));
        buffer.check(CheckLevel::Shallow).map_or_else(|error| error.rule, |()| "whole")
    }

    #[test]
    fn checks_name_the_rule_that_was_broken() {
        let together = "base, init and limit are all set or all zero";
        let set = |word: &AtomicPtr<u8>, value| word.store(addr(value), Ordering::Relaxed);
        assert_eq!(broken(|_| ()), "whole");
        assert_eq!(broken(|buffer| set(&buffer.fields.init, 0)), together);
        assert_eq!(broken(|buffer| set(&buffer.pool_limit, 0)), together);
        assert_eq!(broken(|buffer| set(&buffer.base, 0)), together);
        assert_eq!(broken(|buffer| set(&buffer.base, 0x1180)), "base <= init");
        assert_eq!(broken(|buffer| set(&buffer.base, 0x1100)), "whole");
        assert_eq!(broken(|buffer| set(&buffer.fields.alloc, 0x2010)), "init <= alloc <= pool limit");
        assert_eq!(broken(|buffer| set(&buffer.fields.alloc, 0x2000)), "whole");
        assert_eq!(broken(|buffer| set(&buffer.fields.init, 0x2010)), "init <= alloc <= pool limit");
        let limit = "limit is zero, a stop, or the pool limit";
        assert_eq!(broken(|buffer| set(&buffer.fields.limit, 0x2010)), limit);
        assert_eq!(broken(|buffer| set(&buffer.fields.limit, 0)), "whole");
        assert_eq!(broken(|buffer| set(&buffer.init_at_flip, 0x1110)), "a flip saw no more than init");
        assert_eq!(broken(|buffer| set(&buffer.init_at_flip, 0x1100)), "whole");
        assert_eq!(broken(|buffer| buffer.empty_size.add(0xf00)), "whole");
        assert_eq!(broken(|buffer| buffer.empty_size.add(0xf01)), "empty size <= fill size");
        let flipped_without_ranks = |buffer: &Buffer| {
            set(&buffer.init_at_flip, 0x1100);
            buffer.set_rank_set(RankSet::empty());
        };
        assert_eq!(broken(flipped_without_ranks), "a flipped buffer has a rank");
        assert_eq!(broken(|buffer| buffer.set_rank_set(RankSet::empty())), "whole");
        let aligned = |set_words: &dyn Fn(&Buffer)| {
            let layout = core::alloc::Layout::new::<Buffer>();
            let buffer = Buffer::with_layout(BufferKind::Mutator, RankSet::EXACT, layout, 16);
            // SAFETY: the buffer has no other owner.
            let mut owner = unsafe { Owner::new(&buffer) };
            owner.attach(addr(0x1000), addr(0x1100), addr(0x2000));
            set_words(&buffer);
            buffer.check(CheckLevel::Shallow).map_or_else(|error| error.rule, |()| "whole")
        };
        let misaligned = "base, init, alloc and limit are aligned as objects of the pool";
        assert_eq!(aligned(&|_| ()), "whole");
        assert_eq!(aligned(&|buffer| set(&buffer.base, 0x1008)), misaligned);
        assert_eq!(aligned(&|buffer| set(&buffer.fields.init, 0x10f8)), misaligned);
        assert_eq!(aligned(&|buffer| set(&buffer.fields.alloc, 0x1108)), misaligned);
        assert_eq!(aligned(&|buffer| set(&buffer.pool_limit, 0x2001)), misaligned);
        assert_eq!(aligned(&|buffer| set(&buffer.fields.limit, 0x1801)), "whole", "a stop may lie anywhere");
        let buffer = armed();
        buffer.signature.clear();
        assert_eq!(buffer.check(CheckLevel::Cheap).map_err(|error| error.rule), Err("the signature is set"));
    }

    #[test]
    fn the_scan_limit_is_init_unless_a_flip_was_decided() {
        let buffer = armed();
        let after = |seen| {
            buffer.init_at_flip.store(seen, Ordering::Relaxed);
            buffer.scan_limit()
        };
        assert_eq!(after(ptr::null_mut()), addr(0x1100));
        assert_eq!(after(UNDECIDED), addr(0x1100));
        assert_eq!(after(addr(0x1080)), addr(0x1080));
    }

    #[test]
    fn it_describes_its_words() {
        let buffer = armed();
        buffer.fields.limit.store(addr(0x1800), Ordering::Relaxed);
        buffer.empty_size.add(16);
        let mut text = std::string::String::new();
        buffer.describe(&mut text, 1).unwrap();
        let expected = [
            "  buffer: Mutator BufferMode(ATTACHED | STOPPED)",
            "    base: 0x1000",
            "    init: 0x1100",
            "    alloc: 0x1100",
            "    limit: 0x1800 of 0x2000",
            "    scan limit: 0x1100",
            "    ranks: RankSet(EXACT)",
            "    filled: 3840 bytes",
            "    emptied: 16 bytes",
        ];
        assert_eq!(text.lines().collect::<std::vec::Vec<_>>(), expected);
    }
}
