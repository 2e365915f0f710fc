//! Faults of the detectors themselves are not charged to the thread. This is the
//! only test of its process, because it takes the unwind tables away from all of
//! it (design/contract.md `.fault.own`).
#![cfg(tripoint_kernel)]

mod common;

use core::ffi::c_int;
use core::ops::Range;
use core::ptr;
use std::thread;

use common::{Reason, armed, contract, of_kind, records};
use tripoint_contract::{
    Contract, DetectorSet, Guard, HotThread, Policies, Policy, RecordKind, ViolationClass, ViolationSet,
};

const PAGE: usize = 4096;

/// The part of this program's file that is only read, and never changed once it is
/// loaded: the unwind tables are in it.
fn tables() -> Range<usize> {
    let program = std::env::current_exe().unwrap();
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let first = maps.lines().find(|line| line.ends_with(program.to_str().unwrap())).unwrap();
    let words: Vec<_> = first.split_whitespace().collect();
    assert_eq!((words[1], words[2]), ("r--p", "00000000"), "a part of its own for what is only read");
    let (start, end) = words[0].split_once('-').unwrap();
    let address = |digits| usize::from_str_radix(digits, 16).unwrap();
    address(start)..address(end)
}

/// A thread that, each time it is asked to, takes the tables away, as the system
/// does when memory is short, or brings them back. The next use of what is away
/// faults.
struct Taker {
    tell: [c_int; 2],
    done: [c_int; 2],
}

fn pipe() -> [c_int; 2] {
    let mut ends = [0; 2];
    // SAFETY: two descriptors, valid to write.
    assert_eq!(unsafe { libc::pipe(ends.as_mut_ptr()) }, 0);
    ends
}

impl Taker {
    fn start(tables: Range<usize>) -> Self {
        let taker = Self { tell: pipe(), done: pipe() };
        let (told, done) = (taker.tell[0], taker.done[1]);
        thread::spawn(move || {
            let mut advice = [0_u8];
            // SAFETY: a byte, valid to write; pages of a file that are never written come
            // back as they were; a byte, valid to read.
            unsafe {
                while libc::read(told, advice.as_mut_ptr().cast(), 1) == 1 {
                    let start = ptr::without_provenance_mut(tables.start);
                    assert_eq!(libc::madvise(start, tables.len(), advice[0].into()), 0);
                    libc::write(done, advice.as_ptr().cast(), 1);
                }
            }
        });
        taker
    }

    /// Asks it, and waits. Reads nothing that lies beside the tables.
    #[inline(always)]
    fn tell(&self, advice: u8) {
        let mut byte = advice;
        // SAFETY: a byte, valid to read and to write.
        unsafe {
            libc::write(self.tell[1], (&raw const byte).cast(), 1);
            libc::read(self.done[0], (&raw mut byte).cast(), 1);
        }
    }
}

const AWAY: u8 = libc::MADV_DONTNEED as u8;
const BACK: u8 = libc::MADV_POPULATE_READ as u8;

fn map_page() -> *mut u8 {
    let access = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: without MAP_FIXED the kernel chooses unused addresses.
    let page = unsafe { libc::mmap(ptr::null_mut(), PAGE, access, flags, -1, 0) };
    assert_ne!(page, libc::MAP_FAILED);
    page.cast()
}

/// Checks that, without the tables, `cause` is charged with this many faults and memory
/// calls and with nothing else, while the detectors do fault.
fn costs(
    contract: &'static Contract<Reason, 4>,
    guard: &Guard<Reason>,
    (faults, calls): (usize, usize),
    cause: impl Fn(),
) {
    let (tables, slot) = (tables(), guard.slot());
    let taker = Taker::start(tables.clone());
    let counts = || {
        let count = |class| slot.tally(class).count;
        (count(ViolationClass::MinorFault), count(ViolationClass::MemoryCall), slot.overlapped())
    };
    guard.poll();
    guard.check();
    let _ = records(contract);
    let before = counts();
    // In between nothing else is done: what the test reads may be beside the tables.
    taker.tell(AWAY);
    cause();
    taker.tell(BACK);
    guard.poll();
    guard.check();
    let after = counts();
    assert!(after.2 > before.2, "the control: a walk without its tables faults");
    let charged = (after.0 - before.0, after.1 - before.1);
    let records = records(contract);
    let seen: Vec<_> = records
        .iter()
        .map(|record| {
            let place = record.address.wrapping_sub(tables.start);
            format!(
                "{:?} {} at tables + {place:#x}, {:x?}",
                record.kind,
                record.class,
                record.site.frames().first()
            )
        })
        .collect();
    assert_eq!(charged, (faults, calls), "{seen:#?}");
    let alarms = of_kind(&records, RecordKind::Alarm);
    let of_faults = alarms.iter().filter(|alarm| alarm.class == ViolationClass::MinorFault);
    assert_eq!(of_faults.count(), faults, "{seen:#?}");
}

#[test]
fn a_walk_that_faults_charges_no_thread() {
    thread::spawn(|| {
        let contract = contract();
        let classes = ViolationSet::MINOR_FAULT | ViolationSet::MEMORY_CALL;
        let detectors = DetectorSet::FAULT_TRAP | DetectorSet::FAULT_POLL | DetectorSet::MEMORY_CALLS;
        let policies = Policies::all(Policy::Quarantine);
        let guard = armed(contract, HotThread { classes, detectors, policies, ..HotThread::new("hot") });
        if guard.slot().live() != detectors {
            tripoint_oracle::skipped!("{:?} is refused here", detectors.difference(guard.slot().live()));
            return;
        }
        let page = map_page();
        costs(contract, &guard, (1, 0), || {
            // SAFETY: the first byte of a page of one's own.
            unsafe { page.write_volatile(1) };
        });
        // The same if the supervisor asks.
        costs(contract, &guard, (0, 1), || {
            map_page();
        });
    })
    .join()
    .unwrap();
}
