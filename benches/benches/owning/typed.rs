//! Objects of one type.

use core::cell::{Cell, RefCell};
use core::hint::black_box;

use crate::Amount;

/// A node as trees have it: it knows its parent and owns a list and a text.
struct Node<'a> {
    parent: Cell<Option<&'a Node<'a>>>,
    children: RefCell<Vec<&'a Node<'a>>>,
    text: String,
}

impl<'a> Node<'a> {
    fn new(parent: Option<&'a Self>, text: String) -> Self {
        Self { parent: Cell::new(parent), children: RefCell::default(), text }
    }
}

/// An object whose drop is short, and is not nothing.
struct Counted<'a>(&'a Cell<usize>, [u64; 3]);

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.set(self.0.get() + 1);
    }
}

/// Compares the two with the same code.
macro_rules! against {
    ($($work:tt)*) => {
        compare_arenas!(["TypedArena", tripoint::TypedArena], ["typed_arena", typed_arena::Arena], $($work)*)
    };
}

pub(crate) fn measure(amount: Amount) {
    let Amount { objects, small, .. } = amount;
    against!(format!("{objects} objects of 32 bytes"), amount, objects, |Arena| {
        let arena = Arena::new();
        for number in 0..objects as u64 {
            black_box(arena.alloc([number; 4]));
        }
    });
    against!(format!("{objects} objects of 32 bytes that are dropped"), amount, objects, |Arena| {
        let drops = Cell::new(0);
        let arena = Arena::new();
        for number in 0..objects as u64 {
            black_box(arena.alloc(Counted(&drops, [number; 3])).1);
        }
        drop(arena);
        assert_eq!(drops.get(), objects);
    });
    against!(format!("a tree of {objects} nodes"), amount, objects, |Arena| {
        let arena = Arena::new();
        let mut last: &Node<'_> = arena.alloc(Node::new(None, String::new()));
        for number in 1..objects {
            let node: &Node<'_> = arena.alloc(Node::new(Some(last), String::new()));
            if number % 8 == 0 {
                last.children.borrow_mut().push(node);
                last = node;
            }
        }
        black_box(last.parent.get().map_or(0, |parent| parent.text.len()));
    });
    against!(format!("{} nodes with a text each", objects / 4), amount, objects / 4, |Arena| {
        let arena = Arena::new();
        for number in 0..objects / 4 {
            let text = String::from(["name of a node", "what is in its leaf"][number % 2]);
            black_box(arena.alloc(Node::new(None, text)).text.len());
        }
    });
    for count in [1, 10, 30, 300] {
        against!(
            format!("{small} arenas of {count} objects of 32 bytes, one by one"),
            amount,
            small * count,
            |Arena| {
                for _ in 0..small {
                    let arena = Arena::new();
                    for number in 0..count as u64 {
                        black_box(arena.alloc([number; 4]));
                    }
                }
            }
        );
    }
    for count in [1, 30, 100] {
        against!(
            format!("{small} arenas of {count} objects of 32 bytes, at once"),
            amount,
            small * count,
            |Arena| {
                let arenas: Vec<_> = (0..small).map(|_| Arena::new()).collect();
                for arena in &arenas {
                    for number in 0..count as u64 {
                        black_box(arena.alloc([number; 4]));
                    }
                }
            }
        );
    }
    for count in [3, 100] {
        against!(format!("rows of {count} objects of 8 bytes"), amount, objects / 4, |Arena| {
            let arena = Arena::new();
            for first in (0..objects as u64 / 4).step_by(count) {
                black_box(arena.alloc_extend(first..first + count as u64));
            }
        });
    }
    against!("100 objects of 64 KiB", amount, 100, |Arena| {
        let arena = Arena::new();
        for byte in 0..100 {
            black_box(arena.alloc([byte; 64 << 10]));
        }
    });
    against!("100 arenas of one object of 64 KiB, one by one", amount, 100, |Arena| {
        for byte in 0..100 {
            black_box(Arena::new().alloc([byte; 64 << 10]));
        }
    });
}
