//! A pool that one thread owns is called without a lock, so no reference to it leaves that thread.

use tripoint_core::{ClientArena, Owned};
use tripoint_pools::{Mfs, Mvff, Tlsf, UnitOf};

type Arena<'a> = &'a ClientArena<'a>;

fn send<T: Send>(_: T) {}

fn tlsf(pool: &Tlsf<Arena<'_>, Owned>) {
    send(pool);
}

fn mvff(pool: &Mvff<Arena<'_>, Owned>) {
    send(pool);
}

fn mfs(pool: &Mfs<Arena<'_>, UnitOf<u64>, Owned>) {
    send(pool);
}

fn main() {}
