//! Negative controls: free memory that was written over is found.

use core::alloc::Layout;
use core::ptr::without_provenance_mut;

use tripoint_core::{CheckLevel, ManualPool};

use crate::common::Oracle;

/// For classes that keep links in the first word of free blocks.
pub(crate) fn is_found<P: ManualPool>(pool: &P, layout: Layout) {
    let mut oracle = Oracle::default();
    for _ in 0..9 {
        oracle.alloc(pool, layout).unwrap();
    }
    for addr in oracle.addresses(true).into_iter().step_by(2) {
        oracle.free(pool, addr);
    }
    oracle.agree(pool);
    let mut free = Vec::new();
    pool.walk_free(&mut |block| free.push(block.base().cast::<*mut u8>()));
    assert!(free.len() > 3);
    // The last block of a fixed-size pool is its run, which keeps nothing in itself.
    free.truncate(3);
    for word in free {
        for value in [usize::MAX, 0x5151_5151, 0x5151_5140, 9] {
            // SAFETY: free memory, aligned, and put right before the pool uses it.
            let saved = unsafe { word.replace(without_provenance_mut(value)) };
            assert!(pool.check(CheckLevel::Shallow).is_ok());
            assert!(pool.check(CheckLevel::Deep).is_err(), "{value:#x} goes unseen");
            // SAFETY: free memory, aligned, which the pool has not used since.
            unsafe { word.write(saved) };
            pool.check(CheckLevel::Deep).unwrap();
        }
    }
    oracle.clear(pool);
}
