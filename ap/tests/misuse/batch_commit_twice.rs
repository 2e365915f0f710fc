//! Committing consumes the batch.

use tripoint_ap::Batch;
use tripoint_core::ManualPool;

fn misuse<P: ManualPool>(batch: Batch<'_, '_, u64, P>) {
    let first = batch.commit().len();
    let second = batch.commit().len();
    drop((first, second));
}

fn main() {}
