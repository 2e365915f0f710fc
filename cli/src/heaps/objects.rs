//! How objects are found: by the bits of segments, and one after the other where bits say nothing.

use std::collections::BTreeMap;

use crate::heaps::faults::Faults;
use crate::heaps::heap::{Heap, Object, copy_of};
use crate::memory::Memory;

/// Finds all objects of a heap in pools whose objects are described. The others are not known.
pub(super) fn find_all(memory: &dyn Memory, heap: &mut Heap, faults: &mut Faults) {
    let mut held = BTreeMap::<usize, Vec<(u64, u64)>>::new();
    for (base, limit) in heap.pools.iter().flat_map(|pool| &pool.held) {
        match heap.segment_of(*base).filter(|index| *limit <= heap.segments[*index].limit) {
            Some(segment) => held.entry(segment).or_default().push((*base, *limit)),
            None => faults
                .add(format!("a buffer holds memory at {base:#x}, in no segment: its objects are left out")),
        }
    }
    for index in 0..heap.segments.len() {
        if !heap.pools[heap.segments[index].pool].is_described() {
            continue;
        }
        let mut found = Vec::new();
        let (base, unrecorded) = (heap.segments[index].base, heap.segments[index].unrecorded);
        match heap.segments[index].places(memory) {
            Some(places) => {
                for place in places {
                    match object_at(memory, heap, index, place) {
                        Some(object) => found.push(object),
                        None => faults
                            .add(format!("no object is at {place:#x}, where the segment at {base:#x} says")),
                    }
                }
            }
            None => faults.add(format!("the bits of the segment at {base:#x} are not there")),
        }
        walk(memory, heap, index, unrecorded, &mut found, faults);
        let mut ranges = held.remove(&index).unwrap_or_default();
        ranges.sort_unstable();
        let mut end = 0;
        for (from, to) in ranges {
            if from < end {
                faults.add(format!(
                    "two buffers hold memory at {from:#x}: what the second one holds is left out"
                ));
                continue;
            }
            walk(memory, heap, index, (from, to), &mut found, faults);
            end = to;
        }
        // What is noted while this is read may be in two places.
        found.sort_by_key(|object| object.base);
        found.dedup_by_key(|object| object.base);
        let next = found.iter().skip(1).map(|object| object.base).chain([u64::MAX]);
        let fits = |(object, next): &(&Object, u64)| object.size <= next - object.base;
        let whole: Vec<_> = found.iter().zip(next).filter(fits).map(|(object, _)| *object).collect();
        let overlaps = found.len() - whole.len();
        if overlaps > 0 {
            faults.add(format!(
                "{overlaps} objects of the segment at {base:#x} overlap the next one, and are left out"
            ));
        }
        heap.objects.extend(whole);
    }
}

/// Finds objects that lie one after the other. One that has moved is found where its copy is.
fn walk(
    memory: &dyn Memory,
    heap: &mut Heap,
    segment: usize,
    (from, to): (u64, u64),
    found: &mut Vec<Object>,
    faults: &mut Faults,
) {
    let mut at = from;
    while at < to {
        // While objects move, each that is still here has a bit.
        let is_here = heap.segments[segment].has_bit(memory, at);
        let copy = copy_of(memory, &heap.segments[segment], at).filter(|_| is_here != Some(true));
        let object = match copy {
            Some(copy) => heap.segment_of(copy).and_then(|there| object_at(memory, heap, there, copy)),
            None => object_at(memory, heap, segment, at),
        };
        let Some(object) = object.filter(|object| object.size <= to - at) else {
            faults.add(format!("no object is at {at:#x}: what lies from there to {to:#x} is left out"));
            return;
        };
        if copy.is_none() {
            found.push(object);
        }
        at += object.size;
    }
}

/// The object at an address in a segment; `None` if none can be there.
fn object_at(memory: &dyn Memory, heap: &mut Heap, index: usize, base: u64) -> Option<Object> {
    let Heap { segments, pools, types, .. } = heap;
    let segment = &segments[index];
    let kind = types.of_object(memory, &pools[segment.pool].outline, segment.align, base)?;
    let size = types.get(kind).size(memory, base)?;
    let is_size = size > segment.header && size.is_multiple_of(segment.align) && size <= segment.limit - base;
    is_size.then_some(Object { base, size, kind: kind as u32, segment: index as u32 })
}
