//! Entries of tables whose keys are weak.

use core::fmt;
use core::mem::offset_of;

use tripoint_core::{Arena, BarrierPair};

use crate::outlines::type_outline::{PartOutline, TypeOutline};
use crate::scans::scan::Scan;
use crate::typed::inside::Inside;
use crate::typed::link::Link;
use crate::typed::reference::Gc;
use crate::typed::referent::Referent;
use crate::typed::trace::Trace;
use crate::typed::weak_link::WeakLink;

/// A place in an object for a key and its value, or for none: an entry of a table that keeps no key.
///
/// The value is kept as long as the object that has the pair is kept, and something else keeps the key. If only the
/// value leads to the key, the key is dead. The collection that finds the key dead clears the pair. (Elsewhere this is
/// called an ephemeron.)
///
/// ```
/// use tripoint_gc::{Gc, Link, WeakPair, object_types};
///
/// object_types! {
///     /// A node of which more is to be known than it has fields.
///     pub struct Node<'g> {
///         hash: u64,
///         next: Link<'g, Node<'g>>,
///     }
///
///     /// Names of nodes, as long as there are nodes.
///     pub struct Names<'g> {
///         entries: Link<'g, [WeakPair<'g, Node<'g>, str>]>,
///     }
/// }
/// ```
pub struct WeakPair<'g, K: Referent + ?Sized, V: Referent + ?Sized> {
    key: WeakLink<'g, K>,
    value: Link<'g, V>,
}

impl<'g, K: Referent + ?Sized, V: Referent + ?Sized> WeakPair<'g, K, V> {
    /// Creates a place with this key and its value.
    #[must_use]
    pub fn new(pair: Option<(Gc<'g, K>, Gc<'g, V>)>) -> Self {
        let (key, value) = pair.unzip();
        Self { key: WeakLink::new(key), value: Link::new(value) }
    }

    /// The key and the value that were stored last, as far as this thread sees. `None` if a collection has freed the
    /// key. While another thread stores another key, they may be of two pairs.
    #[inline]
    #[must_use]
    pub fn get(&self) -> Option<(Gc<'g, K>, Gc<'g, V>)> {
        self.key.get().zip(self.value.get())
    }

    /// Stores another key and its value, or none.
    pub fn set<A: Arena + Clone, B: BarrierPair>(
        &self,
        inside: &Inside<'g, A, B>,
        pair: impl Into<Option<(Gc<'g, K>, Gc<'g, V>)>>,
    ) {
        let (key, value) = pair.into().unzip();
        // So that a thread that looks meanwhile finds no pair.
        self.value.set(inside, None);
        self.key.set(inside, key);
        self.value.set(inside, value);
    }
}

impl<K: Referent + ?Sized, V: Referent + ?Sized> Default for WeakPair<'_, K, V> {
    fn default() -> Self {
        Self::new(None)
    }
}

// SAFETY: both references are passed on, as a weak pair, and written to their places. The types of their objects change
// as `Referent::At` says.
unsafe impl<'g, K: Referent + ?Sized, V: Referent + ?Sized> Trace for WeakPair<'g, K, V> {
    type At<'n> = WeakPair<'n, K::At<'n>, V::At<'n>>;
    type Static = WeakPair<'static, K::Static, V::Static>;

    const HAS_REFERENCES: bool = true;
    const HAS_WEAK_LINKS: bool = true;
    const OUTLINE: &'static TypeOutline = &TypeOutline::parts::<Self>(
        "WeakPair",
        const {
            &[
                PartOutline::new(offset_of!(Self, key), <WeakLink<'g, K> as Trace>::OUTLINE),
                PartOutline::new(offset_of!(Self, value), <Link<'g, V> as Trace>::OUTLINE),
            ]
        },
    );

    #[inline]
    fn trace(&mut self, scan: &mut Scan<'_>) {
        let (mut key, mut value) = (self.key.word.at_stop(), self.value.word.at_stop());
        scan.fix_pair(&mut key, &mut value);
        self.key.word.fix_at_stop(key);
        self.value.word.fix_at_stop(value);
    }
}

impl<K: Referent + ?Sized, V: Referent + ?Sized> fmt::Debug for WeakPair<'_, K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.key.get().is_some() { "WeakPair(..)" } else { "WeakPair(None)" })
    }
}
