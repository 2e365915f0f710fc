//! Nodes of the machine that the tests run on, which may have only one (design/arena-vm.md `.place`). `verify/numa` tries
//! two.

use tripoint_arena_vm::{ArenaVm, ArenaVmOptions, HugePageSize, HugePages, Placement, Platform, Prefault};
use tripoint_core::{Arena, Error, NodeSet};

use crate::common::{GRAIN, small, write};
use crate::old_kernel::without;

/// The first node with memory; `None` for a kernel without NUMA, or behind a filter that hides it.
fn first_node(arena: &ArenaVm) -> Option<usize> {
    let nodes = arena.platform().memory_nodes();
    if nodes.is_err() {
        tripoint_oracle::skipped!("the kernel does not say which memory nodes it has");
    }
    nodes.ok()?.nodes().next()
}

#[test]
fn memory_is_found_on_the_node_that_was_asked_for() {
    let plain = ArenaVm::create(small()).unwrap();
    let Some(node) = first_node(&plain) else { return };
    let nodes = NodeSet::of(&[node]).unwrap();
    for placement in [Placement::Bind(nodes), Placement::Interleave(nodes)] {
        for prefault in [Prefault::None, Prefault::AtFill] {
            let options = ArenaVmOptions { placement, prefault, spare_share: 0, ..small() };
            let arena = ArenaVm::create(options).unwrap();
            let pool = arena.register().unwrap();
            for _ in 0..2 {
                let block = arena.alloc_tracts(3 * GRAIN, pool).unwrap();
                let before = arena.page_report().unwrap();
                let populated = if prefault == Prefault::None { 4096 } else { 3 * GRAIN + 4096 };
                assert_eq!(before.total(), populated, "{before}");
                write(block, 1);
                let report = arena.page_report().unwrap();
                assert!(report.rows().eq([(node, 4096, 3 * GRAIN + 4096)]), "{report}");
                // SAFETY: allocated above, freed once, unused.
                unsafe { arena.free_tracts(block, pool) };
            }
        }
    }
}

#[test]
fn transparent_huge_pages_are_counted_in_the_report() {
    let options = ArenaVmOptions { huge_pages: true, grain: 2 << 20, reserve: 64 << 20, ..small() };
    let arena = ArenaVm::create(options).unwrap();
    if first_node(&arena).is_none() {
        return;
    }
    let pool = arena.register().unwrap();
    let block = arena.alloc_tracts(4 << 20, pool).unwrap();
    write(block, 1);
    match arena.merge() {
        Ok(merged) => assert_eq!(arena.page_report().unwrap().transparent(), merged),
        Err(error) => tripoint_oracle::skipped!("{error}: {:?}", arena.last_refusal()),
    }
    assert_eq!(arena.page_report().unwrap().total(), arena.sizes().committed);
}

#[test]
fn a_node_that_the_machine_has_not_is_named_with_those_that_it_has() {
    let plain = ArenaVm::create(small()).unwrap();
    if first_node(&plain).is_none() {
        return;
    }
    let asked = NodeSet::of(&[NodeSet::MAX - 1]).unwrap();
    let error = ArenaVm::create(ArenaVmOptions { placement: Placement::Bind(asked), ..small() }).unwrap_err();
    let usable = plain.platform().memory_nodes().unwrap();
    assert_eq!(error, Error::NoSuchNode { asked, usable });
}

/// What containers do whose filters know only what is common.
#[test]
fn filters_that_refuse_the_calls_are_an_error() {
    for (call, argument, value) in [(libc::SYS_get_mempolicy, 4, 4), (libc::SYS_mbind, 2, 2)] {
        without(call, argument, value, || {
            let placement = Placement::Bind(NodeSet::of(&[0]).unwrap());
            assert_eq!(
                ArenaVm::create(ArenaVmOptions { placement, ..small() }).unwrap_err(),
                Error::Resource
            );
        });
    }
}

#[test]
fn a_directory_of_small_pages_is_refused() {
    for mount in [c"/tmp", c"/nowhere", c"/proc"] {
        let pages = HugePages { size: HugePageSize::TwoMiB, mount: Some(mount) };
        let options = ArenaVmOptions {
            explicit_huge_pages: Some(pages),
            grain: 2 << 20,
            commit_limit: 8 << 20,
            inherit_on_fork: false,
            ..Default::default()
        };
        let answer = ArenaVm::create(options);
        assert!(
            matches!(answer, Err(Error::Parameter(why)) if why.contains("mount -t hugetlbfs")),
            "{answer:?}"
        );
    }
}
