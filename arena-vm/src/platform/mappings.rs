//! How many mappings Linux allows a process, and how reservations share them
//! (design/arena-vm.md `.mappings`).

use tripoint_core::primitive::{AtomicUsize, Ordering};

/// The kernel's own default of `vm.max_map_count`, used if the setting cannot be read.
const DEFAULT: usize = 65_530;

/// All reservations of a process together may take one part in four of its mappings.
const SHARE: usize = 4;

/// The number of reservations of this process that are not released.
static RESERVATIONS: AtomicUsize = AtomicUsize::new(0);

/// Counts a reservation.
pub(super) fn enter() {
    RESERVATIONS.fetch_add(1, Ordering::Relaxed);
}

/// Counts a reservation that was released.
pub(super) fn leave() {
    RESERVATIONS.fetch_sub(1, Ordering::Relaxed);
}

/// How many of the process's `all` mappings each reservation may take at this moment.
pub(super) fn share(all: usize) -> usize {
    all / SHARE / RESERVATIONS.load(Ordering::Relaxed).max(1)
}

/// The most mappings that a process may have.
pub(super) fn most() -> usize {
    let mut text = [0; 24];
    parse(read(&mut text)).unwrap_or(DEFAULT)
}

/// The number that a file of the kernel contains.
fn parse(text: &[u8]) -> Option<usize> {
    core::str::from_utf8(text).ok()?.trim().parse().ok()
}

/// The contents of the setting's file; empty if it cannot be read.
fn read(text: &mut [u8]) -> &[u8] {
    // SAFETY: the path ends with a zero byte; no mode is needed to read.
    let file =
        unsafe { libc::open(c"/proc/sys/vm/max_map_count".as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC) };
    if file < 0 {
        return &[];
    }
    // SAFETY: an open file, and a buffer of this length.
    let length = unsafe { libc::read(file, text.as_mut_ptr().cast(), text.len()) };
    // SAFETY: opened above, closed once.
    let _ = unsafe { libc::close(file) };
    usize::try_from(length).ok().and_then(|length| text.get(..length)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_setting_is_read_as_a_number_or_not_at_all() {
        assert_eq!(parse(b"65530\n"), Some(65_530));
        assert_eq!(parse(b"many\n"), None);
        assert_eq!(parse(b""), None);
        assert_eq!(parse(b"\xff"), None);
    }

    #[test]
    fn reservations_share_a_quarter() {
        assert!(share(1 << 20) <= (1 << 20) / SHARE);
        enter();
        assert!(share(1 << 20) <= (1 << 20) / SHARE);
        leave();
        assert!(most() > 1000, "no system allows so little");
    }
}
