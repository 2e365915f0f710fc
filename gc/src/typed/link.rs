//! References in objects that may change.

use core::fmt;
use core::marker::PhantomData;

use tripoint_core::{Arena, BarrierPair};

use crate::outlines::type_outline::TypeOutline;
use crate::scans::scan::Scan;
use crate::typed::inside::Inside;
use crate::typed::link_word::LinkWord;
use crate::typed::reference::{Brand, Gc};
use crate::typed::referent::Referent;
use crate::typed::trace::Trace;

/// A place in an object for a reference that may change, or for none.
///
/// After an object was made, only [`Link::set`] stores references in it, so that is what collectors have to know of.
/// Several threads may read and write a link at the same time. One that reads a reference sees the whole object.
///
/// ```
/// use tripoint_gc::{Link, object_types};
///
/// object_types! {
///     /// A list whose end may be added to.
///     pub struct Item<'g> {
///         number: u64,
///         next: Link<'g, Item<'g>>,
///     }
/// }
/// ```
pub struct Link<'g, T: Referent + ?Sized> {
    pub(crate) word: LinkWord,
    brand: Brand<'g>,
    // It takes references and returns them.
    to: PhantomData<fn(*const T) -> *const T>,
}

impl<'g, T: Referent + ?Sized> Link<'g, T> {
    /// Creates a place with this reference.
    #[must_use]
    pub fn new(to: Option<Gc<'g, T>>) -> Self {
        Self { word: LinkWord::new(to), brand: PhantomData, to: PhantomData }
    }

    /// The reference that was stored last, as far as this thread sees.
    #[inline(always)]
    #[must_use]
    pub fn get(&self) -> Option<Gc<'g, T>> {
        // SAFETY: only references with the lifetime `'g` are stored here. If it was stored inside the heap at another
        // time, the object that has this place was reachable since then, and so was this one.
        self.word.load().map(|place| unsafe { Gc::at(place) })
    }

    /// Stores another reference, or none.
    #[inline(always)]
    pub fn set<A: Arena + Clone, B: BarrierPair>(
        &self,
        inside: &Inside<'g, A, B>,
        to: impl Into<Option<Gc<'g, T>>>,
    ) {
        self.word.store(inside, to.into());
    }
}

impl<T: Referent + ?Sized> Default for Link<'_, T> {
    fn default() -> Self {
        Self::new(None)
    }
}

// SAFETY: the one reference is passed on, and written to its place. Its object's type changes as `Referent::At` says.
unsafe impl<T: Referent + ?Sized> Trace for Link<'_, T> {
    type At<'n> = Link<'n, T::At<'n>>;
    type Static = Link<'static, T::Static>;

    const HAS_REFERENCES: bool = true;
    const HAS_WEAK_LINKS: bool = false;
    const OUTLINE: &'static TypeOutline = &TypeOutline::strong::<Self>("Link");

    #[inline]
    fn trace(&mut self, scan: &mut Scan<'_>) {
        let mut place = self.word.at_stop();
        if !place.is_null() {
            scan.fix(&mut place);
            self.word.fix_at_stop(place);
        }
    }
}

impl<T: Referent + ?Sized> fmt::Debug for Link<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_some = self.word.load().is_some();
        f.write_str(if is_some { "Link(..)" } else { "Link(None)" })
    }
}

#[cfg(all(test, not(tripoint_loom)))]
mod tests {
    use core::time::Duration;
    use std::boxed::Box;

    use tripoint_core::{Addr, ClientArena, ClientArenaOptions};

    use super::*;
    use crate::classes::class::SweptOptions;
    use crate::heaps::heap::{Heap, HeapOptions};
    use crate::segments::card::{CLEAN, WRITTEN};
    use crate::typed::typed_objects::TypedObjects;

    crate::object_types! {
        /// An object with a place for a reference to another.
        struct Item<'g> {
            next: Link<'g, Item<'g>>,
        }
    }

    /// (design/gc.md `.segment.write`)
    #[test]
    fn setting_a_link_writes_its_card() {
        let mut memory = Box::new_uninit_slice(64 << 10);
        let arena = ClientArena::create(&mut memory, ClientArenaOptions::default()).unwrap();
        let heap = Heap::create(&arena, HeapOptions::default()).unwrap();
        let objects = TypedObjects::create(&heap, SweptOptions { segment_size: 4 << 10 }).unwrap();
        let mut mutator = objects.register().unwrap();
        let kept = mutator.enter(|inside| {
            let item = inside.alloc(Item { next: Link::default() }).unwrap();
            objects.root(inside, item).unwrap()
        });
        mutator.collect(Duration::MAX).unwrap();
        let cards = mutator.enter(|inside| {
            let item = kept.get(inside).unwrap();
            let place = Addr::of((&raw const item.next).cast::<u8>());
            let segment = objects.moved.pool().segment_of(place);
            segment.clean_cards();
            item.next.set(inside, None);
            let none = segment.card_at(place);
            item.next.set(inside, item);
            // A value that is in no object yet.
            Link::<Item<'_>>::default().set(inside, item);
            [none, segment.card_at(place)]
        });
        assert_eq!(cards, [CLEAN, WRITTEN], "no reference, and one");
    }
}
