//! Objects of any type that are never dropped.

use core::hint::black_box;

use benches::compare::{Contender, compare, print};
use bumpalo::Bump;
use tripoint::Scratch;

use crate::{Amount, timed};

/// Compares the two with the same code.
macro_rules! against {
    ($($work:tt)*) => {
        compare_arenas!(["Scratch", tripoint::Scratch], ["bumpalo", bumpalo::Bump], $($work)*)
    };
}

pub(crate) fn measure(amount: Amount) {
    let Amount { objects, small, .. } = amount;
    against!(format!("{objects} objects of 32 bytes, never dropped"), amount, objects, |Arena| {
        let arena = Arena::new();
        for number in 0..objects as u64 {
            black_box(arena.alloc([number; 4]));
        }
    });
    against!(format!("{objects} objects of 1 to 32 bytes"), amount, objects, |Arena| {
        let arena = Arena::new();
        for number in 0..objects as u64 / 4 {
            black_box(arena.alloc(number as u8));
            black_box(arena.alloc(number));
            black_box(arena.alloc([number as u32; 3]));
            black_box(arena.alloc([number; 4]));
        }
    });
    for count in [10, 100, 10_000] {
        let rounds = objects / count;
        against!(
            format!("{rounds} rounds of {count} objects of 32 bytes, and a reset"),
            amount,
            objects,
            |Arena| {
                let mut arena = Arena::new();
                for _ in 0..rounds {
                    for number in 0..count as u64 {
                        black_box(arena.alloc([number; 4]));
                    }
                    arena.reset();
                }
            }
        );
    }
    let texts = ["a", "name", "a longer name", "a text as people write it in a line of a page"];
    against!(format!("{objects} texts"), amount, objects, |Arena| {
        let arena = Arena::new();
        for number in 0..objects {
            black_box(arena.alloc_str(texts[number % texts.len()]));
        }
    });
    for count in [1, 10, 30] {
        against!(
            format!("{small} of {count} objects of 32 bytes, one by one"),
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
    against!(format!("{small} of 10 objects of 32 bytes, at once"), amount, small * 10, |Arena| {
        let arenas: Vec<_> = (0..small).map(|_| Arena::new()).collect();
        for arena in &arenas {
            for number in 0..10_u64 {
                black_box(arena.alloc([number; 4]));
            }
        }
    });
    against!("100 objects of 64 KiB, never dropped", amount, 100, |Arena| {
        let arena = Arena::new();
        for byte in 0..100_u8 {
            black_box(arena.alloc_slice_copy(black_box(&[byte; 64 << 10])));
        }
    });
    lists(amount, small, 100);
    lists(amount, 1, objects);
}

/// Lists that grow in place: bumpalo's own vector, and that of `allocator-api2` in a scratch.
fn lists(amount: Amount, lists: usize, entries: usize) {
    macro_rules! pushes {
        ($arena:ty, $list:ty) => {
            || {
                timed(|| {
                    let mut arena = <$arena>::new();
                    for _ in 0..lists {
                        let mut list = <$list>::new_in(&arena);
                        for entry in 0..entries as u64 {
                            list.push(black_box(entry));
                        }
                        black_box(&list);
                        drop(list);
                        arena.reset();
                    }
                })
            }
        };
    }
    let mut contenders = [
        Contender::new("Scratch", pushes!(Scratch, allocator_api2::vec::Vec<u64, _>)),
        Contender::new("bumpalo", pushes!(Bump, bumpalo::collections::Vec<u64>)),
    ];
    let compared = compare(&mut contenders, amount.rounds, lists * entries);
    print(&format!("{lists} lists of {entries} numbers, pushed one by one"), &compared);
}
