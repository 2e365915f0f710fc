//! What is live: where it is and what is in it.

use core::alloc::Layout;
use std::collections::BTreeMap;

use tripoint_core::{Addr, AddrRange, Block};

use crate::bytes::all_are;

/// A live object, or the rest of a fill.
#[derive(Clone, Copy, Debug)]
pub struct Object {
    /// All the memory that it takes.
    pub block: Block,
    /// The layout that it was allocated with; none for the rest of a fill.
    pub layout: Option<Layout>,
    /// The number of bytes, from its base on, that have its content.
    written: usize,
    content: u8,
}

impl Object {
    /// Whether it still has its content.
    fn is_kept(&self) -> bool {
        // SAFETY: the code that entered the object promised these bytes, which are
        // initialised.
        let bytes = unsafe { core::slice::from_raw_parts(self.block.base().as_ptr(), self.written) };
        all_are(bytes, self.content)
    }
}

/// Live objects by address. Each is filled with a byte of its own; memory that two
/// of them share, or that other code writes to, shows as a wrong byte.
#[derive(Debug, Default)]
pub struct Live {
    objects: BTreeMap<usize, Object>,
    size: usize,
    content: u8,
}

impl Live {
    /// The byte for the next object.
    pub fn next_content(&mut self) -> u8 {
        self.content = self.content.wrapping_add(1);
        self.content
    }

    /// Enters a block and fills its first `written` bytes.
    ///
    /// # Panics
    /// If it overlaps another.
    ///
    /// # Safety
    /// - The block is valid for reads and writes, and nothing else uses it until
    ///   it is taken out or this is dropped.
    pub unsafe fn insert(&mut self, block: Block, layout: Option<Layout>, written: usize) {
        let content = self.next_content();
        let written = written.min(block.size());
        // SAFETY: the caller lets this write to the block, and `written` is at
        // most its size.
        unsafe { block.base().write_bytes(content, written) };
        // SAFETY: the block is the caller's as `insert_written` asks, and its
        // first `written` bytes were written just now.
        unsafe { self.insert_written(block, layout, written, content) };
    }

    /// Enters a block that has its content already.
    ///
    /// # Panics
    /// As [`Live::insert`].
    ///
    /// # Safety
    /// - As [`Live::insert`], and the first `written` bytes are initialised.
    pub unsafe fn insert_written(
        &mut self,
        block: Block,
        layout: Option<Layout>,
        written: usize,
        content: u8,
    ) {
        self.assert_apart(block.range());
        self.size += block.size();
        let object = Object { block, layout, written, content };
        self.objects.insert(block.range().base().get(), object);
    }

    /// Takes out what is here, which has to have kept its contents.
    ///
    /// # Panics
    /// If it has not, or if nothing is here.
    pub fn remove(&mut self, addr: usize) -> Object {
        let object = self.objects.remove(&addr).unwrap_or_else(|| panic!("nothing is live at {addr:#x}"));
        self.size -= object.block.size();
        assert!(object.is_kept(), "{:?} was written to", object.block);
        object
    }

    /// Enters an object that was resized where it lies, and fills it anew. It has to have kept the bytes that both
    /// layouts have.
    ///
    /// # Panics
    /// If it has not, if nothing was there, or if it overlaps another.
    ///
    /// # Safety
    /// - As [`Live::insert`].
    pub unsafe fn resize(&mut self, block: Block, layout: Layout) {
        let addr = block.range().base().get();
        let mut object = self.objects.remove(&addr).unwrap_or_else(|| panic!("nothing is live at {addr:#x}"));
        self.size -= object.block.size();
        object.written = object.written.min(layout.size());
        assert!(object.is_kept(), "{:?} was written to", object.block);
        // SAFETY: the block is valid for reads and writes, and nothing else uses it, as the caller promises.
        unsafe { self.insert(block, Some(layout), layout.size()) };
    }

    /// What is here.
    #[must_use]
    pub fn get(&self, addr: usize) -> Option<&Object> {
        self.objects.get(&addr)
    }

    /// The bytes of all that is live.
    #[must_use]
    pub const fn size(&self) -> usize {
        self.size
    }

    /// Where the objects are, or the rests of fills, lowest first.
    pub fn addresses(&self, objects: bool) -> impl Iterator<Item = usize> {
        let kind = move |object: &Object| object.layout.is_some() == objects;
        self.objects.iter().filter(move |(_, object)| kind(object)).map(|(&addr, _)| addr)
    }

    /// One of the objects, or of the rests of fills, by its number, counted
    /// cyclically.
    #[must_use]
    pub fn pick(&self, objects: bool, which: usize) -> Option<usize> {
        let count = self.addresses(objects).count();
        self.addresses(objects).nth(which.checked_rem(count)?)
    }

    /// Whether something live has this byte.
    #[must_use]
    pub fn covers(&self, addr: usize) -> bool {
        let below = self.objects.range(..=addr).next_back();
        below.is_some_and(|(_, object)| object.block.range().contains(Addr::new(addr)))
    }

    /// Checks that everything live has its contents.
    ///
    /// # Panics
    /// If something has not.
    pub fn assert_kept(&self) {
        let changed = self.objects.values().find(|object| !object.is_kept());
        assert!(changed.is_none(), "{changed:?} was written to");
    }

    /// Checks that nothing live is in this range.
    ///
    /// # Panics
    /// If something is.
    pub fn assert_apart(&self, range: AddrRange) {
        let below = self.objects.range(..range.limit().get()).next_back();
        let overlaps = below.is_some_and(|(_, object)| object.block.range().overlaps(range));
        assert!(!overlaps, "{range} overlaps a live object");
    }
}
