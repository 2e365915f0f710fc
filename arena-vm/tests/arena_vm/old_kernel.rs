//! Linux as it was, or as a sandbox has it: system calls refused by a filter.

use std::thread;

use tripoint_arena_vm::{ArenaVm, Membarrier, Prefault};
use tripoint_core::{Arena, BarrierPair, Error};

use crate::child::in_child;
use crate::common::{GRAIN, small};
use crate::linux::{faults_of_touching, tracts_of};

/// The commands of `membarrier(2)`.
const GLOBAL: u32 = 1 << 0;
const PRIVATE_EXPEDITED: u32 = 1 << 3;
const REGISTER_PRIVATE_EXPEDITED: u32 = 1 << 4;

/// Makes the kernel refuse a system call to this thread from here on, where the
/// low half of the argument has this value.
fn refuse(call: libc::c_long, argument: u32, value: u32) {
    let statement = |code: u32, k: u32| libc::sock_filter { code: code as u16, jt: 0, jf: 0, k };
    let load = |offset| statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, offset);
    let unless_equal_skip = |k, jf| {
        let code = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
        libc::sock_filter { code, jt: 0, jf, k }
    };
    let answer = |k| statement(libc::BPF_RET | libc::BPF_K, k);
    // `struct seccomp_data`: number, architecture, instruction, six arguments.
    let mut filter = [
        load(0),
        unless_equal_skip(u32::try_from(call).unwrap(), 3),
        load(16 + 8 * argument + if cfg!(target_endian = "big") { 4 } else { 0 }),
        unless_equal_skip(value, 1),
        answer(libc::SECCOMP_RET_ERRNO | libc::EINVAL as u32),
        answer(libc::SECCOMP_RET_ALLOW),
    ];
    let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
    // SAFETY: takes numbers only; it binds this thread, which asks for it.
    assert_eq!(unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) }, 0);
    // SAFETY: the program and its filter live through the call, which copies them.
    let set = unsafe { libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program) };
    assert_eq!(set, 0);
}

/// Runs a test in a thread of its own, to which the kernel refuses a call.
pub(crate) fn without(call: libc::c_long, argument: u32, value: u32, test: impl FnOnce() + Send + 'static) {
    let run = move || {
        refuse(call, argument, value);
        test();
    };
    thread::spawn(run).join().unwrap();
}

#[test]
fn without_populate_write_fills_are_touched() {
    without(libc::SYS_madvise, 2, libc::MADV_POPULATE_WRITE as u32, || {
        let (arena, block) =
            tracts_of(tripoint_arena_vm::ArenaVmOptions { prefault: Prefault::AtFill, ..small() });
        assert_eq!(faults_of_touching(block), 0);
        assert_eq!(arena.prefault(), Err(Error::Memory));
        assert_eq!(arena.last_refusal().unwrap().code, libc::EINVAL);
    });
}

#[test]
fn without_decommit_memory_stays_spare() {
    let in_place = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_FIXED;
    // 32-bit systems map by a call of their own.
    #[cfg(target_pointer_width = "64")]
    let map = libc::SYS_mmap;
    #[cfg(target_pointer_width = "32")]
    let map = libc::SYS_mmap2;
    without(map, 3, in_place as u32, || {
        let arena = ArenaVm::create(small()).unwrap();
        let pool = arena.register().unwrap();
        let block = arena.alloc_tracts(GRAIN, pool).unwrap();
        // SAFETY: allocated above, freed once, unused.
        unsafe { arena.free_tracts(block, pool) };
        assert_eq!((arena.trim(), arena.sizes().spare), (0, GRAIN));
    });
}

#[test]
fn without_membarrier_registration_is_refused() {
    // The first call of a registration, and the second.
    for command in [REGISTER_PRIVATE_EXPEDITED, PRIVATE_EXPEDITED] {
        without(libc::SYS_membarrier, 0, command, || {
            assert_eq!(Membarrier::register().unwrap_err(), Error::Resource);
        });
        Membarrier::register().unwrap().heavy();
    }
}

#[test]
fn a_barrier_refused_later_is_replaced_and_never_left_out() {
    let pair = Membarrier::register().unwrap();
    let heavy_without = |commands: &'static [u32]| {
        in_child(|| {
            for &command in commands {
                refuse(libc::SYS_membarrier, 0, command);
            }
            pair.heavy();
        })
    };
    assert_eq!(heavy_without(&[GLOBAL]), Ok(0));
    assert_eq!(heavy_without(&[PRIVATE_EXPEDITED]), Ok(0));
    assert_eq!(heavy_without(&[PRIVATE_EXPEDITED, GLOBAL]), Err(libc::SIGABRT));
}
