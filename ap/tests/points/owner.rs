//! The owner's half of a buffer by itself, without a pool. No pointer is followed, so
//! addresses are only numbers.

use core::ptr;

use tripoint_ap::internal::{Owner, buffer_without_pool};
use tripoint_ap::{Buffer, BufferMode};
use tripoint_core::{Addr, AddrRange, BarrierPair, BufferKind, RankSet, SymmetricFence};

const BASE: usize = 0x1000;
const LIMIT: usize = 0x2000;

fn addr(value: usize) -> *mut u8 {
    ptr::without_provenance_mut(value)
}

/// Runs `test` with the owner of a flippable buffer of `[BASE, LIMIT)`, armed.
fn with_owner(test: impl FnOnce(&mut Owner<'_>)) {
    let buffer = buffer_without_pool(BufferKind::Mutator, RankSet::EXACT);
    // SAFETY: the buffer has no other owner.
    let mut owner = unsafe { Owner::new(&buffer) };
    owner.attach(addr(BASE), addr(BASE), addr(LIMIT));
    owner.rearm(addr(LIMIT), &mut |_| {});
    test(&mut owner);
}

fn flip(owner: &Owner<'_>) -> Option<AddrRange> {
    // SAFETY: the only commits into the buffer are the test's, and they use this pair.
    unsafe { owner.buffer().flip(SymmetricFence) }
}

/// What a flip returns that saw objects from `base` to `limit`.
fn seen(base: usize, limit: usize) -> Option<AddrRange> {
    AddrRange::new(Addr::new(base), Addr::new(limit))
}

#[test]
fn an_owner_reads_its_words() {
    with_owner(|owner| {
        owner.declare(addr(BASE + 64));
        let words = [owner.base(), owner.init(), owner.limit(), owner.pool_limit()];
        assert_eq!(words, [BASE, BASE + 64, LIMIT, LIMIT].map(addr));
        owner.buffer().trip();
        assert_eq!(owner.limit(), ptr::null_mut());
        owner.detach();
        let words = [owner.base(), owner.init(), owner.limit(), owner.pool_limit()];
        assert_eq!(words, [ptr::null_mut(); 4]);
    });
}

#[test]
fn a_commit_stands_unless_a_flip_did_not_see_it() {
    with_owner(|owner| {
        let end = |objects: usize| addr(BASE + 16 * objects);
        assert!(owner.commit(end(0), end(1), SymmetricFence), "nothing was requested");
        assert_eq!(owner.init(), end(1));
        owner.buffer().trip();
        assert!(owner.commit(end(1), end(2), SymmetricFence), "tripped, and not flipped");
        assert_eq!(flip(owner), seen(BASE, BASE + 32));
        assert!(!owner.commit(end(2), end(3), SymmetricFence), "not seen");
        assert_eq!((owner.init(), owner.buffer().scan_limit()), (end(2), end(2)));
        let mut observed = 0;
        owner.rearm(addr(LIMIT), &mut |requests| observed += requests);
        assert_eq!((observed, owner.limit()), (2, addr(LIMIT)));
        assert!(owner.commit(end(2), end(3), SymmetricFence), "the owner has gone on from the flip");
    });
}

#[test]
fn a_commit_that_the_flip_saw_stands() {
    with_owner(|owner| {
        owner.declare(addr(BASE + 16));
        assert_eq!(flip(owner), seen(BASE, BASE + 16));
        assert!(owner.commit_tripped(addr(BASE), addr(BASE + 16)));
        assert_eq!(owner.init(), addr(BASE + 16));
    });
}

#[test]
fn rearming_observes_trips_that_come_meanwhile() {
    with_owner(|owner| {
        let buffer = owner.buffer();
        buffer.trip();
        let mut observed = Vec::new();
        owner.rearm(addr(LIMIT), &mut |requests| {
            observed.push(requests);
            if observed.len() < 3 {
                buffer.trip();
                buffer.trip();
            }
        });
        assert_eq!(observed, [1, 2, 2]);
        assert_eq!(owner.limit(), addr(LIMIT));
        assert_eq!(buffer.snapshot().unwrap().mode, BufferMode::ATTACHED);
    });
}

/// Runs what the owner does while a flip is at its heavy barrier.
#[derive(Clone, Copy, Debug)]
struct Scripted<'b> {
    buffer: &'b Buffer,
    meanwhile: fn(&mut Owner<'_>),
}

// SAFETY: this is used on one thread, on which program order is enough.
unsafe impl BarrierPair for Scripted<'_> {
    fn light(self) {}

    fn heavy(self) {
        // SAFETY: the test's own owner does nothing while this one lives, so the buffer has one owner at a time.
        let mut owner = unsafe { Owner::new(self.buffer) };
        (self.meanwhile)(&mut owner);
    }
}

/// Flips a buffer whose owner has a reservation of 16 bytes at `BASE`, and runs
/// `meanwhile` at the barrier.
fn flip_while(meanwhile: fn(&mut Owner<'_>)) -> Option<AddrRange> {
    let mut objects = None;
    with_owner(|owner| {
        let buffer = owner.buffer();
        // SAFETY: the pair that the owner commits with.
        objects = unsafe { buffer.flip(Scripted { buffer, meanwhile }) };
    });
    objects
}

const NEXT: usize = 0x9000;

/// Commits the reservation that was made before the flip, which decides the flip.
fn commit(owner: &mut Owner<'_>) {
    assert!(owner.commit(addr(BASE), addr(BASE + 16), SymmetricFence), "whole, so let it be seen");
}

/// Goes on in other memory, and allocates there.
fn go_on(owner: &mut Owner<'_>) {
    owner.detach();
    owner.attach(addr(NEXT), addr(NEXT), addr(NEXT + 0x1000));
    owner.rearm(addr(NEXT + 0x1000), &mut |_| {});
    assert!(owner.commit(addr(NEXT), addr(NEXT + 0x100), SymmetricFence), "begun after the flip");
}

/// (design/ap.md `.flip.block`)
#[test]
fn a_flip_returns_what_it_fixed_and_never_other_memory() {
    assert_eq!(flip_while(|_| ()), seen(BASE, BASE));
    assert_eq!(flip_while(commit), seen(BASE, BASE + 16), "the owner decided");
    assert_eq!(flip_while(|owner| owner.detach()), None, "it has no memory any more");
    assert_eq!(flip_while(go_on), None, "the owner went on first");
    let decide_and_go_on = |owner: &mut Owner<'_>| {
        commit(owner);
        go_on(owner);
    };
    assert_eq!(flip_while(decide_and_go_on), None, "the owner decided, and went on");
    let rearm = |owner: &mut Owner<'_>| owner.rearm(addr(LIMIT), &mut |_| {});
    assert_eq!(flip_while(rearm), None, "the owner went on in the same memory");
}
