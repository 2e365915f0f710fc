//! A format of a program's own, with and without a description, and roots that are a stack and a table with tags.

use core::alloc::Layout;
use core::hint::black_box;
use core::ptr::{self, NonNull};
use std::collections::BTreeMap;

use serde_json::json;
use tripoint::{AllocationPoint, BufferKind};
use tripoint_arena_vm::ArenaVm;
use tripoint_core::{Block, SymmetricFence};
use tripoint_gc::{
    Ams, Format, FormatOutline, Heap, HeapOptions, Mutator, ObjectKind, Scan, Swept, SweptOptions, Tag,
    Traced,
};

use super::child::{arena, stay};

/// The kinds of cells: in the lowest byte of the first word. An array has its length above that.
const PAIR: usize = 1;
const NUMBER: usize = 2;
const ARRAY: usize = 3;
const NEEDLE: usize = 4;

const KINDS: &[ObjectKind] = &[
    ObjectKind::new(PAIR, "pair", 24).with_references(&[8, 16]),
    ObjectKind::new(NUMBER, "number", 16),
    ObjectKind::new(ARRAY, "array", 8).with_items(0, 8, 8, &[0]),
    ObjectKind::new(NEEDLE, "needle", 16),
];

/// Whether the format describes its objects.
struct Cells<const IS_DESCRIBED: bool>;

type Word = *mut u8;

/// The words of a cell behind its first, and how many of them are references.
fn words(first: usize) -> (usize, usize) {
    match first & 0xff {
        PAIR => (2, 2),
        ARRAY => (first >> 8, first >> 8),
        _ => (1, 0),
    }
}

// SAFETY: the first word of a cell says how long it is and what is a reference, and it never changes.
unsafe impl<const IS_DESCRIBED: bool> Format for Cells<IS_DESCRIBED> {
    unsafe fn skip(&self, object: NonNull<u8>) -> usize {
        // SAFETY: the caller promises a cell.
        let first = unsafe { object.cast::<usize>().read() };
        8 * (1 + words(first).0)
    }

    fn outline(&self) -> FormatOutline {
        if IS_DESCRIBED { FormatOutline::of_kinds(0, 0xff, KINDS) } else { FormatOutline::UNKNOWN }
    }

    unsafe fn scan(&self, objects: Block, scan: &mut Scan<'_>) {
        let mut at = 0;
        while at < objects.size() {
            // SAFETY: the caller promises whole cells in a row.
            let cell = unsafe { objects.base().add(at) };
            // SAFETY: a cell begins with a word.
            let (count, references) = words(unsafe { cell.cast::<usize>().read() });
            for index in 1..=references {
                // SAFETY: the cell has that many references, which no thread uses meanwhile.
                scan.fix(unsafe { cell.cast::<Word>().add(index).as_mut() });
            }
            at += 8 * (1 + count);
        }
    }
}

type Pool<'h, const IS_DESCRIBED: bool> = Ams<'h, &'h ArenaVm, SymmetricFence, Cells<IS_DESCRIBED>>;
type Point<'p, 'h, const IS_DESCRIBED: bool> = AllocationPoint<'p, Pool<'h, IS_DESCRIBED>>;

fn point<'p, 'h, const IS_DESCRIBED: bool>(
    pool: &'p Swept<'h, &'h ArenaVm, SymmetricFence, Cells<IS_DESCRIBED>, Traced>,
    mutator: &Mutator<'h, &'h ArenaVm, SymmetricFence>,
) -> Point<'p, 'h, IS_DESCRIBED> {
    AllocationPoint::create_in(pool, BufferKind::Mutator, (), |buffer| {
        // SAFETY: this thread has the mutator, which runs whenever the point is used.
        unsafe { buffer.attend(mutator) };
    })
    .unwrap()
}

/// Makes a cell.
fn cell<const IS_DESCRIBED: bool>(
    point: &mut Point<'_, '_, IS_DESCRIBED>,
    first: usize,
    rest: &[Word],
) -> Word {
    let layout = Layout::array::<usize>(1 + rest.len()).unwrap();
    let reservation = point.reserve(layout).unwrap();
    let place = reservation.as_ptr().cast::<Word>();
    // SAFETY: the reservation has room for these words.
    unsafe { place.write(ptr::without_provenance_mut(first)) };
    for (index, word) in rest.iter().enumerate() {
        // SAFETY: the reservation has room for these words.
        unsafe { place.add(1 + index).write(*word) };
    }
    // SAFETY: the cell was written. Nothing collects.
    unsafe { reservation.commit() }.unwrap().as_ptr()
}

/// Stays while a pair is known from a variable of this function alone, which leads to a needle.
#[inline(never)]
fn stay_with<const IS_DESCRIBED: bool>(point: &mut Point<'_, '_, IS_DESCRIBED>, known: &serde_json::Value) {
    let needle = cell(point, NEEDLE, &[ptr::null_mut()]);
    let pair = cell(point, PAIR, &[ptr::null_mut(), needle]);
    stay(known);
    black_box(pair);
}

/// What the child runs.
pub(super) fn run() {
    let arena = arena();
    let heap = Heap::create(&arena, HeapOptions::default()).unwrap();
    let described = Swept::create(&heap, Cells::<true>, SweptOptions::default()).unwrap();
    let hidden = Swept::create(&heap, Cells::<false>, SweptOptions::default()).unwrap();
    let mutator = heap.register().unwrap();
    let (mut point, mut other) = (point(&described, &mutator), point(&hidden, &mutator));
    let mut cold_end = 0_usize;
    // SAFETY: the mutator is this thread's, and outlives the root, as this function does.
    let stack = unsafe { heap.root_stack(&mutator, NonNull::from(&mut cold_end)) }.unwrap();
    let mut numbers = Vec::new();
    for number in 0..30 {
        numbers.push(cell(&mut point, NUMBER, &[ptr::without_provenance_mut(number)]));
    }
    let mut list = ptr::null_mut();
    for number in &numbers[..20] {
        list = cell(&mut point, PAIR, &[*number, list]);
    }
    let array = cell(&mut point, ARRAY | numbers.len() << 8, &numbers);
    cell(&mut other, NUMBER, &[ptr::null_mut()]);
    // What is below it is a tag.
    let mut table = [array.map_addr(|addr| addr | 5), list, ptr::without_provenance_mut(8)];
    let tag = Tag { mask: 7, pattern: 5 };
    // SAFETY: the table outlives the root, and only this thread uses it.
    let root = unsafe { heap.root_table(NonNull::from(&mut table).cast(), 3, tag) }.unwrap();
    let types = BTreeMap::from([
        ("pair", (21, 21 * 24)),
        ("number", (30, 30 * 16)),
        ("array", (1, 8 + 30 * 8)),
        ("needle", (1, 16)),
    ]);
    stay_with(&mut point, &json!({ "types": types }));
    drop((root, stack));
}
