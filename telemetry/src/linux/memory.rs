//! How much memory the system can provide without ending a process for it
//! ([design/telemetry.md `.memory`](crate::design::telemetry)).

#![forbid(unsafe_code)]

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::path::Path;

use tripoint_core::internal::{GroupDirectory, GroupVersion, MemoryGroups};

/// The bytes that are available on the machine and in the control groups of the process, by the files below `root`.
/// `None` if the machine does not say. A group that does not say is left out.
pub(super) fn available(root: &Path) -> Option<u64> {
    let machine = read(&root.join("proc/meminfo"))?;
    let machine = field(&machine, "MemAvailable:")?.checked_mul(1024)?;
    // Names of groups and of mounts may have any bytes.
    let bytes = |name| fs::read(root.join(name)).unwrap_or_default();
    let (groups, mounts) = (bytes("proc/self/cgroup"), bytes("proc/self/mountinfo"));
    let directories =
        mounts.split(|byte| *byte == b'\n').flat_map(|mount| MemoryGroups::new(&groups).directories(mount));
    // What a group may use, the groups that it is in must be able to use as well.
    Some(directories.filter_map(|group| rest(root, &group)).fold(machine, u64::min))
}

/// The bytes that a group may still use; `None` if it has no limit.
fn rest(root: &Path, group: &GroupDirectory<'_>) -> Option<u64> {
    // The lines of `memory.stat` count pages of files, which the system takes back if memory runs short.
    let (used, files) = match group.version {
        GroupVersion::V1 => ("memory.usage_in_bytes", ["total_active_file ", "total_inactive_file "]),
        GroupVersion::V2 => ("memory.current", ["active_file ", "inactive_file "]),
    };
    let path = OsString::from_vec(group.path().skip_while(|byte| *byte == b'/').collect());
    let directory = root.join(path);
    let number = |name| read(&directory.join(name))?.trim().parse::<u64>().ok();
    let (most, used) = (number(group.version.limit_file())?, number(used)?);
    let statistics = read(&directory.join("memory.stat")).unwrap_or_default();
    let files = files.iter().filter_map(|name| field(&statistics, name)).fold(0, u64::saturating_add);
    Some(most.saturating_sub(used.saturating_sub(files)))
}

fn read(path: &Path) -> Option<std::string::String> {
    fs::read_to_string(path).ok()
}

/// The number behind a name at the beginning of a line.
fn field(text: &str, name: &str) -> Option<u64> {
    let rest = text.lines().find_map(|line| line.strip_prefix(name))?;
    rest.split_whitespace().next()?.parse().ok()
}

#[cfg(all(test, not(miri)))]
mod tests {
    use super::*;
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    /// A directory with files, which is removed at the end.
    struct Root(std::path::PathBuf);

    impl Root {
        fn new(name: &str, files: &[(&str, &str)]) -> Self {
            let root = std::env::temp_dir().join(std::format!("tripoint-{name}-{}", std::process::id()));
            for (path, text) in [MOUNTS].iter().chain(files) {
                let path = root.join(path);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, text).unwrap();
            }
            Self(root)
        }
    }

    impl Drop for Root {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    const MACHINE: (&str, &str) =
        ("proc/meminfo", "MemTotal:  9000 kB\nMemAvailable:   1000 kB\nBuffers: 1 kB\n");

    const MOUNTS: (&str, &str) = (
        "proc/self/mountinfo",
        "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n\
         35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n\
         30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
    );

    #[test]
    fn without_groups_it_is_what_the_machine_has() {
        assert_eq!(available(&Root::new("machine", &[MACHINE]).0), Some(1_024_000));
        assert_eq!(available(&Root::new("silent", &[("proc/meminfo", "MemFree: 5 kB\n")]).0), None);
        let unlimited = [MACHINE, ("proc/self/cgroup", "0::/a\n"), ("sys/fs/cgroup/a/memory.max", "max\n")];
        assert_eq!(available(&Root::new("unlimited", &unlimited).0), Some(1_024_000));
    }

    #[test]
    fn a_group_and_those_above_it_are_limits() {
        let root = Root::new(
            "second",
            &[
                MACHINE,
                ("proc/self/cgroup", "0::/above/own\n"),
                ("sys/fs/cgroup/above/own/memory.max", "700000\n"),
                ("sys/fs/cgroup/above/own/memory.current", "100000\n"),
                ("sys/fs/cgroup/above/memory.max", "800000\n"),
                ("sys/fs/cgroup/above/memory.current", "700000\n"),
                (
                    "sys/fs/cgroup/above/memory.stat",
                    "anon 1\ninactive_file 30000\nactive_file 4000\nfile 9\n",
                ),
            ],
        );
        assert_eq!(available(&root.0), Some(134_000));
    }

    /// Whichever tree it is in, and the limits of such a group count, too.
    #[test]
    fn groups_may_have_names_of_any_bytes() {
        let files =
            [MACHINE, ("sys/fs/cgroup/own/memory.max", "500\n"), ("sys/fs/cgroup/own/memory.current", "0\n")];
        let root = Root::new("bytes", &files);
        let (groups, odd) = (root.0.join("proc/self/cgroup"), OsStr::from_bytes(b"own/\xff"));
        fs::create_dir_all(groups.parent().unwrap()).unwrap();
        fs::write(&groups, b"7:name=\xfe:/\xff\n0::/own\n").unwrap();
        assert_eq!(available(&root.0), Some(500));
        let folder = root.0.join("sys/fs/cgroup").join(odd);
        if fs::create_dir(&folder).is_err() {
            tripoint_oracle::skipped!("this file system has no such names");
            return;
        }
        fs::write(folder.join("memory.max"), "300").unwrap();
        fs::write(folder.join("memory.current"), "0").unwrap();
        fs::write(&groups, b"0::/own/\xff\n").unwrap();
        assert_eq!(available(&root.0), Some(300));
    }

    /// A container shows its own group at the top of the mount, wherever that is.
    #[test]
    fn a_nested_mount_is_found_where_it_is() {
        let root = Root::new(
            "nested",
            &[
                MACHINE,
                ("proc/self/cgroup", "0::/pods/one/own\n"),
                ("proc/self/mountinfo", "30 23 0:26 /pods/one /groups rw - cgroup2 cgroup2 rw\n"),
                ("groups/own/memory.max", "900\n"),
                ("groups/own/memory.current", "0\n"),
                ("groups/memory.max", "800\n"),
                ("groups/memory.current", "100\n"),
            ],
        );
        assert_eq!(available(&root.0), Some(700));
    }

    #[test]
    fn the_first_version_counts_as_well() {
        let root = Root::new(
            "first",
            &[
                MACHINE,
                ("proc/self/cgroup", "5:cpu,cpuacct:/x\n4:hugetlb,memory:/own:1\n0::/\n"),
                ("sys/fs/cgroup/memory/own:1/memory.limit_in_bytes", "500\n"),
                ("sys/fs/cgroup/memory/own:1/memory.usage_in_bytes", "600\n"),
                (
                    "sys/fs/cgroup/memory/own:1/memory.stat",
                    "total_active_file 150\ntotal_inactive_file 7\nactive_file 900\n",
                ),
                ("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"),
                ("sys/fs/cgroup/memory/memory.usage_in_bytes", "1000\n"),
            ],
        );
        assert_eq!(available(&root.0), Some(57));
    }
}
