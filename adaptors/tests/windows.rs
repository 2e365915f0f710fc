//! A pool behind caches of threads, as the allocator of a whole program on Windows (`verify/windows`).
#![cfg(windows)]

use tripoint_adaptors::cached_global_pool;
use tripoint_arena_vm::{ArenaVm, ArenaVmOptions};
use tripoint_core::PoolClass;
use tripoint_pools::{Tlsf, TlsfOptions};

cached_global_pool! {
    #[global_allocator]
    static GLOBAL: Tlsf<ArenaVm> =
        || Tlsf::create(ArenaVm::create(ArenaVmOptions::default())?, TlsfOptions::default());
}

#[test]
fn threads_allocate_from_their_first_line_to_their_last() {
    const TEXTS: usize = 10_000;
    let text = |thread: usize, number: usize| format!("{thread} {number}");
    let threads: Vec<_> = (0..4)
        .map(|thread| {
            std::thread::spawn(move || (0..TEXTS).map(|number| text(thread, number)).collect::<Vec<_>>())
        })
        .collect();
    for (thread, made) in threads.into_iter().enumerate() {
        let texts = made.join().unwrap();
        assert!(texts.iter().enumerate().all(|(number, made)| *made == text(thread, number)));
    }
    let sizes = GLOBAL.pool().unwrap().sizes();
    assert!(sizes.high_water > 4 * TEXTS * size_of::<String>());
}
