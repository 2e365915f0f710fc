//! Waits in the kernel, which are seen only if that is asked for (design/contract.md `.call.waits`).

use core::ffi::c_int;
use core::hint::black_box;
use core::mem::MaybeUninit;
use core::ptr;
use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::sync::{Barrier, Condvar, Mutex, RwLock, mpsc};
use std::thread;

use crate::common::{Reason, armed, contract, of_kind, records};
use crate::pages::Pages;
use crate::{caught_as, hot, is_live, json, on_hot_thread};
use tripoint_contract::internal::{LinuxKernel, ThreadDetectors};
use tripoint_contract::mock::{Calls, Failing};
use tripoint_contract::{
    DetectorSet, Guard, HotThread, Policies, Policy, RecordKind, Report, ViolationClass, ViolationSet,
};
use tripoint_oracle::{forever, wait_until};

/// As long as a test sleeps.
const SHORT: Duration = Duration::from_millis(1);

fn short() -> libc::timespec {
    libc::timespec { tv_sec: 0, tv_nsec: 1_000_000 }
}

/// Keeps the caller's frame: its last call would be a jump.
fn stay() {
    black_box(0);
}

#[inline(never)]
fn culprit_sleep() {
    thread::sleep(SHORT);
    stay();
}

#[inline(never)]
fn culprit_park() {
    thread::park_timeout(SHORT);
    stay();
}

#[inline(never)]
fn culprit_yield() {
    thread::yield_now();
    stay();
}

#[inline(never)]
fn culprit_condition() {
    let (lock, condition) = (Mutex::new(()), Condvar::new());
    drop(black_box(condition.wait_timeout(lock.lock().unwrap(), SHORT)));
}

#[inline(never)]
fn culprit_nanosleep() {
    // SAFETY: a time to read; what is left is not wanted.
    black_box(unsafe { libc::nanosleep(&raw const *black_box(&short()), ptr::null_mut()) });
}

#[inline(never)]
fn culprit_poll() {
    // SAFETY: no descriptors.
    black_box(unsafe { libc::poll(ptr::null_mut(), 0, 1) });
}

#[inline(never)]
fn culprit_select() {
    let mut time = libc::timeval { tv_sec: 0, tv_usec: 1_000 };
    // SAFETY: no descriptors, and a time to read and write.
    black_box(unsafe { libc::select(0, ptr::null_mut(), ptr::null_mut(), ptr::null_mut(), &raw mut time) });
}

#[inline(never)]
fn culprit_epoll() {
    let mut event = libc::epoll_event { events: 0, u64: 0 };
    // SAFETY: there is no such set, and one event, valid to write.
    black_box(unsafe { libc::epoll_wait(-1, &raw mut event, 1, 1) });
}

#[inline(never)]
fn culprit_child() {
    // SAFETY: there is no such child, and what became of it is not wanted.
    black_box(unsafe { libc::waitpid(c_int::MAX, ptr::null_mut(), 0) });
}

#[inline(never)]
fn culprit_signal() {
    let mut signals = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: the set is emptied before it is read; a time to read; which signal came is not wanted.
    black_box(unsafe {
        libc::sigemptyset(signals.as_mut_ptr());
        libc::sigtimedwait(signals.as_ptr(), ptr::null_mut(), &raw const *black_box(&short()))
    });
}

/// A file that only this process has.
fn file() -> c_int {
    let file = File::open("/dev/null").unwrap();
    forever(file).as_raw_fd()
}

#[inline(never)]
fn culprit_file_lock() {
    // SAFETY: there is no such file.
    black_box(unsafe { libc::flock(-1, libc::LOCK_EX) });
}

#[inline(never)]
fn culprit_record_lock() {
    // SAFETY: zeros are a lock of a whole file, which is plain data.
    let mut lock: libc::flock = unsafe { core::mem::zeroed() };
    // SAFETY: there is no such file, and a lock, valid to read and write.
    black_box(unsafe { libc::fcntl(-1, libc::F_SETLKW, &raw mut lock) });
}

/// Each kind is caught at its line, and that two memory calls were made is not: the other detector was not asked for.
#[test]
fn each_kind_of_wait_is_caught_with_its_site() {
    type Culprit = (&'static str, fn());
    const CULPRITS: [Culprit; 12] = [
        ("culprit_sleep", culprit_sleep),
        ("culprit_park", culprit_park),
        ("culprit_yield", culprit_yield),
        ("culprit_condition", culprit_condition),
        ("culprit_nanosleep", culprit_nanosleep),
        ("culprit_poll", culprit_poll),
        ("culprit_select", culprit_select),
        ("culprit_epoll", culprit_epoll),
        ("culprit_child", culprit_child),
        ("culprit_signal", culprit_signal),
        ("culprit_file_lock", culprit_file_lock),
        ("culprit_record_lock", culprit_record_lock),
    ];
    for (name, cause) in CULPRITS {
        on_hot_thread(move || {
            let innocent = || drop(black_box(Pages::map(3)));
            caught_as(ViolationClass::Wait, DetectorSet::WAITS, innocent, cause, name);
        });
    }
}

/// Counts the waits of the guard's thread.
fn waits<R: tripoint_contract::AmnestyReason, D: tripoint_contract::Detectors>(guard: &Guard<R, D>) -> usize {
    guard.slot().tally(ViolationClass::Wait).count
}

/// Has `acquire` wait for what another thread holds until it is seen waiting, or for `DEADLINE`.
fn contended(guard: &Guard<Reason>, hold: impl FnOnce(&dyn Fn()) + Send + 'static, acquire: impl FnOnce()) {
    // A new turn, which has room for a record: to report the last one may have waited for the tables of symbols.
    guard.check();
    let (slot, before) = (guard.slot(), waits(guard));
    // A channel may yield the processor while it is asked, which is a wait.
    let is_ready: &AtomicBool = forever(AtomicBool::new(false));
    let holder = thread::spawn(move || {
        hold(&|| {
            is_ready.store(true, Ordering::Release);
            wait_until(|| slot.tally(ViolationClass::Wait).count > before);
        });
    });
    while !is_ready.load(Ordering::Acquire) {
        core::hint::spin_loop();
    }
    acquire();
    while !holder.is_finished() {
        core::hint::spin_loop();
    }
    holder.join().unwrap();
}

#[inline(never)]
fn culprit_lock(lock: &Mutex<()>) {
    drop(lock.lock());
    stay();
}

#[inline(never)]
fn culprit_read(lock: &RwLock<()>) {
    drop(lock.read());
    stay();
}

#[inline(never)]
fn culprit_receive(receiver: &mpsc::Receiver<()>) {
    receiver.recv().unwrap();
    stay();
}

#[inline(never)]
fn culprit_barrier(barrier: &Barrier) {
    barrier.wait();
    stay();
}

/// What is held by another thread is waited for in the kernel.
#[test]
fn locks_and_channels_that_are_not_free_are_caught_with_their_sites() {
    on_hot_thread(|| {
        let contract = contract();
        let guard = armed(contract, hot(DetectorSet::WAITS));
        if !is_live(guard.slot(), DetectorSet::WAITS) {
            return;
        }
        let check = |function: &str| {
            guard.check();
            let mut caught = of_kind(&records(contract), RecordKind::Violation);
            caught.retain(|record| record.class == ViolationClass::Wait);
            let report = json(contract, &caught);
            let here = |record: &&serde_json::Value| {
                record["call"] == "futex" && record["site"].as_str().unwrap().contains(function)
            };
            assert!(
                report["violations"].as_array().unwrap().iter().any(|record| here(&record)),
                "{report:#}"
            );
        };

        let lock: &Mutex<()> = forever(Mutex::new(()));
        contended(
            &guard,
            |until_seen| {
                let _held = lock.lock();
                until_seen();
            },
            || culprit_lock(lock),
        );
        check("culprit_lock");

        let lock: &RwLock<()> = forever(RwLock::new(()));
        contended(
            &guard,
            |until_seen| {
                let _held = lock.write();
                until_seen();
            },
            || culprit_read(lock),
        );
        check("culprit_read");

        let (sender, receiver) = mpsc::channel();
        contended(
            &guard,
            move |until_seen| {
                until_seen();
                sender.send(()).unwrap();
            },
            || culprit_receive(&receiver),
        );
        check("culprit_receive");

        let barrier: &Barrier = forever(Barrier::new(2));
        contended(
            &guard,
            |until_seen| {
                until_seen();
                barrier.wait();
            },
            || culprit_barrier(barrier),
        );
        check("culprit_barrier");
    });
}

/// What enters the kernel only to wake others, or by its arguments does not wait, and what does not enter it.
fn do_not_wait(file: c_int) {
    let (lock, condition) = (Mutex::new(0), Condvar::new());
    *lock.lock().unwrap() += 1;
    condition.notify_one();
    thread::current().unpark();
    thread::park();
    let (sender, receiver) = mpsc::sync_channel(1);
    sender.try_send(()).unwrap();
    receiver.recv().unwrap();
    let mut event = libc::epoll_event { events: 0, u64: 0 };
    // SAFETY: zeros are a lock of a whole file, which is plain data.
    let mut record: libc::flock = unsafe { core::mem::zeroed() };
    // SAFETY: no descriptors, no such set and no such child; a descriptor that stays open; an event and a lock, valid to
    // read and write.
    unsafe {
        if cfg!(target_arch = "x86_64") {
            // Elsewhere its time is in memory.
            libc::poll(ptr::null_mut(), 0, 0);
        }
        libc::epoll_wait(-1, &raw mut event, 1, 0);
        libc::waitpid(c_int::MAX, ptr::null_mut(), libc::WNOHANG);
        libc::flock(file, libc::LOCK_SH | libc::LOCK_NB);
        libc::flock(file, libc::LOCK_UN);
        libc::fcntl(file, libc::F_SETLK, &raw mut record);
        libc::getppid();
    }
}

/// Nor does the contract itself wait on a hot thread.
#[test]
fn what_does_not_wait_is_not_called_a_wait() {
    on_hot_thread(|| {
        let (contract, file) = (contract(), file());
        let guard = armed(contract, hot(DetectorSet::WAITS));
        if !is_live(guard.slot(), DetectorSet::WAITS) {
            return;
        }
        let before = waits(&guard);
        for _ in 0..100 {
            do_not_wait(file);
            drop(guard.amnesty(Reason::Disconnect));
            guard.poll();
            guard.check();
        }
        contract.begin_teardown(&()).unwrap();
        guard.check();
        assert_eq!((waits(&guard) - before, guard.slot().alarms()), (0, 0), "{:?}", records(contract));
    });
}

/// Nothing of this is seen by a thread that did not ask for it, though it is held to the class.
#[test]
fn waits_are_not_seen_by_default() {
    on_hot_thread(|| {
        let contract = contract();
        let thread = HotThread { policies: Policies::all(Policy::Quarantine), ..HotThread::new("hot") };
        assert!(
            thread.classes.contains(ViolationSet::WAIT) && !thread.detectors.contains(DetectorSet::WAITS)
        );
        let guard = armed(contract, thread);
        [culprit_sleep, culprit_condition, culprit_poll, culprit_child].iter().for_each(|cause| cause());
        guard.check();
        assert_eq!(waits(&guard), 0);
        assert!(records(contract).iter().all(|record| record.class != ViolationClass::Wait));
        let report = Report::new(contract);
        assert!(report.not_asked_for().contains(DetectorSet::WAITS));
        assert!(!(report.missing() | report.live()).contains(DetectorSet::WAITS));
    });
}

#[test]
fn waits_in_an_amnesty_are_excused() {
    on_hot_thread(|| {
        let contract = contract();
        let guard = armed(contract, hot(DetectorSet::WAITS));
        if !is_live(guard.slot(), DetectorSet::WAITS) {
            return;
        }
        let amnesty = guard.amnesty(Reason::Rollover);
        culprit_sleep();
        drop(amnesty);
        guard.check();
        assert_eq!(guard.slot().alarms(), 0);
        let excused = of_kind(&records(contract), RecordKind::Excused);
        assert_eq!(excused.iter().map(|record| record.class).collect::<Vec<_>>(), [ViolationClass::Wait]);
        assert!(excused[0].reason == 1 && excused[0].site.frames().len() > 1);
    });
}

/// One filter serves both detectors.
#[test]
fn waits_and_memory_calls_are_told_apart() {
    on_hot_thread(|| {
        let contract = contract();
        let both = DetectorSet::WAITS | DetectorSet::MEMORY_CALLS;
        let guard = armed(contract, hot(both));
        if !is_live(guard.slot(), both) {
            return;
        }
        let count = || {
            [ViolationClass::MemoryCall, ViolationClass::Wait].map(|class| guard.slot().tally(class).count)
        };
        let before = count();
        drop(black_box(Pages::map(3)));
        let between = count();
        culprit_nanosleep();
        let after = count();
        assert_eq!([between[0] - before[0], between[1] - before[1]], [2, 0]);
        assert_eq!([after[0] - between[0], after[1] - between[1]], [0, 1]);
    });
}

/// What keeps waits from being seen is said.
#[test]
fn waits_that_cannot_be_seen_are_reported_as_missing() {
    for refused in [Calls::TRY_TO_WAIT, Calls::INSTALL_FILTER, Calls::START_THREAD] {
        on_hot_thread(move || {
            let (contract, wanted) = (contract(), DetectorSet::WAITS);
            let detectors = ThreadDetectors::new(Failing::new(LinuxKernel, refused), wanted);
            let guard = contract.register_with(hot(wanted), detectors).unwrap();
            guard.arm();
            culprit_sleep();
            guard.check();
            assert_eq!(Report::new(contract).missing(), wanted);
            assert!(!guard.slot().live().contains(wanted));
        });
    }
    // A thread has one filter in its life.
    on_hot_thread(|| {
        drop(armed(contract(), hot(DetectorSet::MEMORY_CALLS)));
        let contract = contract();
        let guard = armed(contract, hot(DetectorSet::WAITS));
        culprit_sleep();
        guard.check();
        assert_eq!((Report::new(contract).missing(), waits(&guard)), (DetectorSet::WAITS, 0));
    });
}
