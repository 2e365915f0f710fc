//! Formats that are too large to be kept beside a pool.

use core::ptr::NonNull;

use crate::common::{Nodes, with_heap};
use tripoint_core::{Block, Error};
use tripoint_gc::{Format, Leaf, MovableFormat, Moved, Scan, Swept, SweptOptions};

/// Nodes, and what a program knows of their classes.
struct Classes<const COUNT: usize> {
    nodes: Nodes,
    sizes: [usize; COUNT],
}

impl<const COUNT: usize> Classes<COUNT> {
    const fn new() -> Self {
        Self { nodes: Nodes::new(0), sizes: [16; COUNT] }
    }
}

// SAFETY: this is the format of nodes.
unsafe impl<const COUNT: usize> Format for Classes<COUNT> {
    unsafe fn skip(&self, object: NonNull<u8>) -> usize {
        assert_eq!(self.sizes[COUNT - 1], 16);
        // SAFETY: the caller promises a node.
        unsafe { self.nodes.skip(object) }
    }

    unsafe fn scan(&self, objects: Block, scan: &mut Scan<'_>) {
        // SAFETY: the caller promises nodes in a row, which no thread uses meanwhile.
        unsafe { self.nodes.scan(objects, scan) };
    }
}

// SAFETY: nothing in a node depends on its address.
unsafe impl<const COUNT: usize> MovableFormat for Classes<COUNT> {}

static LARGE: Classes<1000> = Classes::new();

/// The error says how large a format may be, and what to do.
#[test]
fn a_format_that_is_too_large_is_passed_by_reference() {
    with_heap(256 << 10, |heap| {
        let refused = Swept::<_, _, _, Moved>::create(heap, Classes::<1000>::new(), SweptOptions::default());
        let Err(Error::FormatSize { size, limit }) = refused else { panic!("{:?}", refused.err()) };
        assert_eq!(size, size_of::<Classes<1000>>());
        let text = Error::FormatSize { size, limit }.to_string();
        for part in [format!("has {size} bytes"), format!("room for {limit}"), "pass a reference".to_owned()]
        {
            assert!(text.contains(&part), "{part} in {text}");
        }
        assert!(limit >= size_of::<Nodes>() && limit < size, "{text}");
        Swept::<_, _, _, Moved>::create(heap, Nodes::new(0), SweptOptions::default()).unwrap();
        Swept::<_, _, _, Moved>::create(heap, &LARGE, SweptOptions::default()).unwrap();
        Swept::<_, _, _, Leaf>::create(heap, &LARGE, SweptOptions::default()).unwrap();
    });
}
