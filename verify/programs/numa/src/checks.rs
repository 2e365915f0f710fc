//! What has to hold of arenas on two nodes.

use tripoint::devices::{HugePageSize, HugePages, NodeSet, PageReport, Placement};
use tripoint::{
    AllocationPoint, Arena, ArenaVm, ArenaVmOptions, Error, Mvff, MvffOptions, Prefault, Resource,
};

use crate::machine::{self, MOUNT, faults, free, run_on, set_aside};

const SMALL: usize = 4 << 10;
const HUGE: usize = 2 << 20;
const GIANT: usize = 1 << 30;
const POOL: HugePages = HugePages { size: HugePageSize::TwoMiB, mount: None };

/// What each arena gets.
const SIZE: usize = 8 * HUGE;

fn nodes(nodes: &[usize]) -> NodeSet {
    NodeSet::of(nodes).expect("small numbers")
}

fn on_small(placement: Placement) -> ArenaVmOptions {
    ArenaVmOptions { placement, prefault: Prefault::Size(SIZE), reserve: 1 << 30, ..Default::default() }
}

fn on_huge(pages: HugePages, placement: Placement) -> ArenaVmOptions {
    let grain = pages.size.bytes();
    ArenaVmOptions {
        explicit_huge_pages: Some(pages),
        grain,
        prefault: Prefault::Size(SIZE),
        commit_limit: SIZE + 2 * grain,
        inherit_on_fork: false,
        placement,
        ..Default::default()
    }
}

/// Runs all of it; panics at what does not hold.
pub(crate) fn run() {
    set_aside(0, 8);
    set_aside(1, 8);
    println!(
        "{:<44} {:>4} {:>12} {:>12} {:>7}",
        "numa: arena, made on processor", "", "node 0", "node 1", "faults"
    );
    for processor in [0, 1] {
        run_on(processor);
        for (name, placement) in [
            ("any node", Placement::Any),
            ("bound to 0", Placement::Bind(nodes(&[0]))),
            ("bound to 1", Placement::Bind(nodes(&[1]))),
            ("interleaved", Placement::Interleave(nodes(&[0, 1]))),
        ] {
            let local = usize::from(processor == 1);
            let expected = |granule: usize| match placement {
                Placement::Any => [SIZE * (1 - local), SIZE * local],
                Placement::Bind(nodes) => [0, 1].map(|node| if nodes.contains(node) { SIZE } else { 0 }),
                Placement::Interleave(_) => {
                    [SIZE.div_ceil(granule).div_ceil(2) * granule, SIZE / granule / 2 * granule]
                }
            };
            check(name, processor, "4 KiB", on_small(placement), SMALL, expected(SMALL));
            check(name, processor, "2 MiB", on_huge(POOL, placement), HUGE, expected(HUGE));
            let mounted = HugePages { mount: Some(MOUNT), ..POOL };
            check(name, processor, "2 MiB, mounted", on_huge(mounted, placement), HUGE, expected(HUGE));
        }
    }
    giant_pages();
    too_few_pages_on_one_node();
    nodes_without_memory();
    a_wrong_binding_is_noticed();
}

/// Makes an arena, uses all of it, and compares where it lies.
fn check(
    name: &str,
    processor: usize,
    kind: &str,
    options: ArenaVmOptions,
    page_size: usize,
    expected: [usize; 2],
) {
    let arena = ArenaVm::create(options).unwrap_or_else(|error| panic!("{name}, {kind}: {error}"));
    arena.freeze();
    let pool = arena.register().expect("a new arena");
    let block = arena.alloc_tracts(SIZE, pool).expect("it is all there");
    let before = faults();
    for offset in (0..SIZE).step_by(SMALL) {
        // SAFETY: the block is this function's, and the offset lies in it.
        unsafe { block.base().add(offset).write_volatile(1) };
    }
    let faults = faults() - before;
    let report = arena.page_report().expect("the kernel says where pages lie");
    let table = if page_size == SMALL { report.total() - SIZE } else { 0 };
    let found = [0, 1].map(|node| report.bytes(node, page_size));
    println!("numa: {name:<18} {kind:<18} {processor:>6} {:>12} {:>12} {faults:>7}", found[0], found[1]);
    assert_eq!(faults, 0, "the steady part");
    assert_eq!(report.total(), arena.sizes().committed, "all of it is found: {report}");
    // The table lies on one of the nodes, too.
    let beside = |found: usize, expected: usize| (expected..=expected + table).contains(&found);
    assert!(beside(found[0], expected[0]) && beside(found[1], expected[1]), "{expected:?}: {report}");
    assert_nothing_elsewhere(&report, options.placement);
}

fn assert_nothing_elsewhere(report: &PageReport, placement: Placement) {
    let Some(nodes) = placement.nodes() else { return };
    assert!(report.rows().all(|(node, _, _)| nodes.contains(node)), "the table too: {report}");
}

/// A pool in an arena on a page of 1 GiB, which the second node has.
fn giant_pages() {
    let pages = HugePages { size: HugePageSize::OneGiB, mount: None };
    let options = ArenaVmOptions {
        prefault: Prefault::Size(GIANT),
        commit_limit: 3 * GIANT,
        ..on_huge(pages, Placement::Bind(nodes(&[1])))
    };
    let arena = ArenaVm::create(options).expect("the machine was started with one");
    let pool = Mvff::create(&arena, MvffOptions::default()).expect("a pool");
    let mut point = AllocationPoint::create(&pool).expect("a point");
    let _ = point.alloc([0_u8; SMALL]).expect("room");
    arena.freeze();
    let before = faults();
    for round in 0..1000_u32 {
        let _ = point.alloc([round; SMALL / 4]).expect("room");
    }
    let faults = faults() - before;
    println!(
        "numa: a pool on a page of 1 GiB, node 1: {} bytes, {faults} faults",
        arena.page_report().expect("as before").bytes(1, GIANT)
    );
    assert_eq!((arena.page_report().expect("as before").bytes(1, GIANT), faults), (GIANT, 0));
    let bound = ArenaVmOptions { placement: Placement::Bind(nodes(&[0])), ..options };
    let error = ArenaVm::create(bound).map(drop).expect_err("the first node has none");
    assert_eq!(error, Error::ResourceLimit { resource: Resource::HugePages1GiB, size: GIANT, limit: 0 });
}

fn too_few_pages_on_one_node() {
    set_aside(0, 2);
    let size = SIZE;
    let bound = on_huge(POOL, Placement::Bind(nodes(&[0])));
    let error = ArenaVm::create(bound).map(drop).expect_err("too few on this node");
    println!("numa: refused: {error}");
    assert_eq!(error, Error::ResourceLimit { resource: Resource::HugePages2MiB, size, limit: 2 * HUGE });
    // Two pages would silently come from the other node.
    let asked = nodes(&[0, 1]);
    let error = ArenaVm::create(on_huge(POOL, Placement::Interleave(asked))).map(drop).expect_err("no turns");
    assert_eq!(error, Error::Misplaced { asked, page_size: HUGE });
    println!("numa: refused: {error}");
    assert_eq!((free(0, HUGE), free(1, HUGE)), (2, 8), "all were given back");
    set_aside(0, 8);
}

fn nodes_without_memory() {
    for asked in [nodes(&[2]), nodes(&[0, 2]), nodes(&[5])] {
        let error = ArenaVm::create(on_small(Placement::Bind(asked))).map(drop).expect_err("no memory there");
        println!("numa: refused: {error}");
        assert_eq!(error, Error::NoSuchNode { asked, usable: nodes(&[0, 1]) });
    }
}

/// The control: pages that come from another node than the options say.
fn a_wrong_binding_is_noticed() {
    let options = ArenaVmOptions { prefault: Prefault::None, ..on_huge(POOL, Placement::Bind(nodes(&[1]))) };
    let arena = ArenaVm::create(options).expect("nothing is taken so far");
    let pool = arena.register().expect("a new arena");
    let right = arena.alloc_tracts(HUGE, pool).expect("node 1 has pages");
    let base = right.limit().addr().get();
    machine::bind_behind_its_back(base, HUGE, 0);
    let error = arena.alloc_tracts(HUGE, pool).expect_err("it would lie on node 0");
    let refusal = arena.last_refusal().expect("the arena remembers");
    println!("numa: refused: {error} ({refusal})");
    assert_eq!((refusal.call, refusal.addr), ("misplaced", base));
    assert_eq!((free(0, HUGE), free(1, HUGE)), (8, 7), "and nothing stays there");
}
