//! Batches of pools that may take them back are not lent out.

use tripoint_ap::Batch;
use tripoint_core::PoolClass;

fn misuse<P: PoolClass>(batch: Batch<'_, '_, u64, P>) -> usize {
    batch.commit().len()
}

fn main() {}
