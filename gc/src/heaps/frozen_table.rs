//! The frozen segments of a heap.

use core::alloc::Layout;
use core::mem::offset_of;
use core::ptr::NonNull;

use tripoint_core::internal::{AtomicUsize, Ordering, Registry, RegistryNode};
use tripoint_core::{Addr, AddrRange, Error, Lock, Result};

use crate::heaps::frozen_range::{EnclosingRange, FrozenRange};

const OVERLAPS: Error = Error::Parameter("a frozen segment overlaps another: unregister that first");

/// A frozen segment in the memory of its heap's arena: there as long as the heap, and used again.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct FrozenRecord {
    node: RegistryNode,
    objects: FrozenRange,
    /// All memory into which the objects may grow, changed under the lock of the table; both are zero if there is none.
    base: AtomicUsize,
    limit: AtomicUsize,
}

impl FrozenRecord {
    /// Where behind its node the ends of its objects are, for readers outside of the process.
    pub(crate) const OFFSETS: [usize; 2] = [
        offset_of!(Self, objects) + FrozenRange::OFFSETS[0],
        offset_of!(Self, objects) + FrozenRange::OFFSETS[1],
    ];

    /// A record that is claimed, of no memory.
    pub(crate) fn new() -> Self {
        let node = RegistryNode::new(Layout::new::<Self>());
        let (base, limit) = (AtomicUsize::new(0), AtomicUsize::new(0));
        Self { node, objects: FrozenRange::new(), base, limit }
    }

    pub(crate) const fn objects(&self) -> &FrozenRange {
        &self.objects
    }

    fn memory(&self) -> Option<AddrRange> {
        let [base, limit] = [&self.base, &self.limit].map(|addr| Addr::new(addr.load(Ordering::Relaxed)));
        AddrRange::new(base, limit).filter(|memory| !memory.is_empty())
    }

    fn set_memory(&self, memory: AddrRange) {
        self.base.store(memory.base().get(), Ordering::Relaxed);
        self.limit.store(memory.limit().get(), Ordering::Relaxed);
    }
}

/// The frozen segments of a heap: records that stay in place, and a range that encloses them all.
#[derive(Debug)]
pub(crate) struct FrozenTable {
    records: Registry,
    enclosing: EnclosingRange,
    changes: Lock<()>,
}

impl FrozenTable {
    /// Where its records are listed, for readers outside of the process.
    pub(crate) fn registry_address(&self) -> usize {
        core::ptr::from_ref(&self.records).addr()
    }

    pub(crate) fn new() -> Self {
        Self { records: Registry::new(), enclosing: EnclosingRange::new(), changes: Lock::new(()) }
    }

    /// Whether `addr` is in a frozen segment: two compares if it is in none and not between two.
    #[inline]
    pub(crate) fn contains(&self, addr: Addr) -> bool {
        self.enclosing.contains(addr) && self.iter().any(|record| record.objects.contains(addr))
    }

    /// All records, also of segments that were unregistered.
    fn iter(&self) -> impl Iterator<Item = &FrozenRecord> {
        // SAFETY: all nodes of the list begin records, which are valid as long as the table, and only ever borrowed
        // shared (`add`).
        self.records.iter().map(|node| unsafe { node.cast::<FrozenRecord>().as_ref() })
    }

    /// A record that an earlier segment left, which the caller owns.
    pub(crate) fn reuse(&self) -> Option<NonNull<FrozenRecord>> {
        Registry::claim(&self.records, Layout::new::<FrozenRecord>()).map(NonNull::cast)
    }

    /// Puts a new record into the table, which the caller owns.
    ///
    /// # Safety
    /// - It is initialised, in no table, and stays valid and in place as long as this one.
    pub(crate) unsafe fn add(&self, record: NonNull<FrozenRecord>) {
        // SAFETY: the node is the first field of the record, which the caller promises to be initialised, in no list,
        // and valid as long as the table.
        unsafe { self.records.push(record.cast()) };
    }

    /// Gives up a record that the caller owns.
    ///
    /// # Safety
    /// - It is in this table, its segment is not registered, and the caller does not use it afterwards.
    pub(crate) unsafe fn leave(&self, record: NonNull<FrozenRecord>) {
        // SAFETY: the caller owns the record, which is in the list, and does not use it afterwards.
        unsafe { self.records.release(record.cast()) };
    }

    /// Registers `objects` in `memory` by a record that the caller owns.
    pub(crate) fn register(
        &self,
        record: &FrozenRecord,
        memory: AddrRange,
        objects: AddrRange,
    ) -> Result<()> {
        let _one_at_a_time = self.changes.lock();
        if self.iter().filter_map(FrozenRecord::memory).any(|other| other.overlaps(memory)) {
            return Err(OVERLAPS);
        }
        record.set_memory(memory);
        // First of all, so that a reader that may find the segment is not turned away.
        self.enclose_all();
        record.objects.register(objects);
        Ok(())
    }

    /// Unregisters the segment of a record that the caller owns.
    pub(crate) fn unregister(&self, record: &FrozenRecord) {
        let _one_at_a_time = self.changes.lock();
        record.objects.unregister();
        record.set_memory(AddrRange::default());
        self.enclose_all();
    }

    /// Encloses the memory of all records.
    fn enclose_all(&self) {
        let memory = self.iter().filter_map(FrozenRecord::memory);
        let all = memory.reduce(|all, memory| {
            let (base, limit) = (all.base().min(memory.base()), all.limit().max(memory.limit()));
            AddrRange::new(base, limit).unwrap_or(all)
        });
        self.enclosing.enclose(all);
    }

    /// All records, for the end of their heap. Each may be freed as it comes.
    pub(crate) fn records(&self) -> impl Iterator<Item = NonNull<u8>> {
        self.records.iter().map(NonNull::cast)
    }
}
