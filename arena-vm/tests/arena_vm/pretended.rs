//! A platform that pretends to have two memory nodes, and huge pages set aside on each.

use core::ptr::NonNull;
use std::collections::BTreeMap;
use std::sync::Mutex;

use tripoint_arena_vm::{HugePages, PageSizes, Placement, Platform, PlatformError, Portable};
use tripoint_core::{AddrRange, NodeSet};

use crate::common::do_nothing;

pub(crate) const HUGE: usize = 2 << 20;

/// Memory of the portable platform, and accounts of pages.
#[derive(Debug, Default)]
pub(crate) struct Pretended {
    accounts: Mutex<Accounts>,
}

#[derive(Debug, Default)]
struct Accounts {
    /// The huge pages that are free on each node.
    free: [usize; 2],
    policies: BTreeMap<usize, Placement>,
    huge: Option<AddrRange>,
    /// The node of each huge page that is taken.
    nodes: BTreeMap<usize, usize>,
    /// The node that pages come from, whatever was asked for.
    astray: Option<usize>,
}

impl Pretended {
    pub(crate) fn new(free: [usize; 2]) -> Self {
        Self { accounts: Mutex::new(Accounts { free, ..Accounts::default() }) }
    }

    pub(crate) fn free(&self) -> [usize; 2] {
        self.accounts.lock().unwrap().free
    }

    /// Has all pages come from one node from here on, as a kernel must not.
    pub(crate) fn lead_astray(&self, node: usize) {
        self.accounts.lock().unwrap().astray = Some(node);
    }

    /// The placements of ranges, by address.
    pub(crate) fn policies(&self) -> Vec<Placement> {
        self.accounts.lock().unwrap().policies.values().copied().collect()
    }
}

impl Accounts {
    /// Takes a huge page for an address.
    fn take(&mut self, page: usize, placement: Placement) -> Option<()> {
        let nodes = self.astray.map_or_else(
            || match placement {
                Placement::Any => vec![0, 1],
                Placement::Bind(nodes) => nodes.nodes().collect(),
                Placement::Interleave(nodes) => {
                    let nodes: Vec<_> = nodes.nodes().collect();
                    vec![nodes[page / HUGE % nodes.len()]]
                }
            },
            |node| vec![node],
        );
        let node = nodes.into_iter().find(|&node| self.free[node] > 0)?;
        self.free[node] -= 1;
        self.nodes.insert(page, node);
        Some(())
    }

    fn give(&mut self, page: usize) {
        if let Some(node) = self.nodes.remove(&page) {
            self.free[node] += 1;
        }
    }
}

fn pages(base: NonNull<u8>, size: usize) -> impl Iterator<Item = usize> {
    (base.addr().get()..base.addr().get() + size).step_by(HUGE)
}

// SAFETY: memory is the portable platform's, which keeps these promises; commits and decommits are accounts only.
unsafe impl Platform for Pretended {
    fn name(&self) -> &'static str {
        "pretended"
    }

    fn page_size(&self) -> usize {
        Portable.page_size()
    }

    fn reserve(&self, size: usize, align: usize) -> Result<NonNull<u8>, PlatformError> {
        Portable.reserve(size, align)
    }

    unsafe fn release(&self, base: NonNull<u8>, size: usize, align: usize) -> Result<(), PlatformError> {
        {
            let mut accounts = self.accounts.lock().unwrap();
            pages(base, size).for_each(|page| accounts.give(page));
            accounts.policies.clear();
        }
        // SAFETY: the caller keeps to the duties of this method.
        unsafe { Portable.release(base, size, align) }
    }

    do_nothing!(commit decommit populate populate_in_use advise_huge_pages lock unlock no_inherit);

    unsafe fn map_huge_pages(
        &self,
        base: NonNull<u8>,
        size: usize,
        _pages: HugePages,
    ) -> Result<(), PlatformError> {
        let range = AddrRange::with_size(tripoint_core::Addr::of(base.as_ptr()), size);
        self.accounts.lock().unwrap().huge = range;
        Ok(())
    }

    unsafe fn fill_huge_pages(
        &self,
        base: NonNull<u8>,
        size: usize,
        kind: HugePages,
        placement: Placement,
    ) -> Result<(), PlatformError> {
        let mut accounts = self.accounts.lock().unwrap();
        if pages(base, size).all(|page| accounts.take(page, placement).is_some()) {
            return Ok(());
        }
        pages(base, size).for_each(|page| accounts.give(page));
        let nodes = placement.nodes().unwrap_or(NodeSet::from_mask(3));
        let free: usize = nodes.nodes().map(|node| accounts.free[node] * HUGE).sum();
        let limit = Some((kind.size.resource(), free));
        Err(PlatformError { call: "fill_huge_pages", code: 14, addr: base.addr().get(), size, limit })
    }

    unsafe fn empty_huge_pages(&self, base: NonNull<u8>, size: usize) -> Result<(), PlatformError> {
        let mut accounts = self.accounts.lock().unwrap();
        pages(base, size).for_each(|page| accounts.give(page));
        Ok(())
    }

    fn memory_nodes(&self) -> Result<NodeSet, PlatformError> {
        Ok(NodeSet::from_mask(3))
    }

    unsafe fn place(
        &self,
        base: NonNull<u8>,
        _size: usize,
        placement: Placement,
    ) -> Result<(), PlatformError> {
        self.accounts.lock().unwrap().policies.insert(base.addr().get(), placement);
        Ok(())
    }

    unsafe fn locate(
        &self,
        base: NonNull<u8>,
        size: usize,
        page_size: usize,
        visit: &mut dyn FnMut(usize, Option<usize>),
    ) -> Result<(), PlatformError> {
        let accounts = self.accounts.lock().unwrap();
        let base = base.addr().get();
        for page in (base..base + size).step_by(page_size) {
            visit(page, accounts.nodes.get(&page).copied());
        }
        Ok(())
    }

    fn page_sizes(&self, range: AddrRange, visit: &mut dyn FnMut(PageSizes)) -> Result<(), PlatformError> {
        let huge = self.accounts.lock().unwrap().huge.filter(|huge| range.covers(*huge));
        if let Some(range) = huge {
            visit(PageSizes { range, page_size: HUGE, transparent: 0 });
        }
        Ok(())
    }
}
