//! What is shared is not changed.

use tripoint_core::{ManualPool, PoolRc};

fn misuse<P: ManualPool>(shared: PoolRc<'_, u64, P>) {
    *shared = 7;
}

fn main() {}
