//! The supervisor takes no signals of the program.

use std::sync::mpsc;
use std::thread;

use crate::common::{contract, in_child};
use crate::hot;
use tripoint_contract::DetectorSet;

/// The program's handlers never run on a supervisor: it takes no signals.
#[test]
fn a_supervisor_blocks_every_signal() {
    let Some(child) = in_child("supervisor::a_supervisor_blocks_every_signal") else {
        let (armed, is_armed) = mpsc::channel();
        let (end, ended) = mpsc::channel::<()>();
        let hot_thread = thread::spawn(move || {
            let guard = hot(contract());
            armed.send(guard.slot().live()).unwrap();
            drop(armed);
            let _ = ended.recv();
            // Its own mask is as it was.
            let mine = blocked_by("/proc/thread-self/status");
            assert_eq!(mine & (1 << (libc::SIGTRAP - 1) | 1 << (libc::SIGUSR1 - 1)), 0);
        });
        let live = is_armed.recv().unwrap();
        let masks = supervisors();
        drop(end);
        hot_thread.join().unwrap();
        assert_eq!(masks.len(), usize::from(live.contains(DetectorSet::MEMORY_CALLS)));
        // Two cannot be blocked; the C library keeps two more to itself.
        let open = [libc::SIGKILL, libc::SIGSTOP, 32, 33].map(|signal| 1_u64 << (signal - 1));
        for mask in masks {
            assert_eq!(mask | open.iter().sum::<u64>(), u64::MAX, "{mask:#x}");
        }
        return;
    };
    assert!(child.status.success(), "{child:?}");
}

/// What the supervisors of this process block.
fn supervisors() -> Vec<u64> {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap().map(|task| task.unwrap().path());
    let is_supervisor = |task: &std::path::PathBuf| {
        std::fs::read_to_string(task.join("comm")).is_ok_and(|name| name.trim() == "supervisor")
    };
    tasks.filter(is_supervisor).map(|task| blocked_by(task.join("status").to_str().unwrap())).collect()
}

fn blocked_by(status: &str) -> u64 {
    let status = std::fs::read_to_string(status).unwrap();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigBlk:")).unwrap();
    u64::from_str_radix(mask.trim(), 16).unwrap()
}
