//! A picture of a heap: how the memory of its segments is used, before and after a collection.
//!
//! `cargo run -p tripoint-gc --example heap_picture`

use core::time::Duration;

use tripoint_core::{ClientArena, ClientArenaOptions, Error};
use tripoint_gc::{
    Gc, Heap, HeapOptions, Link, SegmentUse, Stopped, SweptOptions, TypedObjects, object_types,
};

object_types! {
    /// A list of texts.
    struct Item<'g> {
        text: Gc<'g, str>,
        next: Link<'g, Item<'g>>,
    }
}

/// How wide the bar of a segment is.
const WIDTH: usize = 40;

/// One line: what is in objects as `#`, what buffers hold as `+`, what is free as `.`.
fn line(segment: &SegmentUse) -> String {
    let size = segment.used + segment.held + segment.free;
    let part = |bytes: usize| (bytes * WIDTH).div_ceil(size.max(1));
    let bar = [(segment.used, "#"), (segment.held, "+"), (segment.free, ".")]
        .map(|(bytes, mark)| mark.repeat(part(bytes)))
        .concat();
    let SegmentUse { class, generation, objects, used, .. } = segment;
    format!(
        "{class:<5} {generation} {:>7} {:<WIDTH$.WIDTH$} {objects:>5} {used:>7}",
        segment.memory.size(),
        bar
    )
}

/// Prints all segments, and returns the bytes in objects.
fn print(stopped: &mut Stopped<'_, '_, &ClientArena<'_>, tripoint_core::SymmetricFence>) -> usize {
    println!("class   bytes   {:<WIDTH$} objects   bytes", "in objects #, in buffers +, free .");
    let mut used = 0;
    stopped.walk_segments(|segment| {
        println!("{}", line(&segment));
        used += segment.used;
    });
    used
}

fn main() -> Result<(), Box<dyn core::error::Error>> {
    let mut memory = Box::new_uninit_slice(1 << 20);
    let arena = ClientArena::create(&mut memory, ClientArenaOptions::default())?;
    let heap = Heap::create(&arena, HeapOptions::default())?;
    let objects = TypedObjects::create(&heap, SweptOptions { segment_size: 8 << 10 })?;
    let mut mutator = objects.register()?;
    // Every third item stays.
    let root = mutator.enter(|inside| {
        let item = |number: usize| {
            let text = inside.text(&format!("item {number}"))?;
            inside.alloc(Item { text, next: Link::default() })
        };
        let first = item(0)?;
        let mut last = first;
        for number in 1..500 {
            let next = item(number)?;
            if number % 3 == 0 {
                last.next.set(inside, next);
                last = next;
            }
        }
        objects.root(inside, first)
    })?;
    let mut stopped = heap.stop(Duration::MAX)?;
    let before = print(&mut stopped);
    println!("\n{}\n", stopped.collect());
    let after = print(&mut stopped);
    assert!(after < before && stopped.census(&mut []).all.bytes == after);
    drop(stopped);
    let texts = mutator.enter(|inside| {
        let items = core::iter::successors(Some(root.get(inside)?), |item| item.next.get());
        Ok::<_, Error>(items.filter(|item| item.text.starts_with("item ")).count())
    })?;
    assert_eq!(texts, 167);
    Ok(())
}
