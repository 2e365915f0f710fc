//! Frames and scopes of SNC, and an arena of the same kind.

use core::hint::black_box;

use bumpalo::Bump;
use tripoint::{AllocationPoint, ArenaVm, ArenaVmOptions, Snc, SncOptions};

use crate::{Operation, counted};

pub(crate) const OPERATIONS: [Operation; 11] = [
    ("pop of 1 object in a block", |count| pop_within(1, count)),
    ("pop of 100 objects in a block", |count| pop_within(100, count)),
    ("pop of 10,000 objects in a block", |count| pop_within(10_000, count)),
    ("pop across 10 blocks of 4 KiB", |count| pop_across(10, count)),
    ("pop across 20 blocks of 4 KiB", |count| pop_across(20, count)),
    ("scope", |count| scope(0, count)),
    ("scope with 1 object of 32 bytes", |count| scope(1, count)),
    ("scope with 100 objects of 32 bytes", |count| scope(100, count)),
    ("bumpalo reset", |count| reset(0, count)),
    ("bumpalo reset, 1 object of 32 bytes", |count| reset(1, count)),
    ("bumpalo reset, 100 objects of 32 bytes", |count| reset(100, count)),
];

type Stack<'pool, 'arena> = AllocationPoint<'pool, Snc<&'arena ArenaVm>>;

/// Runs with a stack whose blocks have this size.
fn with_stack(fill_size: usize, run: impl FnOnce(&mut Stack<'_, '_>)) {
    let arena = ArenaVm::create(ArenaVmOptions::default()).unwrap();
    let pool = Snc::create(&arena, SncOptions { fill_size, extend_by: 1 << 20 }).unwrap();
    let mut stack = AllocationPoint::create(&pool).unwrap();
    alloc(&mut stack, [1; 4]);
    run(&mut stack);
}

fn alloc<T>(stack: &mut Stack<'_, '_>, value: T) {
    let reservation = stack.reserve(core::alloc::Layout::new::<T>()).unwrap();
    // SAFETY: reserved just now, with the layout of the value.
    unsafe { reservation.as_ptr().cast().write(value) };
    // SAFETY: written just now.
    unsafe { reservation.commit() }.unwrap();
}

fn pop_within(objects: usize, count: usize) {
    with_stack(1 << 20, |stack| {
        for _ in 0..count {
            let frame = stack.push();
            (0..objects).for_each(|index| alloc(stack, [index as u64; 4]));
            // SAFETY: the frame is of this point, and no object above it is
            // used any more.
            counted(|| unsafe { stack.pop(frame) });
        }
    });
}

fn pop_across(blocks: usize, count: usize) {
    with_stack(4096, |stack| {
        for _ in 0..count {
            let frame = stack.push();
            // Two do not fit in one block.
            (0..blocks).for_each(|_| alloc(stack, [0_u8; 3000]));
            // SAFETY: the frame is of this point, and no object above it is
            // used any more.
            counted(|| unsafe { stack.pop(frame) });
        }
    });
}

fn scope(objects: usize, count: usize) {
    with_stack(64 << 10, |stack| {
        for round in 0..count {
            counted(|| {
                stack.scope(|scope| {
                    for index in 0..objects {
                        black_box(scope.alloc([(round + index) as u64; 4]).unwrap());
                    }
                });
            });
        }
    });
}

fn reset(objects: usize, count: usize) {
    let mut bump = Bump::with_capacity(64 << 10);
    for round in 0..count {
        counted(|| {
            for index in 0..objects {
                black_box(bump.alloc([(round + index) as u64; 4]));
            }
            bump.reset();
        });
    }
}
