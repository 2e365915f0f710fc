//! The arena against a naive model, on each platform.

use proptest::prelude::*;

use tripoint_arena_vm::{ArenaVm, ArenaVmOptions, Prefault};
use tripoint_core::{Arena, Block, Error, PoolId};
use tripoint_oracle::cases;

use crate::common::{GRAIN, assert_books, holds, on_each, small, write};

#[derive(Clone, Debug)]
enum Step {
    Alloc { grains: usize, pool: usize },
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
        6 => any::<usize>().prop_map(|which| Step::Free { which }),
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
                assert!(self.out.iter().all(|(other, ..)| !other.range().overlaps(block.range())));
                self.next_byte = self.next_byte.wrapping_add(1);
                write(block, self.next_byte);
                self.out.push((block, pool, self.next_byte));
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

    /// Frees a block, or its front half, or its back half.
    fn free(&mut self, which: usize, half: Option<bool>) {
        if self.out.is_empty() {
            return;
        }
        let at = which % self.out.len();
        let (block, pool, byte) = self.out.swap_remove(at);
        assert!(holds(block, byte));
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
                match *step {
                    Step::Alloc { grains, pool } => model.alloc(grains, model.pools[pool]),
                    Step::Free { which } => model.free(which, None),
                    Step::FreePart { which, front } => model.free(which, Some(front)),
                    Step::Dismiss { pool } => model.dismiss(pool),
                    Step::Trim => _ = arena.trim(),
                    Step::Freeze => arena.freeze(),
                    Step::Thaw => arena.thaw(),
                    Step::SetLimit { grains } => _ = arena.set_commit_limit(grains * GRAIN),
                }
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
}
