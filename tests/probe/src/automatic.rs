//! Typed objects of a heap, whose fast path is that of a manual pool.

use core::ptr;

use tripoint_core::{ClientArena, SymmetricFence};
use tripoint_gc::{Inside, Link, object_types};

object_types! {
    /// With its header it has as many bytes as an [`Object`](crate::Object).
    #[derive(Debug)]
    pub struct Leaf {
        words: [u64; 3],
    }

    /// A node with two references, which has as many bytes, too.
    #[derive(Debug)]
    pub struct Node<'g> {
        left: Link<'g, Node<'g>>,
        right: Link<'g, Node<'g>>,
        word: u64,
    }
}

type ClientInside<'g> = Inside<'g, &'static ClientArena<'static>, SymmetricFence>;

/// An object without references.
#[unsafe(no_mangle)]
pub fn typed_single(inside: &ClientInside<'_>, a: u64, b: u64) -> *const Leaf {
    inside.alloc(Leaf { words: [a, b, a] }).map_or(ptr::null(), |leaf| ptr::from_ref(leaf.get()))
}

/// Objects without references, in a loop.
#[unsafe(no_mangle)]
pub fn typed_loop(inside: &ClientInside<'_>, count: usize, a: u64, b: u64) -> usize {
    (0..count).take_while(|_| inside.alloc(Leaf { words: [a, b, a] }).is_ok()).count()
}

/// Nodes that refer to each other, in a loop.
#[unsafe(no_mangle)]
pub fn typed_nodes(inside: &ClientInside<'_>, count: usize, word: u64) -> bool {
    let mut last = None;
    for _ in 0..count {
        let Ok(node) = inside.alloc(Node { left: Link::new(last), right: Link::new(last), word }) else {
            return false;
        };
        last = Some(node);
    }
    last.is_some()
}
