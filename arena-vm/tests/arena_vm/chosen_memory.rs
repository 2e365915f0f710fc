//! Explicit huge pages and nodes, on a platform that pretends to have them: every error path, on any machine.
//! (design/arena-vm.md `.req.place`, `.explicit`, `.place`.)

use proptest::prelude::*;

use tripoint_arena_vm::mock::{Call, Failing};
use tripoint_arena_vm::{ArenaVm, ArenaVmOptions, HugePageSize, HugePages, Placement, Portable, Prefault};
use tripoint_core::{Arena, Describe, Error, NodeSet, Resource};
use tripoint_oracle::cases;

use crate::common::{Audited, GRAIN, assert_books, holds, small, write};
use crate::pretended::{HUGE, Pretended};

type Tested<'p> = Failing<&'p Audited<&'p Pretended>>;

/// Runs a test on a platform with this many huge pages on each of two nodes.
fn on_pretended(free: [usize; 2], test: impl Fn(&Tested<'_>, &Pretended)) {
    let pretended = Pretended::new(free);
    let audited = Audited::new(&pretended);
    test(&Failing::new(&audited), &pretended);
    assert_eq!(audited.reservations(), 0, "every reservation is released");
    assert_eq!(pretended.free(), free, "every page is given back");
}

fn on_huge_pages() -> ArenaVmOptions {
    ArenaVmOptions {
        explicit_huge_pages: Some(HugePages { size: HugePageSize::TwoMiB, mount: None }),
        grain: HUGE,
        commit_limit: 8 * HUGE,
        inherit_on_fork: false,
        spare_share: 0,
        ..Default::default()
    }
}

fn nodes(nodes: &[usize]) -> NodeSet {
    NodeSet::of(nodes).unwrap()
}

#[test]
fn grains_are_taken_from_the_pool_and_given_back() {
    on_pretended([4, 0], |platform, pretended| {
        let arena = ArenaVm::create_on(platform, on_huge_pages()).unwrap();
        assert!(arena.reserved() < 12 * HUGE, "no more than the commit limit needs");
        assert_eq!(pretended.free(), [4, 0], "nothing is taken before it is needed");
        let pool = arena.register().unwrap();
        let block = arena.alloc_tracts(HUGE + 1, pool).unwrap();
        assert_eq!((block.base().addr().get() % HUGE, block.size()), (0, 2 * HUGE));
        assert_eq!(
            (pretended.free(), platform.seen(Call::Commit)),
            ([2, 0], 1),
            "the table is on small pages"
        );
        write(block, 3);
        assert!(holds(block, 3));
        assert_books(&arena, 2 * HUGE);
        // SAFETY: allocated above, freed once, unused.
        unsafe { arena.free_tracts(block, pool) };
        assert_eq!((pretended.free(), platform.seen(Call::Decommit)), ([4, 0], 0));
        assert_books(&arena, 0);
    });
}

#[test]
fn too_few_pages_are_refused_with_both_numbers_and_nothing_is_taken() {
    on_pretended([3, 1], |platform, pretended| {
        let lacking =
            |limit| Error::ResourceLimit { resource: Resource::HugePages2MiB, size: 4 * HUGE, limit };
        let bound = ArenaVmOptions { placement: Placement::Bind(nodes(&[0])), ..on_huge_pages() };
        let arena = ArenaVm::create_on(platform, bound).unwrap();
        let pool = arena.register().unwrap();
        assert_eq!(arena.alloc_tracts(4 * HUGE, pool), Err(lacking(3 * HUGE)), "of this node");
        assert_eq!((pretended.free(), arena.sizes().committed), ([3, 1], arena.sizes().own));
        arena.alloc_tracts(3 * HUGE, pool).unwrap();
        let other = ArenaVmOptions { prefault: Prefault::Size(4 * HUGE), ..on_huge_pages() };
        assert_eq!(ArenaVm::create_on(platform, other).unwrap_err(), lacking(HUGE), "at creation");
    });
}

#[test]
fn pages_lie_where_they_were_asked_to_be_and_the_report_says_so() {
    on_pretended([4, 4], |platform, _| {
        for (placement, rows) in [
            (Placement::Any, &[(0, HUGE, 4 * HUGE)][..]),
            (Placement::Bind(nodes(&[1])), &[(1, HUGE, 4 * HUGE)][..]),
            (Placement::Interleave(nodes(&[0, 1])), &[(0, HUGE, 2 * HUGE), (1, HUGE, 2 * HUGE)][..]),
        ] {
            let options = ArenaVmOptions { placement, prefault: Prefault::Size(4 * HUGE), ..on_huge_pages() };
            let arena = ArenaVm::create_on(platform, options).unwrap();
            assert!(arena.page_report().unwrap().rows().eq(rows.iter().copied()), "{placement:?}");
            let mut text = String::new();
            arena.describe(&mut text, 0).unwrap();
            assert_eq!(text.matches("pages of 2097152").count(), rows.len(), "{text}");
        }
    });
}

#[test]
fn a_page_that_lies_elsewhere_is_an_error() {
    for placement in [Placement::Bind(nodes(&[0])), Placement::Interleave(nodes(&[0, 1]))] {
        on_pretended([4, 4], |platform, pretended| {
            let arena =
                ArenaVm::create_on(platform, ArenaVmOptions { placement, ..on_huge_pages() }).unwrap();
            let pool = arena.register().unwrap();
            let right = arena.alloc_tracts(2 * HUGE, pool).unwrap();
            pretended.lead_astray(1);
            let asked = placement.nodes().unwrap();
            assert_eq!(arena.alloc_tracts(2 * HUGE, pool), Err(Error::Misplaced { asked, page_size: HUGE }));
            let refusal = arena.last_refusal().unwrap();
            assert_eq!((refusal.call, refusal.size), ("misplaced", HUGE));
            let text = refusal.to_string();
            assert!(text.contains("lies on another node: free memory on the nodes"), "{text}");
            assert!(!text.contains("code"), "{text}");
            let wrong = if matches!(placement, Placement::Bind(_)) { 0 } else { HUGE };
            assert_eq!(refusal.addr, right.limit().addr().get() + wrong, "the first that is wrong");
            assert_eq!(pretended.free().iter().sum::<usize>(), 6);
            assert_books(&arena, 2 * HUGE);
        });
    }
}

#[test]
fn nodes_that_are_not_there_are_named() {
    on_pretended([0, 0], |platform, _| {
        for placement in [Placement::Bind(nodes(&[1, 2])), Placement::Interleave(nodes(&[1, 2]))] {
            let asked = nodes(&[1, 2]);
            let error = ArenaVm::create_on(platform, ArenaVmOptions { placement, ..small() }).unwrap_err();
            assert_eq!(error, Error::NoSuchNode { asked, usable: nodes(&[0, 1]) });
            assert!(error.to_string().contains("only 0, 1"), "{error}");
        }
        assert_eq!(platform.seen(Call::Reserve), 0, "before anything is reserved");
    });
}

/// The kernel forgets the placement of small pages that are mapped anew.
#[test]
fn small_pages_are_placed_each_time_that_they_are_opened() {
    on_pretended([0, 0], |platform, pretended| {
        let placement = Placement::Bind(nodes(&[1]));
        let options = ArenaVmOptions { placement, prefault: Prefault::AtFill, spare_share: 0, ..small() };
        let arena = ArenaVm::create_on(platform, options).unwrap();
        assert_eq!((platform.seen(Call::Place), pretended.policies()), (1, vec![placement]));
        let pool = arena.register().unwrap();
        for round in 0..3 {
            let block = arena.alloc_tracts(GRAIN, pool).unwrap();
            assert_eq!((platform.seen(Call::Place), platform.seen(Call::Locate)), (2 + round, 1 + round));
            // SAFETY: allocated above, freed once, unused.
            unsafe { arena.free_tracts(block, pool) };
        }
        let lazy = ArenaVmOptions { prefault: Prefault::None, ..options };
        let arena = ArenaVm::create_on(platform, lazy).unwrap();
        let pool = arena.register().unwrap();
        arena.alloc_tracts(GRAIN, pool).unwrap();
        assert_eq!(platform.seen(Call::Locate), 3, "what has no memory yet lies nowhere");
    });
}

/// What an arena says if this call is refused at its creation or in the growth that follows.
fn refused(platform: &Tested<'_>, options: ArenaVmOptions) -> Result<(), Error> {
    let arena = ArenaVm::create_on(platform, options)?;
    let pool = arena.register()?;
    let before = arena.sizes();
    let grown = arena.alloc_tracts(2 * HUGE, pool);
    if grown.is_err() {
        assert_eq!(arena.sizes().committed - arena.sizes().own, before.committed - before.own);
        assert_books(&arena, 0);
    }
    grown.map(drop)
}

#[test]
fn every_call_for_chosen_memory_may_be_refused() {
    on_pretended([8, 8], |platform, _| {
        let options =
            ArenaVmOptions { placement: Placement::Bind(nodes(&[0])), lock: true, ..on_huge_pages() };
        for call in [
            Call::MapHugePages,
            Call::FillHugePages,
            Call::MemoryNodes,
            Call::Place,
            Call::Locate,
            Call::NoInherit,
        ] {
            platform.fail(call, 1);
            match refused(platform, options) {
                Err(Error::Parameter(why)) => {
                    assert!(call == Call::MapHugePages && why.contains("/sys"), "{why}")
                }
                answer => assert_eq!(answer, Err(Error::Resource), "{call:?}"),
            }
            platform.heal();
            assert_eq!(refused(platform, options), Ok(()), "after {call:?}");
        }
        let mounted = HugePages { size: HugePageSize::TwoMiB, mount: Some(c"/nowhere") };
        platform.fail(Call::MapHugePages, 1);
        let answer = refused(platform, ArenaVmOptions { explicit_huge_pages: Some(mounted), ..options });
        assert!(
            matches!(answer, Err(Error::Parameter(why)) if why.contains("mount -t hugetlbfs")),
            "{answer:?}"
        );
        let arena = ArenaVm::create_on(platform, options).unwrap();
        for call in [Call::PageSizes, Call::Locate] {
            let pool = arena.register().unwrap();
            arena.alloc_tracts(HUGE, pool).unwrap();
            platform.fail(call, 1);
            assert_eq!(arena.page_report(), Err(Error::Resource));
            assert_eq!(arena.last_refusal().unwrap().call, call.name());
        }
    });
}

#[test]
fn pages_that_cannot_be_given_back_stay_spare_and_serve() {
    on_pretended([2, 0], |platform, pretended| {
        let arena = ArenaVm::create_on(platform, on_huge_pages()).unwrap();
        let pool = arena.register().unwrap();
        let block = arena.alloc_tracts(2 * HUGE, pool).unwrap();
        platform.fail_always(Call::EmptyHugePages);
        // SAFETY: allocated above, freed once, unused.
        unsafe { arena.free_tracts(block, pool) };
        assert_eq!((arena.sizes().spare, pretended.free()), (2 * HUGE, [0, 0]));
        assert_eq!(arena.alloc_tracts(2 * HUGE, pool), Ok(block));
        platform.heal();
    });
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Alloc { grains: usize },
    Free { which: usize },
    Trim,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (1usize..4).prop_map(|grains| Step::Alloc { grains }),
        3 => any::<usize>().prop_map(|which| Step::Free { which }),
        1 => Just(Step::Trim),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(128), ..ProptestConfig::default() })]

    /// The pool's own account is the oracle: what an arena has committed has been taken, and lies where it was asked to
    /// be; and what was refused was not there.
    #[test]
    #[cfg_attr(miri, ignore = "much memory")]
    fn an_arena_has_as_many_pages_as_the_pool_lacks(
        steps in prop::collection::vec(step(), 1..40),
        free in (0usize..6, 0usize..6),
        spare_share in prop_oneof![Just(0_u8), Just(25), Just(100)],
        choice in 0usize..4,
    ) {
        let both = nodes(&[0, 1]);
        let one = |node| Placement::Bind(nodes(&[node]));
        let placement = [Placement::Any, one(0), one(1), Placement::Interleave(both)][choice];
        on_pretended([free.0, free.1], |platform, pretended| {
            let options = ArenaVmOptions { placement, spare_share, ..on_huge_pages() };
            let arena = ArenaVm::create_on(platform, options).unwrap();
            let pool = arena.register().unwrap();
            let mut out = Vec::new();
            for step in &steps {
                match *step {
                    Step::Alloc { grains } => match arena.alloc_tracts(grains * HUGE, pool) {
                        Ok(block) => out.push(block),
                        Err(Error::ResourceLimit { resource, size, limit }) => {
                            let there: usize = placement.nodes().unwrap_or(both).nodes()
                                .map(|node| pretended.free()[node] * HUGE).sum();
                            assert_eq!((resource, size, limit), (Resource::HugePages2MiB, grains * HUGE, there));
                            // Of nodes that take turns, one may have none while others have some.
                            assert!(there < size || matches!(placement, Placement::Interleave(_)));
                        }
                        Err(error) => assert!(matches!(error, Error::CommitLimit | Error::Limit), "{error:?}"),
                    },
                    Step::Free { which } if !out.is_empty() => {
                        let block = out.swap_remove(which % out.len());
                        // SAFETY: allocated above, freed once, unused.
                        unsafe { arena.free_tracts(block, pool) };
                    }
                    Step::Free { .. } => {}
                    Step::Trim => _ = arena.trim(),
                }
                assert_books(&arena, out.iter().map(|block| block.size()).sum());
                let (sizes, report) = (arena.sizes(), arena.page_report().unwrap());
                let taken = (free.0 + free.1 - pretended.free().iter().sum::<usize>()) * HUGE;
                assert_eq!((sizes.committed - sizes.own, report.total()), (taken, taken));
                let asked = placement.nodes().unwrap_or(both);
                assert!(report.rows().all(|(node, _, _)| asked.contains(node)), "{report}");
            }
        });
    }
}

#[test]
fn the_portable_platform_has_neither() {
    let platform = Portable::new();
    let options = on_huge_pages();
    assert!(matches!(ArenaVm::create_on(platform, options), Err(Error::Parameter(_))));
    let placed = ArenaVmOptions { placement: Placement::Bind(nodes(&[0])), ..small() };
    assert_eq!(ArenaVm::create_on(platform, placed).unwrap_err(), Error::Resource);
    let arena = ArenaVm::create_on(platform, small()).unwrap();
    assert_eq!(arena.page_report(), Err(Error::Resource));
}
