//! Which types may be sent to another thread, and which may be shared between
//! threads: those for which it is not obvious, with the reason.
//!
//! `design/api` states this for every public type, and `verify/public-api`
//! compares it with the source. The tests here find a mistake with `cargo test`
//! alone.
#![cfg(all(feature = "vm", feature = "adaptors", feature = "contract", feature = "packets"))]

use core::cell::Cell;
use core::marker::PhantomData;
use std::rc::Rc;
use std::sync::MutexGuard;

use tripoint::author::Counter;
use tripoint::author::{
    BasicBuffer, Block, Buffer, Fill, Land, Lock, Null, OwnBuffer, OwnedLock, PoolBuffer, PoolHeader,
    StackBuffer,
};
use tripoint::contract::{
    Amnesty, ColdRegistration, Contract, ContractAllocator, Guard, Ledger, NoReason, Report, Route, Slot,
    Warmup,
};
use tripoint::debug::DebugPool;
use tripoint::packets::{
    PacketBox, PacketBurst, PacketCache, PacketChain, PacketPool, PacketRegion, PacketRing,
};
use tripoint::points::{Control, Frame, FrameBox};
use tripoint::{
    AllocationPoint, ArenaVm, Batch, Cache, CacheDescriptor, ClientArena, Depot, GlobalPool, Mfs, MfsCache,
    Mvff, Mvt, Owned, PoolAllocator, PoolBox, PoolRc, Reservation, Returns, Scope, Snc, Tlsf, Tripper,
    UnitOf,
};
use tripoint_ap::internal::Owner;
use tripoint_core::internal::{DescriptorMemory, Once, TractTable};

/// Says whether `T` is `Send` and `Sync`: an inherent constant takes precedence
/// over that of a trait, if its bounds hold.
struct Is<T: ?Sized>(PhantomData<T>);

trait Otherwise {
    const SEND: bool = false;
    const SYNC: bool = false;
}

impl<T: ?Sized> Otherwise for Is<T> {}

impl<T: ?Sized + Send> Is<T> {
    const SEND: bool = true;
}

impl<T: ?Sized + Sync> Is<T> {
    const SYNC: bool = true;
}

/// States whether types are `Send`, and whether they are `Sync`. A wrong statement does not
/// compile.
macro_rules! state {
    ($send:literal, $sync:literal: $($type:ty),+ $(,)?) => {
        $(const { assert!(Is::<$type>::SEND == $send && Is::<$type>::SYNC == $sync, stringify!($type)) };)+
    };
}

macro_rules! both { ($($type:ty),+ $(,)?) => { state!(true, true: $($type),+); }; }
macro_rules! send_only { ($($type:ty),+ $(,)?) => { state!(true, false: $($type),+); }; }
macro_rules! sync_only { ($($type:ty),+ $(,)?) => { state!(false, true: $($type),+); }; }
macro_rules! neither { ($($type:ty),+ $(,)?) => { state!(false, false: $($type),+); }; }

// One type of each kind, for which the answer is known.
type Both = u64;
type SendOnly = Cell<u64>;
type SyncOnly = MutexGuard<'static, u64>;
type Neither = Rc<u64>;

type Arena = ClientArena<'static>;
type Pool = Mvff<Arena>;
type UnitPool = Mfs<Arena, UnitOf<u64>>;
type OwnedPool = Tlsf<Arena, Owned>;
type OwnedUnits = Mfs<Arena, UnitOf<u64>, Owned>;

/// A control with state of this kind.
#[derive(Debug)]
struct Holding<T>(PhantomData<T>);

impl<T: core::fmt::Debug> Control for Holding<T> {}

#[test]
fn the_statements_tell_one_kind_from_another() {
    both!(Both);
    send_only!(SendOnly);
    sync_only!(SyncOnly);
    neither!(Neither);
}

#[test]
fn arenas_and_pools() {
    // Arenas and pools are shared by all threads, and may be dropped by any.
    both!(Arena, ArenaVm, PoolHeader<Arena>, TractTable, Counter);
    both!(Pool, UnitPool, Mvt<Arena>, Snc<Arena>, Tlsf<Arena>, Null<Arena>, DebugPool<Pool>);
    both!(Mvff<ArenaVm>);
    // An address range through which nothing is read.
    both!(Block);
    // What a pool hands to a buffer, within one call.
    neither!(Fill);
    // Used only with its arena's lock held.
    send_only!(DescriptorMemory);
}

#[test]
fn packets() {
    // What a device is told; its memory is reached only through packets.
    both!(PacketPool<Arena, 2048>, PacketRegion<2048>);
    // A packet owns its bytes, as a box does.
    both!(PacketBox<'static, 2048>, PacketBurst<'static, 2048>, PacketRing<'static, 2048>);
    both!(PacketChain<'static, 2048, 6>);
    // A cache belongs to one thread at a time, and is changed only through an exclusive reference.
    both!(PacketCache<'static, 2048>);
}

#[test]
fn locks() {
    // Locks admit one thread at a time to what they hold.
    both!(Lock<Both>, Lock<SendOnly>);
    neither!(Lock<SyncOnly>, Lock<Neither>);
    // A value that is set once may be set by one thread and dropped by another.
    both!(Once<Both>);
    send_only!(Once<SendOnly>);
    neither!(Once<SyncOnly>, Once<Neither>);
}

#[test]
fn boxes() {
    // Boxes own their object, as `Box` does, whatever the pool.
    both!(PoolBox<'static, Both, Pool>, PoolBox<'static, [Both], Pool>, FrameBox<'static, Both>);
    send_only!(PoolBox<'static, SendOnly, Pool>, FrameBox<'static, SendOnly>);
    sync_only!(PoolBox<'static, SyncOnly, Pool>, FrameBox<'static, SyncOnly>);
    neither!(PoolBox<'static, Neither, Pool>, FrameBox<'static, Neither>);
    // References are counted without atomics.
    neither!(PoolRc<'static, Both, Pool>);
    // It is returned to a cache, which belongs to one thread.
    neither!(
        PoolBox<'static, Both, Cache<'static, Pool>>,
        PoolBox<'static, Both, MfsCache<'static, Arena, UnitOf<u64>>>
    );
}

#[test]
fn allocation_points() {
    // An allocation point belongs to one thread at a time; through a shared
    // reference it can only be observed. Its control is sent with it.
    both!(AllocationPoint<'static, Pool>, AllocationPoint<'static, Pool, Holding<Both>>);
    both!(AllocationPoint<'static, Pool, Holding<SendOnly>>);
    sync_only!(
        AllocationPoint<'static, Pool, Holding<SyncOnly>>,
        AllocationPoint<'static, Pool, Holding<Neither>>
    );
    // The buffer is what other threads see of it, and may trip.
    both!(Buffer, PoolBuffer<BasicBuffer>, Owner<'static>, Tripper<'static>);
    // Only the thread that reserved memory writes to it.
    neither!(Reservation<'static, 'static, Pool>, Batch<'static, 'static, Both, Pool>);
    // What the owner passes to its pool stays in the thread of that call.
    neither!(OwnBuffer<'static, Pool, BasicBuffer>);
    // A scope is an allocation point, borrowed; a frame is a place in one.
    both!(Frame, StackBuffer, Scope<'static, 'static, 'static, Snc<Arena>>);
    sync_only!(Scope<'static, 'static, 'static, Snc<Arena>, Holding<Neither>>);
}

/// (design/core.md `.lock.kind`)
#[test]
fn pools_of_one_thread() {
    // Such a pool may move to another thread while nothing borrows it.
    send_only!(OwnedPool, Mvff<Arena, Owned>, OwnedUnits, Mvt<Arena, Owned>, Snc<Arena, Owned>);
    send_only!(DebugPool<OwnedPool>, OwnedLock<Both>, OwnedLock<SendOnly>);
    neither!(OwnedLock<SyncOnly>, OwnedLock<Neither>);
    // What borrows it calls it, and so stays in its thread.
    neither!(&'static OwnedPool, &'static OwnedUnits);
    neither!(AllocationPoint<'static, OwnedPool>, Scope<'static, 'static, 'static, Snc<Arena, Owned>>);
    neither!(PoolBox<'static, Both, OwnedPool>, PoolBox<'static, [Both], OwnedPool>);
    neither!(Cache<'static, OwnedPool>, Depot<'static, OwnedPool>, PoolAllocator<'static, OwnedPool>);
    neither!(MfsCache<'static, Arena, UnitOf<u64>, Owned>, Returns<'static, Arena, UnitOf<u64>, Owned>);
    // No static holds it.
    send_only!(GlobalPool<OwnedPool>);
}

#[test]
fn caches_and_free_memory() {
    // A cache belongs to one thread at a time, and takes no locks.
    send_only!(
        Cache<'static, Pool>,
        MfsCache<'static, Arena, UnitOf<u64>>,
        Returns<'static, Arena, UnitOf<u64>>
    );
    // Free memory, reached only with the pool's lock held.
    send_only!(Land);
    // What other threads may trip.
    both!(CacheDescriptor);
    // Sizes and alignments: no object of the type itself.
    both!(UnitOf<Neither>);
}

#[test]
fn adaptors() {
    // A handle on a pool may be shared if the pool may; a global pool is behind a
    // lock of its own.
    both!(PoolAllocator<'static, Pool>, GlobalPool<Pool>);
}

#[test]
fn the_contract() {
    // The contract is a static that all threads use.
    both!(Contract, Slot, Ledger, Route, ContractAllocator<std::alloc::System>);
    // Registrations, and what depends on them, belong to the thread that
    // registered.
    neither!(Guard, Amnesty<'static, NoReason, tripoint::contract::NoDetectors>, ColdRegistration);
    // They borrow the sources of their memory and their symbols.
    neither!(Warmup<'static, NoReason, 8>, Report<'static, NoReason, 8>);
}
