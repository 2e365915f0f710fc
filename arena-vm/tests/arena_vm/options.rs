//! Options: every bad one is refused with a sentence, before anything is reserved.
//! (design/arena-vm.md `.req.cheap`.)

use std::format;

use tripoint_arena_vm::mock::{Call, Failing};
use tripoint_arena_vm::{ArenaVm, ArenaVmOptions, HugePageSize, HugePages, Native, Placement, Prefault};
use tripoint_core::{Arena, Error, NodeSet};

use crate::common::{Recorder, small};

fn assert_parameter(options: ArenaVmOptions) {
    let platform = Failing::new(Native::new());
    match ArenaVm::create_on(&platform, options) {
        Err(Error::Parameter(why)) => assert!(why.split(' ').count() > 4, "{why:?} is a sentence"),
        other => panic!("{options:?}: {other:?}"),
    }
    assert_eq!(platform.seen(Call::Reserve), platform.seen(Call::Release));
    assert_eq!(platform.seen(Call::Commit), 0);
}

#[test]
fn bad_options_are_refused() {
    let good = small();
    for grain in [0, 3, 512, 65_537] {
        assert_parameter(ArenaVmOptions { grain, ..good });
    }
    assert_parameter(ArenaVmOptions { reserve: 0, reserve_floor: 0, ..good });
    assert_parameter(ArenaVmOptions { reserve_floor: good.reserve + 1, ..good });
    assert_parameter(ArenaVmOptions { reserve: usize::MAX, ..good });
    assert_parameter(ArenaVmOptions { reserve: isize::MAX as usize, ..good });
    assert_parameter(ArenaVmOptions { spare_share: 101, ..good });
    assert_parameter(ArenaVmOptions { prefault: Prefault::Everything, ..good });
    assert_parameter(ArenaVmOptions { prefault: Prefault::Everything, commit_limit: 4096, ..good });
    for prefault in [Prefault::Size(1), Prefault::Everything] {
        assert_parameter(ArenaVmOptions { guard: true, prefault, commit_limit: 1 << 20, ..good });
    }
    let huge = ArenaVmOptions {
        explicit_huge_pages: Some(HugePages { size: HugePageSize::TwoMiB, mount: None }),
        grain: 2 << 20,
        commit_limit: 8 << 20,
        inherit_on_fork: false,
        ..good
    };
    assert_parameter(ArenaVmOptions { grain: 1 << 20, ..huge });
    assert_parameter(ArenaVmOptions { commit_limit: usize::MAX, ..huge });
    assert_parameter(ArenaVmOptions { inherit_on_fork: true, ..huge });
    assert_parameter(ArenaVmOptions { huge_pages: true, ..huge });
    assert_parameter(ArenaVmOptions { guard: true, ..huge });
    assert_parameter(ArenaVmOptions { placement: Placement::Bind(NodeSet::default()), ..good });
    // Room for the grain alone, not for its table.
    assert_parameter(ArenaVmOptions { reserve: 65_536, reserve_floor: 1, ..good });
}

#[test]
fn the_defaults_reserve_much_and_commit_nothing() {
    let options = ArenaVmOptions::default();
    assert!(options.inherit_on_fork && !options.lock && !options.huge_pages);
    let arena = ArenaVm::create(options).unwrap();
    assert!(arena.reserved() >= options.reserve_floor && arena.reserved() <= options.reserve);
    let sizes = arena.sizes();
    assert_eq!((sizes.committed, sizes.own), (0, 0), "far below the 16 KiB promised");
    assert_eq!(sizes.commit_limit, usize::MAX);
    // The first tract costs its grain, a page of table, and nothing else.
    let pool = arena.register().unwrap();
    let block = arena.alloc_tracts(1, pool).unwrap();
    let sizes = arena.sizes();
    assert_eq!(sizes.committed, block.size() + sizes.own);
    assert!(sizes.own < 16 << 10);
}

#[test]
fn options_can_be_shown() {
    let shown = format!("{:?}", ArenaVmOptions { event_hook: Some(Recorder::leaked()), ..small() });
    assert!(shown.contains("event_hook: true") && shown.contains("spare_share: 25"), "{shown}");
}
