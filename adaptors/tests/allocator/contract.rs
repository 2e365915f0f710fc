// The contract of the `Allocator` in scope, held against an oracle that knows every byte.

use core::alloc::Layout;
use core::ptr::NonNull;

use proptest::prelude::*;
use tripoint_adaptors::PoolAllocator;
use tripoint_core::{CheckLevel, ManualPool, PoolClass};
use tripoint_oracle::{all_are, cases, effort};
use tripoint_pools::{Mfs, MfsOptions, Mvff, MvffOptions, Tlsf, TlsfOptions, UnitLayout};

use crate::layout;

/// A block and the bytes it should hold.
struct Held {
    block: NonNull<u8>,
    layout: Layout,
    bytes: Vec<u8>,
}

impl Held {
    fn new(block: NonNull<[u8]>, layout: Layout) -> Self {
        assert_eq!(block.len(), layout.size());
        assert!(block.cast::<u8>().addr().get().is_multiple_of(layout.align()));
        Self { block: block.cast(), layout, bytes: Vec::new() }
    }

    fn write(mut self, seed: u8) -> Self {
        self.bytes = (0..self.layout.size()).map(|index| seed.wrapping_add(index as u8)).collect();
        // SAFETY: the block has as many bytes, which are ours.
        unsafe {
            self.block.copy_from_nonoverlapping(NonNull::from(self.bytes.as_slice()).cast(), self.bytes.len())
        };
        self
    }

    fn read(&self, size: usize) -> &[u8] {
        // SAFETY: the block has at least as many bytes, all written.
        unsafe { core::slice::from_raw_parts(self.block.as_ptr(), size) }
    }

    fn assert_whole(&self) {
        assert_eq!(self.read(self.bytes.len()), self.bytes);
    }
}

#[derive(Clone, Debug)]
enum Step {
    Allocate { size: usize, align: u32, zeroed: bool },
    Resize { which: usize, size: usize, align: u32, zeroed: bool },
    Deallocate { which: usize },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let size = || prop_oneof![1 => Just(0_usize), 8 => 1..300_usize, 1 => 300..9000_usize];
    let step = prop_oneof![
        3 => (size(), 0..8_u32, any::<bool>())
            .prop_map(|(size, align, zeroed)| Step::Allocate { size, align, zeroed }),
        4 => (any::<usize>(), size(), 0..8_u32, any::<bool>())
            .prop_map(|(which, size, align, zeroed)| Step::Resize { which, size, align, zeroed }),
        2 => any::<usize>().prop_map(|which| Step::Deallocate { which }),
    ];
    prop::collection::vec(step, 1..effort(120) as usize)
}

fn resize<A: Allocator>(
    allocator: A,
    held: &Held,
    to: Layout,
    zeroed: bool,
) -> Result<NonNull<[u8]>, AllocError> {
    let from = held.layout;
    if to.size() < from.size() {
        // SAFETY: allocated with this layout, and not smaller than the new one.
        return unsafe { allocator.shrink(held.block, from, to) };
    }
    if zeroed {
        // SAFETY: allocated with this layout, and not larger than the new one.
        return unsafe { allocator.grow_zeroed(held.block, from, to) };
    }
    // SAFETY: allocated with this layout, and not larger than the new one.
    unsafe { allocator.grow(held.block, from, to) }
}

fn live<P: ManualPool>(pool: &P, steps: Vec<Step>) {
    let allocator = PoolAllocator::new(pool);
    let mut all: Vec<Held> = Vec::new();
    for (seed, step) in (0_u8..).zip(steps) {
        match step {
            Step::Allocate { size, align, zeroed } => {
                let layout = layout(size, 1 << align);
                let block =
                    if zeroed { allocator.allocate_zeroed(layout) } else { allocator.allocate(layout) };
                let Ok(block) = block else { continue };
                let held = Held::new(block, layout);
                if zeroed {
                    assert!(all_are(held.read(size), 0));
                }
                all.push(held.write(seed));
            }
            Step::Resize { which, size, align, zeroed } if !all.is_empty() => {
                let which = which % all.len();
                let to = layout(size, 1 << align);
                let Ok(block) = resize(allocator, &all[which], to, zeroed) else { continue };
                let old = all.swap_remove(which);
                let held = Held::new(block, to);
                let kept = size.min(old.layout.size());
                assert_eq!(held.read(kept), &old.bytes[..kept]);
                if zeroed && size > kept {
                    assert!(all_are(&held.read(size)[kept..], 0));
                }
                all.push(held.write(seed));
            }
            Step::Deallocate { which } if !all.is_empty() => {
                let old = all.swap_remove(which % all.len());
                old.assert_whole();
                // SAFETY: allocated with this layout, and out of the list. A copy of
                // the allocator may free it.
                unsafe { allocator.clone().deallocate(old.block, old.layout) };
            }
            _ => (),
        }
        all.iter().for_each(Held::assert_whole);
    }
    for held in all {
        // SAFETY: allocated from this allocator with this layout; freed once, and not used any more.
        unsafe { allocator.deallocate(held.block, held.layout) };
    }
    pool.check(CheckLevel::Deep).unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(48), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn lives_in_mvff(steps in steps()) {
        with_pool!(|arena| Mvff::create(arena, MvffOptions::default()), |pool| live(pool, steps));
    }

    #[test]
    fn lives_in_tlsf(steps in steps()) {
        with_pool!(|arena| Tlsf::create(arena, TlsfOptions::default()), |pool| live(pool, steps));
    }

    /// Most requests are refused: for their size, their alignment, or want of memory.
    #[test]
    fn lives_in_mfs(steps in steps()) {
        let unit = UnitLayout::new(layout(256, 64)).unwrap();
        with_pool!(|arena| Mfs::create(arena, unit, MfsOptions::default()), |pool| live(pool, steps));
    }
}

/// (design/adaptors.md `.req.in-place`)
#[test]
fn blocks_are_resized_in_place_while_they_take_the_same_room() {
    /// What sizes are rounded up to by the class: two words.
    const UNIT: usize = 2 * size_of::<usize>();
    with_pool!(|arena| Mvff::create(arena, MvffOptions::default()), |pool| {
        let allocator = PoolAllocator::new(pool);
        let block = allocator.allocate(layout(UNIT + 4, 8)).unwrap().cast::<u8>();
        // SAFETY: allocated with this layout; each resize is passed the layout of the last one.
        let grown = unsafe { allocator.grow(block, layout(UNIT + 4, 8), layout(2 * UNIT, 8)) }.unwrap();
        assert_eq!((grown.cast(), grown.len()), (block, 2 * UNIT));
        // SAFETY: resized to this layout just before, and not smaller than the new one.
        let shrunk = unsafe { allocator.shrink(block, layout(2 * UNIT, 8), layout(UNIT + 1, 8)) }.unwrap();
        assert_eq!((shrunk.cast(), shrunk.len()), (block, UNIT + 1));
        // SAFETY: resized to this layout just before, and freed once.
        unsafe { allocator.deallocate(block, layout(UNIT + 1, 8)) };
        assert_eq!(pool.sizes().free, pool.sizes().total);
    });
}

#[test]
fn blocks_without_size_are_aligned_and_take_nothing() {
    with_pool!(|arena| Mvff::create(arena, MvffOptions::default()), |pool| {
        let allocator = PoolAllocator::new(pool);
        let nothing = layout(0, 4096);
        let block = allocator.allocate(nothing).unwrap();
        assert_eq!((block.len(), block.cast::<u8>().addr().get() % 4096), (0, 0));
        assert_eq!(pool.sizes().total, 0);
        // SAFETY: allocated with this layout; each resize is passed the layout of the last one.
        let grown = unsafe { allocator.grow(block.cast(), nothing, layout(10, 1)) }.unwrap();
        assert!(pool.sizes().total > pool.sizes().free);
        // SAFETY: resized to this layout just before, and not smaller than the new one.
        let shrunk = unsafe { allocator.shrink(grown.cast(), layout(10, 1), nothing) }.unwrap();
        assert_eq!(pool.sizes().total, pool.sizes().free);
        // SAFETY: resized to this layout just before, and freed once.
        unsafe { allocator.deallocate(shrunk.cast(), nothing) };
    });
}
