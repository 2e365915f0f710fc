//! How much memory the system can provide without ending a process for it
//! ([design/telemetry.md `.memory`](crate::design::telemetry)).

#![forbid(unsafe_code)]

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// How one of the two generations of control groups names its files.
#[derive(Clone, Copy)]
struct Groups {
    /// The name of its tree in `/proc/self/cgroup`.
    tree: &'static str,
    /// Where the tree is below `/sys/fs/cgroup`.
    folder: &'static str,
    most: &'static str,
    used: &'static str,
    /// The lines of `memory.stat` that count pages of files, which the system takes back if memory runs short.
    files: [&'static str; 2],
}

const GROUPS: [Groups; 2] = [
    Groups {
        tree: "memory",
        folder: "memory",
        most: "memory.limit_in_bytes",
        used: "memory.usage_in_bytes",
        files: ["total_active_file ", "total_inactive_file "],
    },
    Groups {
        tree: "",
        folder: "",
        most: "memory.max",
        used: "memory.current",
        files: ["active_file ", "inactive_file "],
    },
];

/// The bytes that are available on the machine and in the control groups of the process, by the files below `root`.
/// `None` if the machine does not say. A group that does not say is left out.
pub(super) fn available(root: &Path) -> Option<u64> {
    let machine = read(&root.join("proc/meminfo"))?;
    let machine = field(&machine, "MemAvailable:")?.checked_mul(1024)?;
    // The name of a group may have any bytes.
    let groups = fs::read(root.join("proc/self/cgroup")).unwrap_or_default();
    let rests = groups.split(|byte| *byte == b'\n').filter_map(|line| {
        // A line is number:trees:path.
        let mut parts = line.splitn(3, |byte| *byte == b':').skip(1);
        let (trees, path) = (parts.next()?, Path::new(OsStr::from_bytes(parts.next()?)));
        let is_in = |name: &str| trees.split(|byte| *byte == b',').any(|tree| tree == name.as_bytes());
        let groups = GROUPS.iter().find(|groups| is_in(groups.tree))?;
        let mount = root.join("sys/fs/cgroup").join(groups.folder);
        // What a group may use, the groups that it is in must be able to use as well.
        let ancestors = path.strip_prefix("/").unwrap_or(path).ancestors();
        ancestors.filter_map(|group| rest(&mount.join(group), groups)).min()
    });
    Some(rests.fold(machine, u64::min))
}

/// The bytes that a group may still use; `None` if it has no limit.
fn rest(group: &Path, names: &Groups) -> Option<u64> {
    let number = |name| read(&group.join(name))?.trim().parse::<u64>().ok();
    let (most, used) = (number(names.most)?, number(names.used)?);
    let statistics = read(&group.join("memory.stat")).unwrap_or_default();
    let files = names.files.iter().filter_map(|name| field(&statistics, name)).fold(0, u64::saturating_add);
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

    /// A directory with files, which is removed at the end.
    struct Root(std::path::PathBuf);

    impl Root {
        fn new(name: &str, files: &[(&str, &str)]) -> Self {
            let root = std::env::temp_dir().join(std::format!("tripoint-{name}-{}", std::process::id()));
            for (path, text) in files {
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
            std::println!("not run: this file system has no such names");
            return;
        }
        fs::write(folder.join("memory.max"), "300").unwrap();
        fs::write(folder.join("memory.current"), "0").unwrap();
        fs::write(&groups, b"0::/own/\xff\n").unwrap();
        assert_eq!(available(&root.0), Some(300));
    }

    #[test]
    fn the_first_generation_counts_as_well() {
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
