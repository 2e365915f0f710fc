//! A box goes to another thread only with what may go there itself.

use std::rc::Rc;
use tripoint_core::{ManualPool, PoolBox};

fn send<T: Send>(_: T) {}

fn misuse<P: ManualPool + Sync>(boxed: PoolBox<'_, Rc<u64>, P>) {
    send(boxed);
}

fn main() {}
