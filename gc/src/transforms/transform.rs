//! A transform, for the program.

use core::fmt;
use core::ptr::{self, NonNull};

use tripoint_core::{Arena, BarrierPair, Error, Lock, PoolHeader, Result, SymmetricFence};

use crate::collect::flip::know_objects;
use crate::collect::registering::Root;
use crate::heaps::heap::Heap;
use crate::heaps::own::Own;
use crate::heaps::stopped::Stopped;
use crate::roots::root::{Place, RootId};
use crate::scans::pairs::{Pair, Pairs};
use crate::transforms::not_applied::NotApplied;
use crate::transforms::replacement::Replacement;

const FULL: Error = Error::Parameter(
    "a transform has room for as many pairs as it was created for: create one with more room",
);

/// Pairs of an old and a new object. [Applied](Transform::apply), the new object of each takes the place of the old
/// one: every exact reference to the old object, in all objects and roots of the heap, then leads to the new one. This
/// is how a program replaces the instances of a class that was redefined (MPS: transforms; Smalltalk: `become:`).
///
/// Create it, add pairs, stop the heap, and apply it. Threads run in between: a transform is a root, so its objects
/// are kept, and may move. It takes the memory for its pairs when it is created, and none later.
///
/// Pairs of typed objects are [added](Transform::add) without `unsafe`:
///
/// ```
/// use core::time::Duration;
/// use tripoint_core::{ClientArena, ClientArenaOptions};
/// use tripoint_gc::{Gc, Heap, HeapOptions, Plain, SweptOptions, Transform, TypedObjects, object_types};
///
/// object_types! {
///     /// What others refer to, and not by links that change.
///     struct User<'g> { of: Gc<'g, Plain<u32>> }
/// }
///
/// let mut memory = Box::new_uninit_slice(256 << 10);
/// let arena = ClientArena::create(&mut memory, ClientArenaOptions::default())?;
/// let heap = Heap::create(&arena, HeapOptions::default())?;
/// let objects = TypedObjects::create(&heap, SweptOptions::default())?;
/// let mut mutator = objects.register()?;
///
/// let mut transform = Transform::create(&heap, 1)?;
/// let user = mutator.try_enter(|inside| {
///     let (old, new) = (inside.alloc(Plain(1))?, inside.alloc(Plain(2))?);
///     transform.add(inside, old, new)?;
///     objects.root(inside, inside.alloc(User { of: old })?)
/// })?;
///
/// let mut stopped = mutator.stop(Duration::MAX).unwrap();
/// assert_eq!(transform.apply(&mut stopped), Ok(1), "one reference led to the old object");
/// drop(stopped);
/// mutator.try_enter(|inside| {
///     assert_eq!(user.get(inside)?.of.0, 2);
///     Ok(())
/// })?;
/// # Ok::<(), tripoint_core::Error>(())
/// ```
pub struct Transform<'h, A: Arena, B: BarrierPair = SymmetricFence> {
    /// It is dropped first: then no collection looks at the pairs.
    root: Root<'h, A, B>,
    pairs: NonNull<Lock<Pairs>>,
    heap: &'h Heap<'h, A, B>,
    /// The memory of the pairs.
    _header: PoolHeader<A>,
}

// SAFETY: the pairs are a lock, which any thread may take, in memory of the arena. The heap is `Sync`.
unsafe impl<A: Arena + Send, B: BarrierPair> Send for Transform<'_, A, B> {}
// SAFETY: a shared transform is a lock, which any thread may take, and the heap, which is `Sync`.
unsafe impl<A: Arena, B: BarrierPair> Sync for Transform<'_, A, B> {}

impl<'h, A: Arena + Clone, B: BarrierPair> Transform<'h, A, B>
where
    A: 'h,
{
    /// Creates a transform of objects of `heap`, with memory for `room` pairs: two words for each, in whole grains of
    /// the arena. To destroy a transform is to drop it. If it is leaked, its objects are kept as long as their pools.
    ///
    /// # Errors
    /// Those of [`Arena::register`], [`Arena::alloc_tracts`] and [`Arena::alloc_descriptor`].
    pub fn create(heap: &'h Heap<'h, A, B>, room: usize) -> Result<Self> {
        let size = Pairs::size_for(room).ok_or(Error::Limit)?;
        let header = PoolHeader::create(heap.arena().clone(), "TRANSFORM")?;
        let block = header.extend(size)?;
        // SAFETY: the block has that many bytes, in whole grains, which are aligned to at least 64 bytes. Only the pairs
        // use it until the header is dropped.
        let pairs = unsafe { Pairs::create(block, room) };
        // SAFETY: the pairs stay in place until the header is dropped, after the root (the order of the fields), and all that
        // is in them was passed to `add_oldnew` or `add` as references to objects.
        let root = unsafe { heap.add_root(Place::Pairs(pairs)) }?;
        Ok(Self { root, pairs, heap, _header: header })
    }
}

impl<'h, A: Arena, B: BarrierPair> Transform<'h, A, B> {
    /// Adds a pair: when the transform is applied, `new` takes the place of `old`. `new` may lead to memory outside the
    /// automatic pools of the heap, for example to an object of a frozen segment. For typed objects use
    /// [`Transform::add`].
    ///
    /// If a pool is dropped, the pairs with its objects are forgotten.
    ///
    /// # Errors
    /// [`Error::Parameter`] if there is no room left.
    ///
    /// # Safety
    /// - Both are references as exact roots hold them, to objects that were committed and are not freed or moved since:
    ///   the caller's mutator runs and read them since it last gave way, or the caller stops the heap. In what a step
    ///   asks, a root that was there when the step began leads to them, and is not dropped before the step has ended.
    /// - From when the transform is applied on, the program is right if each reference to the old object that formats and
    ///   exact roots pass to [`Scan::fix`](crate::Scan::fix), weak ones too, is a reference to the new one.
    /// - Each is passed in its place, so that it can be changed there, also if the old object does not move. The program
    ///   does not use other references to the old object from then on, which a collection may free.
    pub unsafe fn add_oldnew(&mut self, old: NonNull<u8>, new: NonNull<u8>) -> Result<()> {
        self.push(old, new)
    }

    /// Adds a pair of objects.
    pub(crate) fn push(&self, old: NonNull<u8>, new: NonNull<u8>) -> Result<()> {
        let has_room = self.pairs().lock().push(Pair { old: old.as_ptr(), new: new.as_ptr() });
        if has_room { Ok(()) } else { Err(FULL) }
    }

    /// Applies the transform, for the thread that stops the heap: replaces every exact reference to an old object by one
    /// to its new object, in roots and objects, weak ones too. Returns how many references were replaced. The pairs are
    /// forgotten then, and others may be added.
    ///
    /// Either all are replaced or none. Threads see the new objects when the stop ends, as after a collection: a mutator
    /// reads its references again from roots and objects.
    ///
    /// Nothing else changes in the old objects and the new ones. References that they have are replaced as all others, so
    /// a new object that refers to its own old one refers to itself afterwards. Registrations for
    /// [finalization](crate::Mutator::finalize) of an old object are those of the new one, and
    /// [dependencies](crate::LocationDependency) on its address are stale. Unless something that is no exact reference
    /// keeps it, the next collection of the whole heap frees it.
    ///
    /// As in [`Stopped::walk_objects`], the commit of a reservation that is held over the stop fails, if its object may
    /// have references. A collection in steps ends. A transform looks at all objects and roots twice, whatever the number of
    /// pairs, and finds a pair by a binary search. It allocates nothing.
    ///
    /// # Errors
    /// [`NotApplied`], which says why. Ambiguous references and weak ones of objects that are dead count, too: they may
    /// be gone after [`Stopped::collect`].
    pub fn apply(&mut self, stopped: &mut Stopped<'_, '_, A, B>) -> Result<usize, NotApplied> {
        if !ptr::eq(stopped.heap().address(), self.heap.address()) {
            return Err(NotApplied::OtherHeap);
        }
        let heap = self.heap;
        let (members, roots) = (heap.members().lock(), heap.roots().lock());
        let flipped = know_objects(stopped.at_stop(), heap, &members);
        let own = Own::new(heap.arena(), &members);
        let mut pairs = self.pairs().lock();
        pairs.sort();
        let replacement = Replacement {
            flipped,
            heap,
            members: &members,
            roots: &roots,
            own: &own,
            pairs: &pairs,
            id: self.id(),
        };
        replacement.check_pairs()?;
        // SAFETY: no collection has begun, because the pools are locked.
        unsafe { replacement.check_references() }?;
        let zones = replacement.zones();
        // SAFETY: no collection has begun, because the pools are locked.
        let replaced = unsafe { replacement.replace_all() };
        heap.history().age(zones);
        pairs.clear();
        Ok(replaced)
    }

    /// The identifier of the root that it is, by which [walks](Stopped::walk_roots) name it.
    #[must_use]
    pub fn id(&self) -> RootId {
        self.root.id()
    }

    /// The heap of its objects.
    pub(crate) const fn heap(&self) -> &'h Heap<'h, A, B> {
        self.heap
    }

    const fn pairs(&self) -> &Lock<Pairs> {
        // SAFETY: the pairs stay in place until the header is dropped, and are only ever borrowed shared.
        unsafe { self.pairs.as_ref() }
    }
}

impl<A: Arena, B: BarrierPair> fmt::Debug for Transform<'_, A, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Transform")
    }
}
