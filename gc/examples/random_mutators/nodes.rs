//! Nodes of all classes: pools of them, and allocation points in these.

use core::ptr;

use tripoint_core::{Arena, BarrierPair, Check, CheckError, CheckLevel, PoolClass, Result};
use tripoint_gc::{Heap, Kind, Leaf, Moved, MovedLeaf, Mutator, Swept, SweptOptions, Traced, WeakSlots};

use crate::common::{Nodes, PointIn, WORD, layout, point};

/// Memory that is not the heap's, which references lead to as well.
static ELSEWHERE: [usize; 2] = [0; 2];

pub(crate) fn outside() -> *mut u8 {
    ptr::from_ref(&ELSEWHERE).cast_mut().cast()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    Amc,
    Amcz,
    Ams,
    Lo,
    Awl,
}

impl Class {
    pub(crate) const ALL: [Self; 5] = [Self::Amc, Self::Amcz, Self::Ams, Self::Lo, Self::Awl];

    pub(crate) const fn moves(self) -> bool {
        matches!(self, Self::Amc | Self::Amcz)
    }

    pub(crate) const fn is_weak(self) -> bool {
        matches!(self, Self::Awl)
    }

    pub(crate) const fn is_leaf(self) -> bool {
        matches!(self, Self::Amcz | Self::Lo)
    }
}

/// How the pools of a heap differ from those of other heaps.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shapes {
    /// The words in front of the address by which references know a node, for each class.
    pub(crate) headers: [usize; 5],
    pub(crate) segment_size: usize,
    /// Whether mutators note writes of references.
    pub(crate) notes_writes: bool,
}

type Pool<'m, A, B, K> = Swept<'m, A, B, Nodes, K>;

/// A pool of each class.
#[derive(Debug)]
pub(crate) struct Pools<'m, A: Arena, B: BarrierPair> {
    pub(crate) amc: Pool<'m, A, B, Moved>,
    amcz: Pool<'m, A, B, MovedLeaf>,
    ams: Pool<'m, A, B, Traced>,
    lo: Pool<'m, A, B, Leaf>,
    pub(crate) awl: Pool<'m, A, B, WeakSlots>,
}

impl<'m, A: Arena + Clone + 'm, B: BarrierPair> Pools<'m, A, B> {
    pub(crate) fn create(heap: &'m Heap<'m, A, B>, shapes: Shapes) -> Result<Self> {
        let options = SweptOptions { segment_size: shapes.segment_size };
        let notes_writes = shapes.notes_writes;
        let nodes = |class: Class| Nodes { notes_writes, ..Nodes::new(shapes.headers[class as usize]) };
        Ok(Self {
            amc: Swept::create(heap, nodes(Class::Amc), options)?,
            amcz: Swept::create(heap, nodes(Class::Amcz), options)?,
            ams: Swept::create(heap, nodes(Class::Ams), options)?,
            lo: Swept::create(heap, nodes(Class::Lo), options)?,
            awl: Swept::create(heap, nodes(Class::Awl), options)?,
        })
    }

    /// The bytes of all segments.
    pub(crate) fn total(&self) -> usize {
        [self.amc.header(), self.amcz.header(), self.ams.header(), self.lo.header(), self.awl.header()]
            .into_iter()
            .map(|header| header.total())
            .sum()
    }

    pub(crate) fn check(&self) -> core::result::Result<(), CheckError> {
        let pools: [&dyn Check; 5] = [&self.amc, &self.amcz, &self.ams, &self.lo, &self.awl];
        pools.into_iter().try_for_each(|pool| pool.check(CheckLevel::Deep))
    }
}

/// An allocation point of a mutator in each pool.
#[derive(Debug)]
pub(crate) struct Points<'p, 'm, A: Arena, B: BarrierPair> {
    amc: PointIn<'p, 'm, A, B, Moved>,
    amcz: PointIn<'p, 'm, A, B, MovedLeaf>,
    ams: PointIn<'p, 'm, A, B, Traced>,
    lo: PointIn<'p, 'm, A, B, Leaf>,
    awl: PointIn<'p, 'm, A, B, WeakSlots>,
}

impl<'p, 'm, A: Arena, B: BarrierPair> Points<'p, 'm, A, B> {
    /// The points of a mutator: they are used by the thread that has it, while it runs, and dropped before it.
    pub(crate) fn create(pools: &'p Pools<'m, A, B>, mutator: &Mutator<'m, A, B>) -> Self {
        Self {
            amc: point(&pools.amc, mutator),
            amcz: point(&pools.amcz, mutator),
            ams: point(&pools.ams, mutator),
            lo: point(&pools.lo, mutator),
            awl: point(&pools.awl, mutator),
        }
    }

    pub(crate) fn header(&self, class: Class) -> usize {
        match class {
            Class::Amc => self.amc.pool().format().header,
            Class::Amcz => self.amcz.pool().format().header,
            Class::Ams => self.ams.pool().format().header,
            Class::Lo => self.lo.pool().format().header,
            Class::Awl => self.awl.pool().format().header,
        }
    }

    /// Makes a node of a class with that many words, which are asked for when there is room for them. `between` runs
    /// between reserve and commit, and a commit that fails is an error.
    pub(crate) fn make(
        &mut self,
        class: Class,
        name: usize,
        words: usize,
        word: impl Fn(usize) -> *mut u8,
        between: impl FnMut(),
    ) -> Result<Option<*mut u8>> {
        match class {
            Class::Amc => make(&mut self.amc, name, words, word, between),
            Class::Amcz => make(&mut self.amcz, name, words, word, between),
            Class::Ams => make(&mut self.ams, name, words, word, between),
            Class::Lo => make(&mut self.lo, name, words, word, between),
            Class::Awl => make(&mut self.awl, name, words, word, between),
        }
    }

    /// Notes that a reference was stored at `place`, if the pool promises that.
    pub(crate) fn note_write(&self, class: Class, mutator: &mut Mutator<'m, A, B>, place: *const u8) {
        match class {
            Class::Amc => self.amc.pool().note_write(mutator, place),
            Class::Ams => self.ams.pool().note_write(mutator, place),
            Class::Awl => self.awl.pool().note_write(mutator, place),
            // Nodes without references.
            Class::Amcz | Class::Lo => {}
        }
    }

    pub(crate) fn notes_writes(&self) -> bool {
        self.amc.pool().format().notes_writes
    }

    pub(crate) fn empty(&mut self, class: Class) {
        match class {
            Class::Amc => self.amc.empty(),
            Class::Amcz => self.amcz.empty(),
            Class::Ams => self.ams.empty(),
            Class::Lo => self.lo.empty(),
            Class::Awl => self.awl.empty(),
        }
    }

    /// The bytes that the points hold and have not used.
    pub(crate) fn room(&self) -> usize {
        self.amc.room() + self.amcz.room() + self.ams.room() + self.lo.room() + self.awl.room()
    }
}

/// Returns `None` if the commit failed.
fn make<A: Arena, B: BarrierPair, K: Kind<Nodes>>(
    point: &mut PointIn<'_, '_, A, B, K>,
    name: usize,
    words: usize,
    word: impl Fn(usize) -> *mut u8,
    mut between: impl FnMut(),
) -> Result<Option<*mut u8>> {
    let header = point.pool().format().header;
    let reservation = point.reserve(layout(header, words))?;
    let node = reservation.as_ptr().cast::<usize>();
    // SAFETY: the layout has room for the header, the size, the name and that many words.
    unsafe {
        let node = node.add(header);
        node.write((header + 2 + words) * WORD);
        node.add(1).write(name);
        for index in 0..words {
            node.add(2 + index).cast::<*mut u8>().write(word(index));
        }
    }
    between();
    // SAFETY: the node was just made.
    let made = unsafe { reservation.commit() }.is_ok();
    // SAFETY: the header is in the node.
    Ok(made.then(|| unsafe { node.add(header) }.cast().as_ptr()))
}
