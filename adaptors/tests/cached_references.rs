//! Caches of a global pool in the memory of the program, so that Miri can watch what is made of raw
//! pointers: the cache of a thread, its end, and blocks that pass between threads.

use core::alloc::{GlobalAlloc, Layout};
use std::sync::mpsc;
use std::thread;

use tripoint_adaptors::cached_global_pool;
use tripoint_core::{ClientArena, ClientArenaOptions, PoolClass, Result};
use tripoint_pools::{Tlsf, TlsfOptions};

type Pool = Tlsf<ClientArena<'static>>;

fn make() -> Result<Pool> {
    let memory = Box::leak(Box::new_uninit_slice(512 << 10));
    Tlsf::create(ClientArena::create(memory, ClientArenaOptions::default())?, TlsfOptions::default())
}

const LAYOUT: Layout = Layout::new::<[u64; 4]>();

/// An object whose bytes are all `byte`, sent whole to another thread.
struct Sent(*mut u8, u8);

// SAFETY: a live object, which goes to another thread whole.
unsafe impl Send for Sent {}

cached_global_pool! { static POOL: Pool = make; }

fn filled(byte: u8) -> Sent {
    // SAFETY: a layout with a size.
    let object = unsafe { POOL.alloc(LAYOUT) };
    assert!(!object.is_null());
    // SAFETY: of this size, and this thread's.
    unsafe { object.write_bytes(byte, LAYOUT.size()) };
    Sent(object, byte)
}

fn free(Sent(object, byte): Sent) {
    // SAFETY: a live object that `filled` wrote.
    assert_eq!(unsafe { object.add(LAYOUT.size() - 1).read() }, byte);
    // SAFETY: from this allocator, with this layout, freed once.
    unsafe { POOL.dealloc(object, LAYOUT) };
}

#[test]
fn objects_pass_between_threads_that_end() {
    const OBJECTS: u8 = if cfg!(miri) { 150 } else { u8::MAX };
    for _ in 0..2 {
        let (sender, receiver) = mpsc::channel();
        let makes = thread::spawn(move || (0..OBJECTS).for_each(|byte| sender.send(filled(byte)).unwrap()));
        let frees = thread::spawn(move || receiver.into_iter().for_each(free));
        makes.join().unwrap();
        frees.join().unwrap();
    }
    let object = filled(1);
    // SAFETY: from this allocator with this layout; the new size is not zero.
    let moved = unsafe { POOL.realloc(object.0, LAYOUT, 1000) };
    // SAFETY: the bytes that both have were kept.
    assert_eq!(unsafe { moved.add(LAYOUT.size() - 1).read() }, 1);
    // SAFETY: resized to this layout, freed once.
    unsafe { POOL.dealloc(moved, Layout::from_size_align(1000, LAYOUT.align()).unwrap()) };
    POOL.flush_thread();
    POOL.depot().unwrap().flush();
    let sizes = POOL.pool().unwrap().sizes();
    assert!(sizes.total - sizes.free < 8192, "only this thread's cache itself is left");
}
