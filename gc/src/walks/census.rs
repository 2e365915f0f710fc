//! How many objects there are of each type, and how many bytes they have.

use tripoint_core::{Arena, BarrierPair, PoolId};

use crate::collect::flip::know_objects;
use crate::heaps::stopped::Stopped;
use crate::segments::object::Object;

/// The objects of one type in one pool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TypeCount {
    /// The pool; `None` in an entry that is not used.
    pub pool: Option<PoolId>,
    /// The name of the type; `None` for objects whose format does not name it.
    pub type_name: Option<&'static str>,
    /// How many there are.
    pub objects: usize,
    /// Their size in bytes, headers included.
    pub bytes: usize,
}

impl TypeCount {
    fn add(&mut self, object: Object) {
        self.objects += 1;
        self.bytes += object.block.size();
    }

    fn counts(&self, object: Object) -> bool {
        self.pool == Some(object.pool) && self.type_name == object.type_name
    }
}

/// The objects of a heap by type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Census<'t> {
    /// One entry for each type in each pool, in the order in which they were met.
    pub types: &'t [TypeCount],
    /// All objects, also those whose types found no entry.
    pub all: TypeCount,
}

impl<A: Arena, B: BarrierPair> Stopped<'_, '_, A, B> {
    /// Counts the objects that [`Stopped::walk_objects`] shows, by pool and type, in the entries of `table`. Types for
    /// which there is no entry left are counted in [`Census::all`] alone. Takes time in proportion to objects
    /// and entries.
    pub fn census<'t>(&self, table: &'t mut [TypeCount]) -> Census<'t> {
        let (mut used, mut all) = (0, TypeCount::default());
        let mut count = |object: Object| {
            all.add(object);
            let known = table[..used].iter().position(|entry| entry.counts(object));
            let Some(entry) = table.get_mut(known.unwrap_or(used)) else { return };
            if known.is_none() {
                used += 1;
                *entry = TypeCount {
                    pool: Some(object.pool),
                    type_name: object.type_name,
                    ..TypeCount::default()
                };
            }
            entry.add(object);
        };
        let members = self.heap().members().lock();
        let flipped = know_objects(self.at_stop(), self.heap(), &members);
        // SAFETY: no collection has begun, because the pools are locked.
        members.for_each(|link| unsafe { link.member().for_each_object(flipped, &mut count) });
        Census { types: &table[..used], all }
    }
}
