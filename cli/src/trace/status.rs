//! Fields of the files in which the system says what a process has, such as `/proc/self/status`.

use std::fs;

/// The number in a field of a file; none if the system has no such file or field.
pub(super) fn number(file: &str, field: &str) -> Option<u64> {
    let text = fs::read_to_string(file).ok()?;
    let rest = text.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'))?;
    rest.split_whitespace().next()?.parse().ok()
}

/// The bytes of a field that is in kB, of 1024 bytes.
pub(super) fn bytes(file: &str, field: &str) -> Option<u64> {
    number(file, field).map(|kilobytes| kilobytes << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_is_found_by_its_whole_name() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("status");
        fs::write(&file, "Name:\ta\nVmHWM:\t    12 kB\nVmRSS:\t    11 kB\nswitches:\t7\n").unwrap();
        let file = file.to_str().unwrap();
        assert_eq!((bytes(file, "VmHWM"), number(file, "switches")), (Some(12 << 10), Some(7)));
        assert_eq!((number(file, "Vm"), number(file, "Name"), number("/none", "Vm")), (None, None, None));
    }
}
