//! The tracepoint of system calls, which the system describes in a file system of its own.

use std::fs;
use std::path::Path;

/// Where it is mounted, on systems of today and of yesterday.
const FOLDERS: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];

/// The tracepoint at the entry of every system call.
const ENTRY: &str = "events/raw_syscalls/sys_enter/id";

/// The number of the tracepoint, or what to do so that this program can read it.
pub(super) fn entry_of_system_calls() -> Result<u64, String> {
    let read = |folder: &str| fs::read_to_string(Path::new(folder).join(ENTRY));
    let number = |text: String| text.trim().parse::<u64>().ok();
    if let Some(found) = FOLDERS.iter().find_map(|folder| number(read(folder).ok()?)) {
        return Ok(found);
    }
    let is_mounted = FOLDERS.iter().any(|folder| Path::new(folder).join("events").exists());
    let is_refused = FOLDERS
        .iter()
        .any(|folder| read(folder).is_err_and(|error| error.kind() == std::io::ErrorKind::PermissionDenied));
    Err(match (is_mounted, is_refused) {
        (_, true) => "only root may read the list of tracepoints; run this as root".to_owned(),
        (true, _) => "this kernel has no tracepoint of system calls (CONFIG_FTRACE_SYSCALLS)".to_owned(),
        _ => {
            format!("the list of tracepoints is not there; as root: mount -t tracefs tracefs {}", FOLDERS[0])
        }
    })
}
