//! The arena against a naive model, on each platform.

use proptest::prelude::*;

use tripoint_arena_vm::mock::Call;
use tripoint_arena_vm::{ArenaVm, ArenaVmOptions, Prefault};
use tripoint_core::{Addr, Align, Arena, Block, Error, PART_ALIGN, PART_SIZE_MAX, PoolId};
use tripoint_oracle::cases;

use crate::common::{GRAIN, assert_books, holds, on_each, small, write};
use crate::linear::{Memory, growing, on};
use crate::refused_addresses::{on_limited, refused};

#[derive(Clone, Debug)]
enum Step {
    Alloc { grains: usize, pool: usize },
    AllocPart { size: usize, pool: usize },
    Free { which: usize },
    FreePart { which: usize, front: bool },
    Dismiss { pool: usize },
    Trim,
    Freeze,
    Thaw,
    SetLimit { grains: usize },
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => (1usize..12, 0usize..3).prop_map(|(grains, pool)| Step::Alloc { grains, pool }),
        6 => (1usize..=PART_SIZE_MAX, 0usize..3).prop_map(|(size, pool)| Step::AllocPart { size, pool }),
        8 => any::<usize>().prop_map(|which| Step::Free { which }),
        2 => any::<(usize, bool)>().prop_map(|(which, front)| Step::FreePart { which, front }),
        1 => (0usize..3).prop_map(|pool| Step::Dismiss { pool }),
        1 => Just(Step::Trim),
        1 => Just(Step::Freeze),
        2 => Just(Step::Thaw),
        1 => (8usize..80).prop_map(|grains| Step::SetLimit { grains }),
    ]
}

/// An allocated block: the pool that owns it, and the byte that fills it.
type Out = (Block, PoolId, u8);

struct Model<'a, A: Arena> {
    arena: &'a A,
    pools: [PoolId; 3],
    out: Vec<Out>,
    next_byte: u8,
}

impl<A: Arena> Model<'_, A> {
    fn in_use(&self) -> usize {
        self.out.iter().map(|(block, ..)| block.size()).sum()
    }

    fn alloc(&mut self, grains: usize, pool: PoolId) {
        let before = self.arena.sizes();
        match self.arena.alloc_tracts(grains * GRAIN - 1, pool) {
            Ok(block) => {
                assert_eq!(block.size(), grains * GRAIN);
                self.take(block, pool);
            }
            Err(Error::Frozen) => assert!(self.arena.is_frozen()),
            Err(Error::CommitLimit) => {
                let kept = before.committed - before.spare;
                assert!(kept + grains * GRAIN + 4096 > before.commit_limit);
            }
            Err(Error::Limit) => assert!(self.in_use() + grains * GRAIN > before.reserved / 4),
            Err(error) => panic!("{error:?}"),
        }
    }

    fn alloc_part(&mut self, size: usize, pool: PoolId, guard: bool) {
        let before = self.arena.sizes();
        match self.arena.alloc_part(size, pool) {
            Ok(part) => {
                assert!(!guard, "a part is followed by another and not by a guard");
                assert_eq!(part.size(), size.next_multiple_of(PART_ALIGN));
                assert!(part.range().base().is_aligned(Align::new(PART_ALIGN).unwrap()));
                assert_eq!(self.arena.part_of(part.range().base()), Some((pool, part.range())));
                self.take(part, pool);
            }
            Err(Error::Frozen) => assert!(self.arena.is_frozen()),
            Err(Error::CommitLimit) => {
                assert!(before.committed - before.spare + GRAIN + 4096 > before.commit_limit);
            }
            Err(Error::Limit) => assert!(guard || self.in_use() + 4 * GRAIN > before.reserved / 4),
            Err(error) => panic!("{error:?}"),
        }
    }

    fn take(&mut self, block: Block, pool: PoolId) {
        assert!(self.out.iter().all(|(other, ..)| !other.range().overlaps(block.range())));
        self.next_byte = self.next_byte.wrapping_add(1);
        write(block, self.next_byte);
        self.out.push((block, pool, self.next_byte));
    }

    /// Frees a block, or its front half, or its back half.
    fn free(&mut self, which: usize, half: Option<bool>) {
        if self.out.is_empty() {
            return;
        }
        let at = which % self.out.len();
        let (block, pool, byte) = self.out.swap_remove(at);
        assert!(holds(block, byte));
        if block.size() < GRAIN {
            // SAFETY: a part from the arena, freed once, unused from here on.
            return unsafe { self.arena.free_part(block, pool) };
        }
        let grains = block.size() / GRAIN;
        let (front, back) = block.split_at(half.map_or(0, |_| grains / 2 * GRAIN)).unwrap();
        let (kept, freed) =
            if half == Some(true) && front.size() > 0 { (back, front) } else { (front, back) };
        // SAFETY: whole grains from the arena, freed once, unused from here on.
        unsafe { self.arena.free_tracts(freed, pool) };
        if kept.size() > 0 {
            self.out.push((kept, pool, byte));
        }
    }

    fn dismiss(&mut self, which: usize) {
        let pool = self.pools[which];
        // SAFETY: registered by the model, replaced right away; its blocks are
        // dropped from the model.
        unsafe { self.arena.unregister(pool) };
        self.out.retain(|(_, owner, _)| *owner != pool);
        self.pools[which] = self.arena.register().unwrap();
    }

    /// (design/arena-vm.md `.guard`)
    fn check_guards(&self) {
        for (block, ..) in &self.out {
            let limit = block.range().limit();
            let is_out = |(other, ..): &Out| other.range().contains(limit);
            assert!(!self.out.iter().any(is_out), "two blocks touch");
            assert_eq!(self.arena.pool_of(limit), None);
        }
    }

    fn check_owners(&self) {
        for (block, pool, _) in &self.out {
            assert_eq!(self.arena.pool_of(block.range().base()), Some(*pool));
            let last = block.range().base().checked_add(block.size() - 1).unwrap();
            assert_eq!(self.arena.pool_of(last), Some(*pool));
        }
        for &pool in &self.pools {
            let mut expected: Vec<_> = self
                .out
                .iter()
                .filter(|(_, owner, _)| *owner == pool)
                .map(|(block, ..)| block.range())
                .collect();
            expected.sort_by_key(|range| range.base());
            let mut from = Addr::ZERO;
            while let Some(run) = self.arena.next_tracts(pool, from) {
                from = run.range().limit();
                let whole = expected.iter().take_while(|range| range.base() < from).count();
                let inside: Vec<_> = expected.drain(..whole).collect();
                assert_eq!(inside.iter().map(|range| range.size()).sum::<usize>(), run.size());
                assert_eq!((inside[0].base(), inside[whole - 1].limit()), (run.range().base(), from));
                assert!(expected.first().is_none_or(|next| next.base() != from), "runs that touch are one");
            }
            assert!(expected.is_empty(), "{expected:?} of {pool:?} are not shown");
        }
    }
}

impl<A: Arena> Model<'_, A> {
    fn perform(&mut self, step: &Step, guard: bool, set_limit: impl FnOnce(usize)) {
        match *step {
            Step::Alloc { grains, pool } => self.alloc(grains, self.pools[pool]),
            Step::AllocPart { size, pool } => self.alloc_part(size, self.pools[pool], guard),
            Step::Free { which } => self.free(which, None),
            Step::FreePart { which, front } => self.free(which, Some(front)),
            Step::Dismiss { pool } => self.dismiss(pool),
            Step::Trim => _ = self.arena.trim(),
            Step::Freeze => self.arena.freeze(),
            Step::Thaw => self.arena.thaw(),
            Step::SetLimit { grains } => set_limit(grains * GRAIN),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(64), ..ProptestConfig::default() })]

    #[test]
    fn an_arena_does_what_a_list_of_blocks_does(
        steps in prop::collection::vec(step(), 1..if cfg!(miri) { 5 } else { 80 }),
        spare_share in 0u8..=100,
        prefault in prop_oneof![
            Just(Prefault::None), Just(Prefault::AtFill), Just(Prefault::Ahead(3 * GRAIN)), Just(Prefault::Size(5 * GRAIN)),
        ],
        guard in any::<bool>(),
    ) {
        on_each(|platform| {
            let guard = guard && !matches!(prefault, Prefault::Ahead(_) | Prefault::Size(_));
            let options = ArenaVmOptions { spare_share, prefault, guard, ..small() };
            let arena = ArenaVm::create_on(platform, options).unwrap();
            let pools = core::array::from_fn(|_| arena.register().unwrap());
            let mut model = Model { arena: &arena, pools, out: Vec::new(), next_byte: 0 };
            let mut committed_most = arena.sizes().committed_high_water;
            for step in &steps {
                let before = arena.sizes().committed;
                model.perform(step, guard, |limit| _ = arena.set_commit_limit(limit));
                let sizes = arena.sizes();
                committed_most = committed_most.max(sizes.committed);
                assert_books(&arena, model.in_use());
                assert_eq!(platform.committed(), sizes.committed, "the platform agrees");
                assert!(sizes.committed <= sizes.commit_limit);
                assert!(sizes.committed_high_water >= committed_most);
                assert!(!arena.is_frozen() || sizes.committed == before, "frozen: {step:?}");
                model.check_owners();
                if guard {
                    model.check_guards();
                }
            }
            assert!(model.out.iter().all(|(block, _, byte)| holds(*block, *byte)));
        });
    }

    /// The same on addresses that come in steps (design/arena-vm.md `.reserve.grow`).
    #[test]
    fn an_arena_that_grows_does_what_a_list_of_blocks_does(
        steps in prop::collection::vec(step(), 1..if cfg!(miri) { 5 } else { 80 }),
        spare_share in 0u8..=100,
        refused_step in 0u32..6,
        guard in any::<bool>(),
    ) {
        on_limited(|failing, platform| {
            let options = ArenaVmOptions { spare_share, guard, ..refused() };
            let arena = ArenaVm::create_on(failing, options).unwrap();
            failing.fail(Call::Extend, refused_step);
            let pools = core::array::from_fn(|_| arena.register().unwrap());
            let mut model = Model { arena: &arena, pools, out: Vec::new(), next_byte: 0 };
            let mut reserved = arena.reserved();
            for step in &steps {
                model.perform(step, guard, |limit| _ = arena.set_commit_limit(limit));
                assert_books(&arena, model.in_use());
                assert_eq!(platform.committed(), arena.sizes().committed, "the platform agrees");
                assert!(arena.reserved() >= reserved);
                reserved = arena.reserved();
                model.check_owners();
                if guard {
                    model.check_guards();
                }
            }
            assert!(model.out.iter().all(|(block, _, byte)| holds(*block, *byte)));
        });
    }

    /// The same on memory that only grows, and of which others take parts meanwhile (design/arena-vm.md `.gaps`).
    #[test]
    fn an_arena_with_gaps_does_what_a_list_of_blocks_does(
        steps in prop::collection::vec((step(), 0usize..4), 1..if cfg!(miri) { 5 } else { 80 }),
        spare_share in 0u8..=100,
        refused_step in 0u32..6,
        guard in any::<bool>(),
    ) {
        let memory = Memory::new(6 << 20);
        let platform = on(&memory);
        {
            let options = ArenaVmOptions { spare_share, guard, ..growing() };
            let arena = ArenaVm::create_on(&platform, options).unwrap();
            platform.fail(Call::Extend, refused_step);
            let pools = core::array::from_fn(|_| arena.register().unwrap());
            let mut model = Model { arena: &arena, pools, out: Vec::new(), next_byte: 0 };
            let mut theirs = Vec::new();
            for (step, units) in &steps {
                model.perform(step, guard, |limit| _ = arena.set_commit_limit(limit));
                assert_books(&arena, model.in_use());
                model.check_owners();
                if guard {
                    model.check_guards();
                }
                if *units > 0 {
                    theirs.extend(memory.take(units * (64 << 10)));
                }
            }
            assert!(model.out.iter().all(|(block, _, byte)| holds(*block, *byte)));
            assert!(theirs.iter().all(|block| holds(*block, 0xee)), "what others have is theirs");
        }
    }
}
