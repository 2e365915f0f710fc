//! Which crate may depend on which (design/core.md `.req.layers`).
//!
//! Dependencies are those that the manifests declare for the libraries, on any
//! target and with any feature. Dependencies of tests are free.

use std::process::Command;

use cargo_metadata::{DependencyKind, Metadata, MetadataCommand};

use crate::repository;

/// What one member may depend on. A member that is not listed may depend on nothing,
/// so a new member or dependency has to be entered here.
struct Layer {
    package: &'static str,
    /// Packages by name, with `for` and the target if there is one.
    may_use: &'static [&'static str],
}

const LAYERS: &[Layer] = &[
    Layer {
        package: "tripoint-core",
        may_use: &[
            "bitflags",
            "spin for cfg(target_has_atomic = \"ptr\")",
            "loom for cfg(tripoint_loom)",
            "shuttle for cfg(tripoint_shuttle)",
        ],
    },
    Layer { package: "tripoint-stack", may_use: &["libc for cfg(target_os = \"linux\")"] },
    Layer { package: "tripoint-ap", may_use: &["tripoint-core", "bitflags"] },
    Layer { package: "tripoint-pools", may_use: &["tripoint-core"] },
    Layer { package: "tripoint-packets", may_use: &["tripoint-core", "bytes"] },
    Layer {
        package: "tripoint-xdp",
        may_use: &[
            "tripoint-core",
            "tripoint-packets",
            "libc for cfg(target_os = \"linux\")",
            "smoltcp for cfg(target_os = \"linux\")",
        ],
    },
    // With the feature `std` it puts caches in front of a pool, and makes one for the process.
    Layer {
        package: "tripoint-adaptors",
        may_use: &["tripoint-core", "tripoint-pools", "tripoint-arena-vm", "allocator-api2"],
    },
    Layer {
        package: "tripoint-arena-vm",
        may_use: &["tripoint-core", "libc for cfg(target_os = \"linux\")"],
    },
    Layer {
        package: "tripoint-contract",
        may_use: &[
            "tripoint-core",
            "tripoint-stack",
            "bitflags",
            "backtrace",
            "libc for cfg(target_os = \"linux\")",
        ],
    },
    Layer {
        package: "tripoint-telemetry",
        may_use: &[
            "tripoint-core",
            "tripoint-stack",
            "bitflags",
            "libm",
            "object",
            "rand_xoshiro",
            "libc for cfg(target_os = \"linux\")",
            "probe for cfg(target_os = \"linux\")",
        ],
    },
    // Its typed objects are allocated by points of `ap`; all below them knows only `core`.
    Layer { package: "tripoint-gc", may_use: &["tripoint-core", "tripoint-ap"] },
    Layer {
        package: "tripoint",
        may_use: &[
            "tripoint-core",
            "tripoint-ap",
            "tripoint-pools",
            "tripoint-packets",
            "tripoint-adaptors",
            "tripoint-arena-vm",
            "tripoint-stack",
            "tripoint-contract",
            "tripoint-telemetry",
            "tripoint-gc",
            "tripoint-xdp for cfg(target_os = \"linux\")",
        ],
    },
];

/// Members that may depend on any crate, and that no library depends on.
const LEAVES: &[&str] = &[
    "tests-loom",
    "benches",
    "tripoint-oracle",
    "tripoint-probe",
    "tripoint-cli",
    "decompress",
    "stop",
    "wire",
    "point-log",
    "order-book",
    "exchange",
    "packet-path",
    "lisp",
    "trees",
    "frozen-instruments",
    "tasks",
];

/// The highest floor of the figure: folders of programs that use the facade.
const TOP: &[&str] = &["cli", "apps", "examples", "tests", "tests-loom", "fuzz", "benches", "verify"];

/// The caption of each floor, the lowest first.
const FLOORS: [(&str, &str); 5] = [
    ("ground", "use no other crate of ours"),
    ("parts", "use only the ground"),
    ("joined", "use parts too"),
    ("facade", "re-exports, no logic"),
    ("leaves", "no crate depends on them"),
];

/// The floor of a library: one above the highest that it uses. The facade is above all libraries, also above one that
/// it does not have yet.
fn floor(package: &str) -> usize {
    if package == "tripoint" {
        return FLOORS.len() - 2;
    }
    let layer = LAYERS.iter().find(|layer| layer.package == package);
    let used = layer.into_iter().flat_map(|layer| layer.may_use).filter(|used| used.starts_with("tripoint"));
    used.map(|used| floor(used) + 1).max().unwrap_or(0)
}

/// The figure of the layers, as design/core.md has it.
fn figure() -> String {
    let mut names: Vec<Vec<&str>> = vec![Vec::new(); FLOORS.len() - 1];
    for layer in LAYERS {
        names[floor(layer.package)].push(layer.package.trim_start_matches("tripoint-"));
    }
    names.push(TOP.to_vec());
    let row = |((floor, remark), names): (&(&str, &str), &Vec<&str>)| {
        format!("{floor:<10}{:<63}{remark}\n", names.join("  "))
    };
    let rows: Vec<_> = FLOORS.iter().zip(&names).rev().map(row).collect();
    rows.join(&format!("{:13}|\n", ""))
}

/// A member and the dependencies of its library.
struct Member {
    package: String,
    uses: Vec<String>,
}

fn members(metadata: &Metadata) -> Vec<Member> {
    let member = |package: &cargo_metadata::Package| Member {
        package: package.name.to_string(),
        uses: package
            .dependencies
            .iter()
            .filter(|dependency| dependency.kind != DependencyKind::Development)
            .map(|dependency| match &dependency.target {
                Some(target) => format!("{} for {target}", dependency.name),
                None => dependency.name.clone(),
            })
            .collect(),
    };
    metadata.workspace_packages().into_iter().map(member).collect()
}

fn wrong_dependencies(members: &[Member]) -> Vec<String> {
    let mut wrong = Vec::new();
    for member in members.iter().filter(|member| !LEAVES.contains(&member.package.as_str())) {
        let layer = LAYERS.iter().find(|layer| layer.package == member.package);
        let may_use = layer.map_or(&[][..], |layer| layer.may_use);
        let forbidden = member.uses.iter().filter(|used| !may_use.contains(&used.as_str()));
        wrong.extend(forbidden.map(|used| format!("{} uses {used}", member.package)));
    }
    wrong
}

#[test]
fn libraries_depend_downwards_only() {
    let metadata = MetadataCommand::new()
        .manifest_path(repository::root().join("Cargo.toml"))
        .no_deps()
        .other_options(vec!["--offline".to_owned()])
        .exec()
        .unwrap();
    let members = members(&metadata);
    for package in LAYERS.iter().map(|layer| layer.package).chain(LEAVES.iter().copied()) {
        assert!(members.iter().any(|member| member.package == package), "{package} is no member");
    }
    assert_eq!(wrong_dependencies(&members), [""; 0]);
}

#[test]
fn wrong_dependencies_are_found() {
    let member = |package: &str, used: &str| Member { package: package.into(), uses: vec![used.into()] };
    for (package, used) in [
        ("tripoint-core", "tripoint-ap"),
        ("tripoint-core", "loom"),
        ("tripoint-ap", "tripoint-pools"),
        ("tripoint-pools", "tripoint-arena-vm"),
        ("tripoint-pools", "libc"),
        ("tripoint-arena-vm", "libc"),
        ("tripoint", "benches"),
        ("newcomer", "tripoint-core"),
    ] {
        let found = wrong_dependencies(&[member(package, used)]);
        assert_eq!(found, [format!("{package} uses {used}")]);
    }
    let members = [member("tripoint-ap", "bitflags"), member("benches", "mimalloc")];
    assert_eq!(wrong_dependencies(&members), [""; 0]);
}

/// This looks at what is compiled, not at what is declared: without the arena
/// in virtual memory, no library that needs an operating system is linked.
#[test]
fn the_facade_without_vm_links_neither_libc_nor_loom() {
    let tree = Command::new(env!("CARGO"))
        .args(["tree", "--offline", "--edges", "normal", "--prefix", "none", "--no-default-features"])
        .args(["--package", "tripoint"])
        .current_dir(repository::root())
        .output()
        .unwrap();
    assert!(tree.status.success(), "{}", String::from_utf8_lossy(&tree.stderr));
    let tree = String::from_utf8(tree.stdout).unwrap();
    let mut linked: Vec<_> = tree.lines().filter_map(|line| line.split(' ').next()).collect();
    linked.sort_unstable();
    linked.dedup();
    let expected = ["bitflags", "spin", "tripoint", "tripoint-ap", "tripoint-core", "tripoint-pools"];
    assert_eq!(linked, expected);
}

#[test]
fn the_figure_shows_the_layers() {
    let page = std::fs::read_to_string(repository::root().join("design/core.md")).unwrap();
    assert!(page.contains(&figure()), "the figure in design/core.md should be:\n\n{}", figure());
}
