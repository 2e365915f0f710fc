//! How much memory the control groups of the process allow it ([design/arena-vm.md
//! `.groups`](crate::design::arena_vm)).

use tripoint_core::internal::MemoryGroups;

use super::kernel_file::{KernelFile, Path, number};

/// As much of a line of `mountinfo` as is looked at: only file systems in layers have longer ones.
const LINE: usize = 2048;

/// Room for the groups that a process is in, and for the path of a directory.
const ROOM: usize = 4096;

/// Groups of the first version without a limit have a number just below 2^63.
const NO_LIMIT: u64 = 1 << 62;

/// The least limit of the groups that the process is in, in bytes, by the files below `root`; `None` if they have
/// none, or there are no groups.
pub(super) fn memory_limit(root: &str) -> Option<usize> {
    let open =
        |name: &str| KernelFile::open(Path::<ROOM>::of_bytes(root.bytes().chain(name.bytes())).as_c_str());
    let mut text = [0; ROOM];
    let mut rest = &mut text[..];
    // With the first version the process is in a dozen groups, whose names together may be longer than there is room.
    open("/proc/self/cgroup")?.each_line::<ROOM>(&mut |line| {
        if MemoryGroups::names_one(line) {
            keep_line(&mut rest, line);
        }
    });
    let unused = rest.len();
    let groups = MemoryGroups::new(&text[..ROOM - unused]);
    let mut least = None;
    open("/proc/self/mountinfo")?.each_line::<LINE>(&mut |mount| {
        for directory in groups.directories(mount) {
            let name = [b'/'].into_iter().chain(directory.version.limit_file().bytes());
            let path = Path::<ROOM>::of_bytes(root.bytes().chain(directory.path()).chain(name));
            let limit = number(path.as_c_str()).filter(|&limit| (limit as u64) < NO_LIMIT);
            least = least.into_iter().chain(limit).min();
        }
    });
    least
}

/// Copies a line to the beginning of the room, which then is what is left behind it; nothing if it does not fit.
fn keep_line(room: &mut &mut [u8], line: &[u8]) {
    if line.len() >= room.len() {
        return;
    }
    let (kept, rest) = core::mem::take(room).split_at_mut(line.len() + 1);
    kept[..line.len()].copy_from_slice(line);
    kept[line.len()] = b'\n';
    *room = rest;
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::format;
    use alloc::string::String;
    use std::fs;

    /// A directory with files, which is removed at the end.
    struct Root(std::path::PathBuf);

    impl Root {
        fn new(name: &str, files: &[(&str, &str)]) -> Self {
            let root = std::env::temp_dir().join(format!("tripoint-arena-{name}-{}", std::process::id()));
            for (path, text) in files {
                let path = root.join(path);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, text).unwrap();
            }
            Self(root)
        }

        fn limit(&self) -> Option<usize> {
            memory_limit(self.0.to_str().unwrap())
        }
    }

    impl Drop for Root {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    const V1: (&str, &str) =
        ("proc/self/mountinfo", "35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n");
    const V2: (&str, &str) = ("proc/self/mountinfo", "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");

    #[test]
    fn the_least_limit_of_a_group_and_of_those_above_it_counts() {
        let group = ("proc/self/cgroup", "0::/pods/own\n");
        let own = |limit| ("sys/fs/cgroup/pods/own/memory.max", limit);
        let above = |limit| ("sys/fs/cgroup/pods/memory.max", limit);
        let limit = |name, own_limit, above_limit| {
            Root::new(name, &[group, V2, own(own_limit), above(above_limit)]).limit()
        };
        assert_eq!(limit("own", "5000\n", "6000\n"), Some(5000));
        assert_eq!(limit("above", "5000\n", "4000\n"), Some(4000));
        assert_eq!(limit("only-above", "max\n", "4000\n"), Some(4000));
        assert_eq!(limit("none", "max\n", "max\n"), None);
        assert_eq!(Root::new("no-mount", &[group, own("5000\n")]).limit(), None);
        assert_eq!(Root::new("no-group", &[V2, own("5000\n")]).limit(), None);
    }

    #[test]
    fn the_first_version_is_read_and_its_largest_number_is_no_limit() {
        let group = ("proc/self/cgroup", "5:cpu:/x\n4:hugetlb,memory:/own\n0::/\n");
        let own = ("sys/fs/cgroup/memory/own/memory.limit_in_bytes", "7000\n");
        let above = ("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
        assert_eq!(Root::new("first", &[group, V1, own, above]).limit(), Some(7000));
        assert_eq!(Root::new("unlimited", &[group, V1, above]).limit(), None);
    }

    /// As in a container within a container: a group of each kind, all with long names.
    #[test]
    fn the_group_of_memory_is_found_behind_many_others() {
        let path =
            format!("kubepods.slice/{}/docker/{}", "burstable-pod".repeat(18), "0123456789abcdef".repeat(4));
        let others: String = (2..16).rev().map(|number| format!("{number}:kind{number}:/{path}\n")).collect();
        assert!(others.len() > 4096, "{}", others.len());
        let files: [(String, String); 3] = [
            ("proc/self/cgroup".into(), format!("{others}1:memory:/{path}\n0::/{path}\n")),
            (V1.0.into(), V1.1.into()),
            (format!("sys/fs/cgroup/memory/{path}/memory.limit_in_bytes"), "9000\n".into()),
        ];
        let files = files.each_ref().map(|(name, text)| (name.as_str(), text.as_str()));
        assert_eq!(Root::new("behind", &files).limit(), Some(9000));
    }

    /// Deep groups have long names, and mounts of other kinds have longer lines than are read.
    #[test]
    fn long_names_are_read() {
        let path = format!("pods.slice/{}/{}", "burstable-".repeat(20), "0123456789abcdef".repeat(4));
        let layers = format!("9 1 0:9 / /x rw - overlay overlay rw,{}\n{}", "lowerdir=/y:".repeat(500), V2.1);
        let files: [(String, String); 3] = [
            ("proc/self/cgroup".into(), format!("0::/{path}\n")),
            (V2.0.into(), layers),
            (format!("sys/fs/cgroup/{path}/memory.max"), "8000\n".into()),
        ];
        let files = files.each_ref().map(|(name, text)| (name.as_str(), text.as_str()));
        assert_eq!(Root::new("long", &files).limit(), Some(8000));
    }
}
