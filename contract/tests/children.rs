//! What a hot thread leaves to processes that come from it: forked, spawned, and the program
//! that it becomes (design/contract.md `.call.child`). Each test runs in a process of its
//! own.
#![cfg(tripoint_kernel)]

mod common;

use core::ffi::{CStr, c_int};
use core::ptr;
use core::sync::atomic::{AtomicI32, Ordering};
use std::process::{Command, Output};
use std::sync::{LazyLock, mpsc};
use std::thread;

use common::{Reason, armed, contract, has_skipped, in_child};
use tripoint_contract::internal::{LinuxKernel, ThreadDetectors};
use tripoint_contract::mock::{Calls, Failing, Refusal};
use tripoint_contract::{
    Contract, DetectorSet, Guard, HotThread, Policies, Policy, Report, ViolationClass, ViolationSet,
};
use tripoint_oracle::forever;

/// A hot thread under the filter, armed. `None` if the kernel refuses the filter.
fn filtered(contract: &'static Contract<Reason, 4>) -> Option<Guard<Reason>> {
    let (classes, policies) = (ViolationSet::MEMORY_CALL, Policies::all(Policy::Quarantine));
    let detectors = DetectorSet::MEMORY_CALLS;
    let guard = armed(contract, HotThread { classes, detectors, policies, ..HotThread::new("hot") });
    let live = guard.slot().live().contains(detectors);
    if !live {
        tripoint_oracle::skipped!("filters are refused here");
    }
    live.then_some(guard)
}

/// Writes to the standard output, as a forked child may.
fn say(text: &CStr) {
    // SAFETY: as many bytes as the text has.
    unsafe { libc::write(1, text.as_ptr().cast(), text.count_bytes()) };
}

/// Ends the process with a signal if it hangs.
fn end_if_it_hangs() {
    // SAFETY: takes a number, of seconds.
    unsafe { libc::alarm(60) };
}

fn on_hot_thread(test: fn()) {
    end_if_it_hangs();
    thread::spawn(test).join().unwrap();
}

/// Runs a test on a thread that is not hot, while another one is armed.
fn beside_a_hot_thread(test: impl FnOnce()) {
    end_if_it_hangs();
    let (hold, held) = std::sync::mpsc::channel::<()>();
    let (armed, is_armed) = std::sync::mpsc::channel();
    thread::spawn(move || {
        let guard = filtered(contract());
        armed.send(()).unwrap();
        let _ = held.recv();
        drop(guard);
    });
    is_armed.recv().unwrap();
    test();
    drop(hold);
}

fn pipe() -> [c_int; 2] {
    let mut ends = [0; 2];
    // SAFETY: two descriptors, valid to write.
    assert_eq!(unsafe { libc::pipe(ends.as_mut_ptr()) }, 0);
    ends
}

/// Writes a byte, for which `wait_for_byte` waits in another process.
fn write_byte(pipe: [c_int; 2]) {
    // SAFETY: a descriptor of this process; a byte, valid to read.
    assert_eq!(unsafe { libc::write(pipe[1], [0_u8].as_ptr().cast(), 1) }, 1);
}

fn wait_for_byte(pipe: [c_int; 2]) {
    let mut byte = [0_u8];
    // SAFETY: a descriptor of this process; a byte, valid to write.
    assert_eq!(unsafe { libc::read(pipe[0], byte.as_mut_ptr().cast(), 1) }, 1);
}

/// Waits until the other end, and every copy of it, is closed.
fn wait_for_end(pipe: [c_int; 2]) {
    let mut byte = [0_u8];
    // SAFETY: descriptors of this process; a byte, valid to write.
    unsafe {
        libc::close(pipe[1]);
        assert_eq!(libc::read(pipe[0], byte.as_mut_ptr().cast(), 1), 0);
    }
}

/// Maps a page: the error, or zero.
fn map() -> c_int {
    let (access, flags) = (libc::PROT_READ, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    // SAFETY: without MAP_FIXED the kernel chooses unused addresses.
    let page = unsafe { libc::mmap(ptr::null_mut(), 4096, access, flags, -1, 0) };
    if page == libc::MAP_FAILED { std::io::Error::last_os_error().raw_os_error().unwrap() } else { 0 }
}

fn said(output: &Output, what: &str) -> bool {
    String::from_utf8_lossy(&output.stdout).contains(what) || has_skipped(output)
}

/// A child without a supervisor gets an error; it does not wait forever.
#[test]
fn a_forked_child_that_outlives_the_process_is_refused() {
    let Some(output) = in_child("a_forked_child_that_outlives_the_process_is_refused") else {
        return on_hot_thread(|| {
            let guard = filtered(contract());
            if guard.is_none() {
                return;
            }
            let (parent, child) = (pipe(), pipe());
            // SAFETY: the child calls what a child of many threads may.
            if unsafe { libc::fork() } == 0 {
                end_if_it_hangs();
                say(if map() == 0 { c"served, " } else { c"refused too early, " });
                write_byte(child);
                wait_for_end(parent);
                say(if map() == libc::ENOSYS { c"then refused\n" } else { c"then served\n" });
                // SAFETY: ends the child, and nothing else.
                unsafe { libc::_exit(0) };
            }
            wait_for_byte(child);
            // With the guard, the thread and all others.
            std::process::exit(0);
        });
    };
    assert!(said(&output, "served, then refused"), "{output:?}");
}

/// From a thread that is not hot, nothing is inherited.
#[test]
fn a_child_of_a_cold_thread_is_free() {
    let Some(output) = in_child("a_child_of_a_cold_thread_is_free") else {
        return beside_a_hot_thread(|| {
            let parent = pipe();
            // SAFETY: the child calls what a child of many threads may.
            if unsafe { libc::fork() } == 0 {
                end_if_it_hangs();
                wait_for_end(parent);
                say(if map() == 0 { c"free\n" } else { c"not free\n" });
                // SAFETY: ends the child, and nothing else.
                unsafe { libc::_exit(0) };
            }
            // With the hot thread, which is still there.
            std::process::exit(0);
        });
    };
    assert!(String::from_utf8_lossy(&output.stdout).lines().any(|line| line.ends_with("free")));
    assert!(!said(&output, "not free"), "{output:?}");
}

/// What a hot thread spawns is served while the process lives.
#[test]
fn a_program_that_a_hot_thread_spawns_runs() {
    let Some(output) = in_child("a_program_that_a_hot_thread_spawns_runs") else {
        return on_hot_thread(|| {
            let guard = filtered(contract());
            assert!(Command::new("/bin/true").status().unwrap().success());
            drop(guard);
        });
    };
    assert!(output.status.success(), "{output:?}");
}

fn become_true() {
    let arguments = [c"true".as_ptr(), ptr::null()];
    // SAFETY: a path, and arguments that end with null.
    unsafe { libc::execv(c"/bin/true".as_ptr(), arguments.as_ptr()) };
}

/// The filter stays, and the program that a hot thread becomes has no supervisor: its first
/// memory call fails. So a hot thread must not exec.
#[test]
fn a_hot_thread_becomes_no_other_program() {
    let Some(output) = in_child("a_hot_thread_becomes_no_other_program") else {
        return on_hot_thread(|| {
            if let Some(guard) = filtered(contract()) {
                become_true();
                drop(guard);
            }
        });
    };
    assert!(!output.status.success() || has_skipped(&output), "{output:?}");
}

/// The control of the above: a cold thread may, whatever hot threads there are.
#[test]
fn a_cold_thread_becomes_another_program() {
    let Some(output) = in_child("a_cold_thread_becomes_another_program") else {
        return beside_a_hot_thread(|| {
            become_true();
            panic!("this program is another now");
        });
    };
    assert!(output.status.success(), "{output:?}");
}

/// A supervisor that the kernel keeps refusing gives up. Memory calls then fail instead of
/// waiting forever, and the report says that they are not seen.
#[test]
fn a_supervisor_that_is_always_refused_gives_up_and_says_so() {
    let Some(output) = in_child("a_supervisor_that_is_always_refused_gives_up_and_says_so") else {
        return on_hot_thread(|| {
            for refused in [Calls::WAIT, Calls::RESUME] {
                thread::spawn(move || {
                    let contract = contract();
                    let wanted = DetectorSet::MEMORY_CALLS;
                    let detectors = ThreadDetectors::new(Failing::new(LinuxKernel, refused), wanted);
                    let thread = HotThread { detectors: wanted, ..HotThread::new("hot") };
                    let guard = contract.register_with(thread, detectors).unwrap();
                    // Memory that the test's own code needs is allocated
                    // before.
                    let said = format!("{refused:?}");
                    guard.arm();
                    let (live, missing) = (guard.slot().live(), Report::new(contract).missing());
                    let error = map();
                    assert!(error == libc::ENOSYS || error == 0, "{said}");
                    assert_eq!((live, missing), (DetectorSet::empty(), wanted), "{said}");
                })
                .join()
                .unwrap();
            }
        });
    };
    assert!(output.status.success(), "{output:?}");
}

/// What the kernel refuses to the supervisor of the next test: nothing yet.
static REFUSED: LazyLock<Refusal> = LazyLock::new(|| Refusal::new(Calls::RESUME, 0));

/// What a memory call failed with when the supervisor had given up.
static FAILED: AtomicI32 = AtomicI32::new(0);

/// Has the supervisor give up between the proof that it sees calls and the note that says so.
fn give_up() {
    REFUSED.refuse_all();
    FAILED.store(map(), Ordering::Relaxed);
}

/// A supervisor that gives up before its thread notes what is live is found out.
#[test]
fn a_supervisor_that_gives_up_while_detectors_start_is_not_live() {
    let Some(output) = in_child("a_supervisor_that_gives_up_while_detectors_start_is_not_live") else {
        return on_hot_thread(|| {
            let contract = contract();
            let wanted = DetectorSet::MEMORY_CALLS | DetectorSet::FAULT_POLL;
            // The poll of faults is the last detector to start.
            let kernel = Failing::new(LinuxKernel, Calls::empty());
            let kernel = kernel.with_refusal(&REFUSED).with_before(Calls::FAULTS, give_up);
            let detectors = ThreadDetectors::new(kernel, wanted);
            let thread = HotThread { detectors: wanted, ..HotThread::new("hot") };
            let guard = contract.register_with(thread, detectors).unwrap();
            guard.arm();
            let (live, missing) = (guard.slot().live(), Report::new(contract).missing());
            match FAILED.load(Ordering::Relaxed) {
                0 => tripoint_oracle::skipped!("filters are refused here"),
                failed => assert_eq!(failed, libc::ENOSYS),
            }
            assert_eq!((live, missing), (DetectorSet::FAULT_POLL, DetectorSet::MEMORY_CALLS));
        });
    };
    assert!(output.status.success(), "{output:?}");
}

/// A thread lives on without its guard, and its supervisor gives up: the next one's is live.
#[test]
fn a_former_threads_supervisor_takes_nothing_from_the_next_thread() {
    let Some(output) = in_child("a_former_threads_supervisor_takes_nothing_from_the_next_thread") else {
        return on_hot_thread(|| {
            let contract: &'static Contract<Reason, 1> = forever(Contract::new());
            contract.begin_init().unwrap();
            let wanted = DetectorSet::MEMORY_CALLS;
            let refusal: &'static Refusal = forever(Refusal::new(Calls::RESUME, 0));
            let (left, has_left) = mpsc::channel();
            let (go, wait) = mpsc::channel::<()>();
            let former = thread::spawn(move || {
                let kernel = Failing::new(LinuxKernel, Calls::empty()).with_refusal(refusal);
                let thread = HotThread { detectors: wanted, ..HotThread::new("former") };
                let guard = contract.register_with(thread, ThreadDetectors::new(kernel, wanted)).unwrap();
                guard.rehearse();
                drop(guard);
                left.send(()).unwrap();
                let _ = wait.recv();
                map()
            });
            has_left.recv().unwrap();
            contract.drain(drop);
            let next = contract.register(HotThread { detectors: wanted, ..HotThread::new("next") }).unwrap();
            next.rehearse();
            let before = next.slot().live();
            refusal.refuse_all();
            drop(go);
            let failed = former.join().unwrap();
            match failed {
                0 => tripoint_oracle::skipped!("filters are refused here"),
                failed => assert_eq!(failed, libc::ENOSYS),
            }
            assert_eq!((before, next.slot().live()), (wanted, wanted));
        });
    };
    assert!(output.status.success(), "{output:?}");
}

/// If children cannot be kept from waiting forever, there is no filter.
#[test]
fn without_a_hand_on_forks_there_is_no_filter() {
    let contract = contract();
    let wanted = DetectorSet::MEMORY_CALLS;
    let detectors = ThreadDetectors::new(Failing::new(LinuxKernel, Calls::PREPARE_CHILDREN), wanted);
    let thread = HotThread { detectors: wanted, ..HotThread::new("hot") };
    let guard = contract.register_with(thread, detectors).unwrap();
    guard.arm();
    assert_eq!(Report::new(contract).missing(), wanted);
    assert_eq!(guard.slot().tally(ViolationClass::MemoryCall).count, 0);
    assert_eq!(map(), 0);
    assert_eq!(guard.slot().tally(ViolationClass::MemoryCall).count, 0);
}
