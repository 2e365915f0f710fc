//! Descriptor memory against a list of live descriptors.
//! (design/arena.md `.req.place`.)
#![cfg(not(tripoint_loom))]

use core::alloc::Layout;
use core::mem::MaybeUninit;
use core::ptr::NonNull;

use proptest::prelude::*;
use tripoint_core::internal::DescriptorMemory;
use tripoint_core::{Addr, Block, CheckLevel, Error};
use tripoint_oracle::{cases, effort};

fn layout(size: usize) -> Layout {
    Layout::from_size_align(size, 8).unwrap()
}

/// Blocks for descriptor memory, freed when the test ends.
#[derive(Default)]
struct Supplies(Vec<Box<[MaybeUninit<u8>]>>);

impl Supplies {
    /// A block of `size` bytes, `offset` bytes into an allocation.
    fn block(&mut self, offset: usize, size: usize) -> Block {
        self.0.push(Box::new_uninit_slice(offset + size));
        let memory = self.0.last_mut().unwrap();
        let base = NonNull::from(&mut memory[offset..]).cast::<u8>();
        // SAFETY: the memory is boxed, of this size, and kept until the test ends.
        unsafe { Block::new(base, size) }
    }
}

#[derive(Debug)]
struct Descriptor {
    memory: NonNull<u8>,
    size: usize,
    mark: u8,
}

impl Descriptor {
    /// Fills the whole of a fresh descriptor's memory with a mark.
    fn new(memory: NonNull<u8>, size: usize, mark: u8) -> Self {
        // SAFETY: `alloc` returns memory of the size rounded up to 64 bytes.
        unsafe { memory.write_bytes(mark, size.next_multiple_of(64)) };
        Self { memory, size, mark }
    }

    /// Asserts that no other code wrote to it.
    fn verify(&self) {
        for offset in 0..self.size.next_multiple_of(64) {
            // SAFETY: `new` initialised these bytes.
            assert_eq!(unsafe { self.memory.add(offset).read() }, self.mark);
        }
    }
}

#[derive(Clone, Debug)]
enum Step {
    Alloc(usize),
    Free(prop::sample::Index),
    Supply(usize, usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (1..=DescriptorMemory::SIZE_MAX).prop_map(Step::Alloc),
        4 => any::<prop::sample::Index>().prop_map(Step::Free),
        1 => (0..70usize, 0..1500usize).prop_map(|(offset, size)| Step::Supply(offset, size)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases(128)))]

    #[test]
    fn agrees_with_a_list(steps in prop::collection::vec(step(), 1..effort(150) as usize)) {
        let mut supplies = Supplies::default();
        let mut descriptors = DescriptorMemory::new();
        let mut live: Vec<Descriptor> = Vec::new();
        for (mark, step) in (0..=255u8).cycle().zip(steps) {
            match step {
                Step::Alloc(size) => {
                    let mut memory = descriptors.alloc(layout(size)).unwrap();
                    if memory.is_none() {
                        let need = DescriptorMemory::size(layout(size)).unwrap();
                        let block = supplies.block(0, need + 63);
                        // SAFETY: the block is the descriptor memory's alone.
                        unsafe { descriptors.supply(block) };
                        memory = descriptors.alloc(layout(size)).unwrap();
                    }
                    let memory = memory.expect("a block of the size asked for suffices");
                    prop_assert!(Addr::of(memory.as_ptr()).is_aligned(DescriptorMemory::ALIGN));
                    live.push(Descriptor::new(memory, size, mark));
                }
                Step::Free(index) if !live.is_empty() => {
                    let descriptor = live.swap_remove(index.index(live.len()));
                    descriptor.verify();
                    // SAFETY: allocated above with this layout, freed once.
                    unsafe { descriptors.free(descriptor.memory, layout(descriptor.size)) };
                }
                Step::Free(_) => {}
                Step::Supply(offset, size) => {
                    let before = descriptors.supplied();
                    let block = supplies.block(offset, size);
                    // SAFETY: the block is the descriptor memory's alone.
                    unsafe { descriptors.supply(block) };
                    let supplied = descriptors.supplied() - before;
                    prop_assert!(supplied <= size && supplied + 126 >= size && supplied.is_multiple_of(64));
                }
            }
            descriptors.check(CheckLevel::Deep).unwrap();
            let in_use: usize = live.iter().map(|descriptor| descriptor.size.next_multiple_of(64)).sum();
            prop_assert_eq!(descriptors.in_use(), in_use);
        }
        live.iter().for_each(Descriptor::verify);
    }
}

#[test]
fn freed_memory_serves_its_size_again() {
    let mut supplies = Supplies::default();
    let mut descriptors = DescriptorMemory::new();
    // SAFETY: the block is the descriptor memory's alone.
    unsafe { descriptors.supply(supplies.block(0, 192 * 4 + 63)) };
    let all: Vec<_> = (0..4).map(|_| descriptors.alloc(layout(192)).unwrap().unwrap()).collect();
    assert_eq!(descriptors.alloc(layout(192)), Ok(None));
    for &descriptor in &all {
        // SAFETY: allocated above with this layout, freed once.
        unsafe { descriptors.free(descriptor, layout(192)) };
    }
    assert_eq!(descriptors.alloc(layout(64)), Ok(None));
    let again: Vec<_> = (0..4).map(|_| descriptors.alloc(layout(130)).unwrap().unwrap()).collect();
    assert!(all.iter().all(|descriptor| again.contains(descriptor)));
}

#[test]
fn layouts_it_does_not_keep_are_refused() {
    let mut descriptors = DescriptorMemory::new();
    for layout in [layout(0), layout(1025), Layout::from_size_align(128, 128).unwrap()] {
        assert!(matches!(DescriptorMemory::size(layout), Err(Error::Parameter(_))));
        assert!(matches!(descriptors.alloc(layout), Err(Error::Parameter(_))));
    }
    assert_eq!(DescriptorMemory::size(layout(1024)), Ok(1024));
    assert_eq!(DescriptorMemory::size(Layout::from_size_align(1, 64).unwrap()), Ok(64));
    descriptors.check(CheckLevel::Deep).unwrap();
}

#[test]
fn checks_find_damaged_free_lists() {
    let mut supplies = Supplies::default();
    let mut descriptors = DescriptorMemory::new();
    // SAFETY: the block is the descriptor memory's alone.
    unsafe { descriptors.supply(supplies.block(0, 512)) };
    let pair = [(); 2].map(|()| descriptors.alloc(layout(64)).unwrap().unwrap());
    for descriptor in pair {
        // SAFETY: allocated above with this layout, freed once.
        unsafe { descriptors.free(descriptor, layout(64)) };
    }
    descriptors.check(CheckLevel::Deep).unwrap();
    let link = pair[1].cast::<Option<NonNull<u8>>>();
    // A list that runs in a circle, one that was cut short, one that leads astray.
    // SAFETY: one byte further is still inside the descriptor.
    let astray = unsafe { pair[0].add(1) };
    for damage in [Some(pair[1]), None, Some(astray)] {
        // SAFETY: free memory of the descriptor memory, which is not in use here.
        unsafe { link.write(damage) };
        assert!(descriptors.check(CheckLevel::Deep).is_err(), "{damage:?}");
        assert!(descriptors.check(CheckLevel::Shallow).is_ok());
    }
}

#[test]
fn describes_its_memory() {
    let mut supplies = Supplies::default();
    let mut descriptors = DescriptorMemory::new();
    // SAFETY: the block is the descriptor memory's alone.
    unsafe { descriptors.supply(supplies.block(0, 512 + 63)) };
    descriptors.alloc(layout(100)).unwrap().unwrap();
    let mut text = String::new();
    descriptors.describe(&mut text, 1).unwrap();
    assert_eq!(text, "  descriptors: 512 bytes supplied, 128 in use\n");
}
