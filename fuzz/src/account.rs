//! A naive account of live objects: where they are and what is in them.

use core::alloc::Layout;
use core::ptr::NonNull;
use std::collections::BTreeMap;

#[derive(Debug)]
struct Live {
    object: NonNull<u8>,
    size: usize,
    layout: Layout,
    content: u8,
}

/// Live objects by address. Each is filled with its own byte; memory that two
/// objects share, or that somebody else writes, shows as a wrong byte.
#[derive(Debug, Default)]
pub(crate) struct Account {
    live: BTreeMap<usize, Live>,
    next_content: u8,
}

impl Account {
    /// Enters an object that takes `size` bytes.
    ///
    /// # Safety
    /// - `object` is valid for reads and writes of `size` bytes, and nobody else
    ///   uses them, until the object is taken out or the account dropped.
    pub(crate) unsafe fn add(&mut self, object: NonNull<u8>, size: usize, layout: Layout) {
        let addr = object.addr().get();
        assert!(addr.is_multiple_of(layout.align()), "aligned as asked");
        assert!(size >= layout.size(), "as large as asked");
        let below = self.live.range(..addr + size).next_back();
        assert!(below.is_none_or(|(at, live)| at + live.size <= addr), "objects do not overlap");
        self.next_content = self.next_content.wrapping_add(1);
        let content = self.next_content;
        // SAFETY: the caller promises `size` writable bytes.
        unsafe { object.write_bytes(content, size) };
        self.live.insert(addr, Live { object, size, layout, content });
    }

    /// Takes out the `choice`th object (counted round and round), whose content
    /// has to be as it was entered.
    pub(crate) fn take(&mut self, choice: usize) -> Option<(NonNull<u8>, Layout)> {
        let count = self.live.len().max(1);
        let addr = *self.live.keys().nth(choice % count)?;
        let live = self.live.remove(&addr)?;
        live.assert_kept();
        Some((live.object, live.layout))
    }

    /// Whether an object of `size` bytes begins at `addr`.
    pub(crate) fn holds(&self, addr: usize, size: usize) -> bool {
        self.live.get(&addr).is_some_and(|live| live.size == size)
    }

    /// The bytes of all live objects.
    pub(crate) fn size(&self) -> usize {
        self.live.values().map(|live| live.size).sum()
    }

    pub(crate) fn assert_kept(&self) {
        self.live.values().for_each(Live::assert_kept);
    }
}

impl Live {
    fn assert_kept(&self) {
        // SAFETY: `Account::add` was promised these bytes, and wrote them all.
        let bytes = unsafe { core::slice::from_raw_parts(self.object.as_ptr(), self.size) };
        assert!(bytes.iter().all(|&byte| byte == self.content), "objects keep their contents");
    }
}
