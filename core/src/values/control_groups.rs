//! The control groups that limit the memory of a process, by the texts in which Linux names them. Reads no file
//! ([design/core.md `.groups`](crate::design::overview)).
//!
//! ```text
//! /proc/self/cgroup      4:memory:/pods/own                             the group of this process
//! /proc/self/mountinfo   35 31 0:32 /pods /mnt rw - cgroup cgroup rw,memory    /mnt shows what is below /pods
//! the directories        /mnt/own, /mnt                                 with the limits of the group and of those above
//! ```

/// The two versions of control groups, which have files of different names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupVersion {
    /// A tree for each kind of limit.
    V1,
    /// One tree for all.
    V2,
}

impl GroupVersion {
    /// The name of the file with the most bytes of memory that a group may use.
    #[must_use]
    pub const fn limit_file(self) -> &'static str {
        match self {
            Self::V1 => "memory.limit_in_bytes",
            Self::V2 => "memory.max",
        }
    }

    /// The path of the process's group, if `line` of `/proc/self/cgroup` is about this tree: `number:kinds:path`.
    fn group_in(self, line: &[u8]) -> Option<&[u8]> {
        let mut parts = line.splitn(3, |&byte| byte == b':').skip(1);
        let (mut kinds, path) = (parts.next()?.split(|&byte| byte == b','), parts.next()?);
        let is_this = match self {
            Self::V1 => kinds.any(|kind| kind == b"memory"),
            Self::V2 => kinds.all(<[u8]>::is_empty),
        };
        is_this.then_some(path)
    }
}

/// The groups of this process: the text of `/proc/self/cgroup`.
#[derive(Clone, Copy, Debug)]
pub struct MemoryGroups<'t>(&'t [u8]);

impl<'t> MemoryGroups<'t> {
    /// The groups that the text names.
    #[must_use]
    pub const fn new(text: &'t [u8]) -> Self {
        Self(text)
    }

    /// Whether a line of that text is about memory; the others need not be passed.
    #[must_use]
    pub fn names_one(line: &[u8]) -> bool {
        [GroupVersion::V1, GroupVersion::V2].iter().any(|version| version.group_in(line).is_some())
    }

    /// The directories in which a mount shows the group of the process and those above it, the lowest first; none if
    /// `line` of `/proc/self/mountinfo` is about anything else.
    pub fn directories<'l>(self, line: &'l [u8]) -> impl Iterator<Item = GroupDirectory<'l>>
    where
        't: 'l,
    {
        Mount::parse(line).into_iter().flat_map(move |mount| {
            let groups = self.0.split(|&byte| byte == b'\n');
            groups.filter_map(move |line| mount.version.group_in(line)).flat_map(move |group| {
                let lowest = below(group, mount.root).unwrap_or_default();
                let above = |group: &&'l [u8]| {
                    let end = group.iter().rposition(|&byte| byte == b'/').unwrap_or(0);
                    (!group.is_empty()).then(|| &group[..end])
                };
                core::iter::successors(Some(lowest), above).map(move |group| GroupDirectory {
                    version: mount.version,
                    mount: mount.point,
                    group,
                })
            })
        })
    }
}

/// The directory of a control group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupDirectory<'t> {
    /// What its files are called.
    pub version: GroupVersion,
    mount: &'t [u8],
    group: &'t [u8],
}

impl GroupDirectory<'_> {
    /// The path, byte by byte: a name may have any bytes.
    pub fn path(&self) -> impl Iterator<Item = u8> {
        unescaped(self.mount).chain([b'/']).chain(self.group.iter().copied())
    }
}

/// A mount of control groups for memory.
#[derive(Clone, Copy)]
struct Mount<'l> {
    version: GroupVersion,
    /// The group that the mount shows at its top.
    root: &'l [u8],
    point: &'l [u8],
}

impl<'l> Mount<'l> {
    /// `number parent device root point options [more] - kind source options`
    fn parse(line: &'l [u8]) -> Option<Self> {
        let mut words = line.split(|&byte| byte == b' ');
        let (root, point) = (words.nth(3)?, words.next()?);
        let mut words = words.skip_while(|word| *word != b"-").skip(1);
        let (kind, options) = (words.next()?, words.nth(1)?);
        let version = match kind {
            b"cgroup" if options.split(|&byte| byte == b',').any(|option| option == b"memory") => {
                GroupVersion::V1
            }
            b"cgroup2" => GroupVersion::V2,
            _ => return None,
        };
        Some(Self { version, root, point })
    }
}

/// The path of a group below another, without a slash at the beginning; `None` if it is not below.
fn below<'t>(group: &'t [u8], root: &[u8]) -> Option<&'t [u8]> {
    let root = root.strip_suffix(b"/").unwrap_or(root);
    let rest = match group.strip_prefix(root)? {
        [] => &[],
        [b'/', rest @ ..] => rest,
        _ => return None,
    };
    // A group outside of what the process may see is named by the way there.
    (rest != b".." && !rest.starts_with(b"../")).then_some(rest)
}

/// A path of `mountinfo`, in which some bytes are written as three octal digits: `\040`.
fn unescaped(path: &[u8]) -> impl Iterator<Item = u8> {
    let mut rest = path;
    core::iter::from_fn(move || {
        let (byte, length) = match *rest {
            [b'\\', a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', ..] => {
                ((a - b'0') << 6 | (b - b'0') << 3 | (c - b'0'), 4)
            }
            [byte, ..] => (byte, 1),
            [] => return None,
        };
        rest = &rest[length..];
        Some(byte)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::String;
    use std::vec::Vec;

    const FIRST: &str = "35 31 0:32 / /sys/fs/cgroup/memory rw,relatime shared:9 - cgroup cgroup rw,memory";
    const SECOND: &str = "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw,nsdelegate";

    /// The directories, each behind the first word of its version.
    fn found(groups: &str, mount: &str) -> Vec<String> {
        let directories = MemoryGroups::new(groups.as_bytes()).directories(mount.as_bytes());
        let shown = directories.map(|directory| {
            let path = String::from_utf8(directory.path().collect()).unwrap();
            std::format!("{:?} {path}", directory.version)
        });
        shown.collect()
    }

    #[test]
    fn each_version_has_its_tree_and_its_groups_from_below() {
        let groups = "5:cpu,memory_of_others:/x\n4:hugetlb,memory:/a/own:1\n1:name=systemd:/s\n0::/b\n";
        let first =
            ["V1 /sys/fs/cgroup/memory/a/own:1", "V1 /sys/fs/cgroup/memory/a", "V1 /sys/fs/cgroup/memory/"];
        assert_eq!(found(groups, FIRST), first);
        assert_eq!(found(groups, SECOND), ["V2 /sys/fs/cgroup/b", "V2 /sys/fs/cgroup/"]);
        assert_eq!(found("4:memory:/a", SECOND), Vec::<String>::new());
        assert_eq!(found("0::/a", FIRST), Vec::<String>::new());
        let named: Vec<_> = groups.lines().map(|line| MemoryGroups::names_one(line.as_bytes())).collect();
        assert_eq!(named, [false, true, false, true]);
    }

    /// A container sees the mount from its own group on, with or without a name space for groups.
    #[test]
    fn a_nested_mount_begins_at_its_root() {
        let nested = SECOND.replace(" / /sys", " /pods/one /sys");
        let own = "V2 /sys/fs/cgroup/";
        assert_eq!(found("0::/pods/one", &nested), [own]);
        assert_eq!(found("0::/pods/one/two", &nested), ["V2 /sys/fs/cgroup/two", own]);
        assert_eq!(found("0::/", SECOND), [own]);
        // Not below the root: the mount is all that can be seen.
        for elsewhere in ["0::/pods/one-more", "0::/", "0::/../other", "0::/pods/one/.."] {
            assert_eq!(found(elsewhere, &nested), [own], "{elsewhere}");
        }
        assert_eq!(found("0::/../other", SECOND), [own]);
    }

    #[test]
    fn what_is_no_such_mount_is_passed_over() {
        for line in [
            "",
            "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw,memory",
            "32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu",
            "35 31 0:32 / /sys/fs/cgroup/memory rw cgroup cgroup rw,memory",
            "30 23 0:26 / /sys/fs/cgroup rw - cgroup2",
        ] {
            assert_eq!(found("4:memory:/a\n0::/a\nno group\n", line), Vec::<String>::new(), "{line}");
        }
    }

    #[test]
    fn names_may_have_any_bytes() {
        let mount = "30 23 0:26 / /with\\040space\\134\\7 rw - cgroup2 cgroup2 rw";
        assert_eq!(found("0::/", mount), ["V2 /with space\\\\7/"]);
        let directories: Vec<_> = MemoryGroups::new(b"0::/\xff").directories(SECOND.as_bytes()).collect();
        assert!(directories[0].path().eq(*b"/sys/fs/cgroup/\xff"));
    }
}
