//! The free blocks by size: a list for each class, and a bit for each list.

use tripoint_core::Block;

use super::bitmap::Bitmap;
use super::class::{CLASSES, class_of};
use super::node::{Link, Node};
use crate::link::{Damaged, LinkKey};

/// The free blocks, by class of size (design/pool-tlsf.md `.tlsf.lists`).
#[derive(Debug)]
pub(super) struct Lists {
    bits: Bitmap,
    heads: [Option<Node>; CLASSES],
    key: LinkKey,
}

// SAFETY: the lists own the blocks in them (`Lists::insert`), so whichever thread
// holds the lists may touch them.
unsafe impl Send for Lists {}

impl Lists {
    /// No blocks.
    pub(super) const fn new(key: LinkKey) -> Self {
        Self { bits: Bitmap::new(), heads: [None; CLASSES], key }
    }

    /// What words in free blocks are encoded with.
    #[inline]
    pub(super) const fn key(&self) -> LinkKey {
        self.key
    }

    /// Lists a block.
    ///
    /// # Errors
    /// [`Damaged`], with the block not listed.
    ///
    /// # Safety
    /// - As [`Node::create`].
    #[inline]
    pub(super) unsafe fn insert(&mut self, block: Block) -> Result<(), Damaged> {
        let class = class_of(block.size());
        let head = self.heads[class];
        if let Some(head) = head {
            self.ensure_link(head, Link::Previous, None)?;
        }
        // SAFETY: `block` is as `create` requires, which the caller promised.
        let node = unsafe { Node::create(block, self.key) };
        node.set_link(Link::Next, head, block.size(), self.key);
        node.set_link(Link::Previous, None, block.size(), self.key);
        if let Some(head) = head {
            head.redirect(Link::Previous, Some(node), self.key);
        }
        self.heads[class] = Some(node);
        self.bits.set(class);
        Ok(())
    }

    /// Takes a block off its list.
    ///
    /// # Errors
    /// [`Damaged`], with nothing changed.
    #[inline]
    pub(super) fn remove(&mut self, node: Node) -> Result<Block, Damaged> {
        let block = node.block(self.key)?;
        let class = class_of(block.size());
        let next = node.link(Link::Next, self.key)?;
        let previous = node.link(Link::Previous, self.key)?;
        if let Some(next) = next {
            self.ensure_link(next, Link::Previous, Some(node))?;
        }
        match previous {
            Some(previous) => {
                self.ensure_link(previous, Link::Next, Some(node))?;
                previous.redirect(Link::Next, next, self.key);
            }
            None if LinkKey::CHECKS && self.heads[class] != Some(node) => return Err(Damaged),
            None => self.set_head(class, next),
        }
        if let Some(next) = next {
            next.redirect(Link::Previous, previous, self.key);
        }
        Ok(block)
    }

    /// If hardened, finds whether a link of a neighbour leads back.
    #[inline]
    fn ensure_link(&self, node: Node, link: Link, to: Option<Node>) -> Result<(), Damaged> {
        if LinkKey::CHECKS && node.link(link, self.key)? != to { Err(Damaged) } else { Ok(()) }
    }

    #[inline]
    fn set_head(&mut self, class: usize, head: Option<Node>) {
        self.heads[class] = head;
        if head.is_none() {
            self.bits.clear(class);
        }
    }

    /// The first block of the lowest class, at or above `class`, that has any.
    #[inline]
    pub(super) fn first_from(&self, class: usize) -> Option<Node> {
        self.heads[self.class_from(class)?]
    }

    /// The lowest class at or above `class` that is not empty.
    #[inline]
    pub(super) fn class_from(&self, class: usize) -> Option<usize> {
        self.bits.class_from(class)
    }

    /// The highest class that is not empty.
    #[inline]
    pub(super) fn highest(&self) -> Option<usize> {
        self.bits.highest()
    }

    /// The first block of a class.
    pub(super) const fn head(&self, class: usize) -> Option<Node> {
        self.heads[class]
    }

    /// The bits that say which classes have blocks.
    pub(super) const fn bits(&self) -> &Bitmap {
        &self.bits
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tlsf::{Tlsf, TlsfOptions};
    use tripoint_core::{Check, CheckLevel, ClientArena, ClientArenaOptions, Store};

    /// The rule that a deep check finds broken after `damage` to the lists of a pool
    /// whose free memory is one block. `damage` is passed the class of that block.
    fn found(damage: impl FnOnce(&mut Lists, usize)) -> &'static str {
        let mut memory = std::boxed::Box::new_uninit_slice(64 << 10);
        let arena = ClientArena::create(&mut memory, ClientArenaOptions::default()).unwrap();
        let pool = Tlsf::create(&arena, TlsfOptions::default()).unwrap();
        pool.alloc(core::alloc::Layout::new::<u64>()).unwrap();
        pool.check(CheckLevel::Deep).unwrap();
        {
            let mut free = pool.granules.free.lock();
            let lists = &mut free.memory().lists;
            let class = lists.highest().unwrap();
            damage(lists, class);
        }
        assert_eq!(pool.check(CheckLevel::Shallow), Ok(()));
        pool.check(CheckLevel::Deep).map_or_else(|error| error.rule, |()| "whole")
    }

    /// (design/pool-tlsf.md `.tlsf.check`)
    #[test]
    fn checks_find_heads_and_bits_that_are_wrong() {
        let (heads, lists) = ("blocks are in the list for their size", "bits tell which lists have blocks");
        assert_eq!(found(|_, _| ()), "whole");
        assert_eq!(found(|lists, class| lists.heads[class] = None), "edges belong to blocks");
        assert_eq!(found(|lists, class| lists.heads[class - 1] = lists.heads[class]), lists);
        let moved = |lists: &mut Lists, class: usize| {
            lists.heads[class - 1] = lists.heads[class];
            lists.bits.set(class - 1);
        };
        assert_eq!(found(moved), heads);
        assert_eq!(found(|lists, _| lists.bits.rows[0] ^= 1 << 5), lists);
        assert_eq!(found(|lists, _| lists.bits.occupied ^= 1), "bits tell which rows have lists");
    }

    /// A block that says it is the first of its list, and is not. An old word can say so
    /// (design/hardening.md `.sense`).
    #[cfg(feature = "hardening")]
    #[test]
    fn a_block_that_takes_itself_for_the_first_is_damaged() {
        let mut words = [[0_u128; 2]; 2];
        let base = core::ptr::NonNull::from(&mut words).cast::<u8>();
        // SAFETY: the array, which outlives the lists.
        let block = unsafe { Block::new(base, size_of_val(&words)) };
        let mut lists = Lists::new(LinkKey::new(block.range(), tripoint_core::PoolId::new(7).unwrap()));
        let (one, two) = block.split_at(block.size() / 2).unwrap();
        for block in [one, two] {
            // SAFETY: granules of the array, which no client has.
            unsafe { lists.insert(block) }.unwrap();
        }
        // SAFETY: the block is in the list.
        let last = unsafe { Node::starting_at(one.base()) };
        last.set_link(Link::Previous, None, one.size(), lists.key());
        assert_eq!(lists.remove(last), Err(Damaged));
    }
}
