//! A scratch: no two objects overlap, and collections live in it.

use core::alloc::Layout;

use allocator_api2::alloc::Allocator;
use allocator_api2::boxed::Box as BoxIn;
use allocator_api2::vec::Vec as VecIn;
use proptest::prelude::*;
use tripoint_adaptors::{PoolAllocator, Scratch};
use tripoint_core::{Error, PoolClass};

use crate::with_pool;

const CASES: u32 = if cfg!(miri) { 2 } else { 256 };
const STEPS: usize = if cfg!(miri) { 10 } else { 100 };

#[derive(Clone, Copy, Debug)]
enum Step {
    Object(usize, usize),
    Row(usize),
    Text(usize),
    /// One block of the allocator gets another size, or is freed if that is zero.
    Resize(usize, usize),
    Block(usize, usize),
    Reset,
}

fn step() -> impl Strategy<Value = Step> {
    let (size, shift) = (0..300_usize, 0..9_usize);
    prop_oneof![
        5 => (size.clone(), shift.clone()).prop_map(|(size, shift)| Step::Object(size, 1 << shift)),
        2 => size.clone().prop_map(Step::Row),
        2 => size.clone().prop_map(Step::Text),
        4 => (1..2000_usize, shift).prop_map(|(size, shift)| Step::Block(size, 1 << shift)),
        6 => (0..50_usize, 0..3000_usize).prop_map(|(index, size)| Step::Resize(index, size)),
        1 => Just(Step::Reset),
    ]
}

/// A block of the allocator whose bytes are all `byte`.
struct Filled {
    block: core::ptr::NonNull<u8>,
    layout: Layout,
    byte: u8,
}

impl Filled {
    fn fill(&self) {
        // SAFETY: a block of this size, which is this value's.
        unsafe { self.block.write_bytes(self.byte, self.layout.size()) };
    }

    fn check(&self) {
        // SAFETY: a block of this size, which was filled.
        let bytes = unsafe { core::slice::from_raw_parts(self.block.as_ptr(), self.layout.size()) };
        assert!(bytes.iter().all(|byte| *byte == self.byte), "a block was written over");
        assert_eq!(self.block.addr().get() % self.layout.align(), 0);
    }
}

/// One round: a reset needs all that was borrowed to be gone. Returns the steps that are left.
fn round<'s, S: tripoint_core::Store>(scratch: &Scratch<S>, mut steps: &'s [Step]) -> &'s [Step] {
    let mut blocks: Vec<Filled> = Vec::new();
    let mut rows: Vec<(&mut [u32], u32)> = Vec::new();
    let mut texts: Vec<(&mut str, String)> = Vec::new();
    let mut count = 0_u8;
    while let [step, rest @ ..] = steps {
        steps = rest;
        count = count.wrapping_add(1);
        match *step {
            Step::Object(size, align) => {
                let layout = Layout::from_size_align(size, align).unwrap();
                blocks.push(Filled { block: scratch.alloc_layout(layout), layout, byte: count });
                blocks.last().unwrap().fill();
            }
            Step::Block(size, align) => {
                let layout = Layout::from_size_align(size, align).unwrap();
                let block = scratch.allocate(layout).unwrap().cast();
                blocks.push(Filled { block, layout, byte: count });
                blocks.last().unwrap().fill();
            }
            Step::Row(length) => {
                let row = scratch.alloc_slice_fill_iter(
                    (0..).take_while(|index| *index < length).map(|_| u32::from(count)),
                );
                assert_eq!(row.len(), length);
                rows.push((row, u32::from(count)));
            }
            Step::Text(length) => {
                let text = "ä".repeat(length);
                texts.push((scratch.alloc_str(&text), text));
            }
            Step::Resize(index, size) if !blocks.is_empty() => {
                let index = blocks.len() - 1 - index % blocks.len();
                let mut filled = blocks.remove(index);
                let to = Layout::from_size_align(size, filled.layout.align()).unwrap();
                // SAFETY: a block of this scratch with its layout; freed once.
                unsafe {
                    filled.block = if size == 0 {
                        scratch.deallocate(filled.block, filled.layout);
                        continue;
                    } else if size >= filled.layout.size() {
                        (&scratch).grow(filled.block, filled.layout, to).unwrap().cast()
                    } else {
                        (&scratch).shrink(filled.block, filled.layout, to).unwrap().cast()
                    };
                }
                filled.layout = Layout::from_size_align(size.min(filled.layout.size()), to.align()).unwrap();
                filled.check(); // the bytes that both have
                filled.layout = to;
                filled.fill();
                blocks.push(filled);
            }
            Step::Resize(..) => {}
            Step::Reset => break,
        }
    }
    blocks.iter().for_each(Filled::check);
    assert!(rows.iter().all(|(row, number)| row.iter().all(|found| found == number)));
    assert!(texts.iter().all(|(text, expected)| *text == expected));
    steps
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(CASES) })]

    #[test]
    fn objects_do_not_overlap(steps in prop::collection::vec(step(), 0..STEPS)) {
        with_pool(4 << 20, |pool| {
            let mut scratch = Scratch::new_in(PoolAllocator::new(pool));
            let mut steps = &steps[..];
            while !steps.is_empty() {
                steps = round(&scratch, steps);
                scratch.reset();
            }
        });
    }
}

#[test]
fn collections_live_in_a_scratch() {
    let scratch = Scratch::new();
    let mut map = hashbrown::HashMap::<_, _, hashbrown::DefaultHashBuilder, _>::new_in(&scratch);
    let mut list = VecIn::new_in(&scratch);
    const COUNT: usize = if cfg!(miri) { 50 } else { 500 };
    for number in 0..COUNT {
        map.insert(number, scratch.alloc_str(&number.to_string()));
        list.push(number);
    }
    assert!(map.iter().all(|(number, text)| **text == number.to_string()));
    assert!(list.iter().copied().eq(0..COUNT));
    // A pointer that was made narrow on its way is freed, and its block used again.
    let mut list = VecIn::with_capacity_in(128, &scratch);
    list.extend(0..100_u8);
    let narrow: BoxIn<[u8], _> = list.into_boxed_slice();
    let place = narrow.as_ptr().addr();
    drop(narrow);
    assert_eq!(scratch.alloc([0_u64; 20]).as_ptr().addr(), place);
}

/// (design/adaptors.md `.own.scratch`)
#[test]
fn the_last_block_grows_where_it_is() {
    let scratch = Scratch::with_capacity(8000);
    let taken = scratch.allocated_bytes();
    let mut list = VecIn::with_capacity_in(1, &scratch);
    let place = list.as_ptr();
    list.extend(0..1000_u64);
    list.shrink_to_fit();
    assert_eq!(list.as_ptr(), place);
    assert_eq!(scratch.allocated_bytes(), taken);
    drop(list);
    assert_eq!(core::ptr::from_ref(scratch.alloc(1_u64)), place, "a freed block is used again");
}

/// (design/adaptors.md `.req.rounds`)
#[test]
fn the_same_round_again_takes_no_memory() {
    with_pool(1 << 20, |pool| {
        let mut scratch = Scratch::new_in(PoolAllocator::new(pool));
        let mut taken = Vec::new();
        for _ in 0..4 {
            for number in 0..if cfg!(miri) { 100 } else { 1000_u64 } {
                assert_eq!(*scratch.alloc(number), number);
                scratch.alloc_slice_copy(&[number; 5]);
                assert_eq!(scratch.alloc_with(|| *scratch.alloc(3)), &3);
            }
            taken.push((scratch.allocated_bytes(), pool.sizes().total));
            scratch.reset();
        }
        assert!(taken.windows(2).all(|two| two[0] == two[1]), "{taken:?}");
    });
}

fn address<T>(object: &T) -> usize {
    core::ptr::from_ref(object).addr()
}

/// (design/adaptors.md `.own.chunks`)
#[test]
fn a_round_begins_where_the_first_began() {
    with_pool(1 << 20, |pool| {
        let mut scratch = Scratch::new_in(PoolAllocator::new(pool));
        scratch.reset(); // without a chunk
        let place = address(scratch.alloc(1_u64));
        let large = address(scratch.alloc([1_u8; 5000]));
        let taken = scratch.allocated_bytes();
        scratch.reset();
        // What is too large for the first chunk finds the next one.
        assert_eq!(address(scratch.alloc([2_u8; 5000])), large);
        scratch.reset();
        assert_eq!(address(scratch.alloc(3_u64)), place);
        assert_eq!(address(scratch.alloc([3_u8; 5000])), large);
        assert_eq!(scratch.allocated_bytes(), taken);
    });
}

/// (design/adaptors.md `.req.refused`)
#[test]
fn a_refusal_is_an_error() {
    with_pool(64 << 10, |pool| {
        let scratch = Scratch::new_in(PoolAllocator::new(pool));
        scratch.try_alloc(7_u8).unwrap();
        assert_eq!(scratch.try_alloc([0_u8; 60 << 10]).map(|_| ()), Err(Error::Limit));
        let largest = Layout::from_size_align(isize::MAX as usize - 7, 8).unwrap();
        assert!(scratch.try_alloc_layout(largest).is_err());
        (&scratch).allocate(largest).unwrap_err();
        assert_eq!(scratch.try_alloc(8_u8), Ok(&mut 8));
    });
}

#[test]
fn objects_of_size_zero_take_nothing() {
    let scratch = Scratch::new();
    scratch.alloc(());
    assert_eq!(scratch.alloc_str(""), "");
    assert_eq!(scratch.alloc_slice_fill_iter([(); 9]).len(), 9);
    assert!(scratch.alloc_slice_copy::<u64>(&[]).is_empty());
    assert!(scratch.alloc_slice_fill_iter(None::<u64>).is_empty());
    assert_eq!(scratch.allocated_bytes(), 0);
}
