//! References are counted without atomics, so they stay on their thread.

use tripoint_core::{ManualPool, PoolRc};

fn send<T: Send>(_: T) {}

fn misuse<P: ManualPool + Sync>(shared: PoolRc<'_, u64, P>) {
    send(shared);
}

fn main() {}
