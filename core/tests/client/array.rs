//! Random steps, compared with a plain array of owners.

use core::alloc::Layout;
use core::mem::MaybeUninit;
use core::ptr::NonNull;

use proptest::prelude::*;
use tripoint_core::internal::Tract;
use tripoint_core::{Addr, Arena, Block, Check, CheckLevel, ClientArena, ClientArenaOptions, Error, PoolId};
use tripoint_oracle::{cases, effort};

use crate::{mark, mark_of, memory, verify};

/// The largest random arena, in bytes. Miri walks the whole table whenever it is lent.
const SIZE_MAX: usize = if cfg!(miri) { 50_000 } else { 200_000 };
/// The smallest grain of random arenas, in bytes.
const GRAIN_MIN: usize = if cfg!(miri) { 256 } else { 64 };

#[derive(Clone, Debug)]
enum Step {
    Register,
    Unregister(prop::sample::Index),
    Alloc(prop::sample::Index, usize),
    /// A block, and a part of it.
    Free(prop::sample::Index, prop::sample::Index, prop::sample::Index),
    AllocControl(usize),
    FreeControl(prop::sample::Index),
    Freeze(bool),
}

fn step() -> impl Strategy<Value = Step> {
    use prop::sample::Index;
    let size = prop_oneof![4 => 1..3000usize, 1 => 1..40_000usize];
    prop_oneof![
        2 => Just(Step::Register),
        1 => any::<Index>().prop_map(Step::Unregister),
        8 => (any::<Index>(), size).prop_map(|(pool, size)| Step::Alloc(pool, size)),
        6 => any::<(Index, Index, Index)>().prop_map(|(block, from, count)| Step::Free(block, from, count)),
        3 => (1..=512usize).prop_map(Step::AllocControl),
        2 => any::<Index>().prop_map(Step::FreeControl),
        1 => any::<bool>().prop_map(Step::Freeze),
    ]
}

/// The arena, and the owner of each grain.
struct Oracle<'m> {
    arena: ClientArena<'m>,
    first_grain: Addr,
    owners: Vec<Option<PoolId>>,
    pools: Vec<PoolId>,
    blocks: Vec<(Block, PoolId)>,
    descriptors: Vec<(NonNull<u8>, Layout, u8)>,
    before_grains: usize,
}

impl<'m> Oracle<'m> {
    fn new(memory: &'m mut [MaybeUninit<u8>], options: ClientArenaOptions<'m>) -> Self {
        let arena = ClientArena::create(memory, options).unwrap();
        let sizes = arena.sizes();
        let first_grain = Addr::new(arena.range().limit().get() - sizes.spare);
        Self {
            first_grain,
            owners: vec![None; sizes.spare / arena.grain()],
            pools: Vec::new(),
            blocks: Vec::new(),
            descriptors: Vec::new(),
            before_grains: sizes.own,
            arena,
        }
    }

    /// The owners of the grains of a block, which must be whole grains.
    fn grains(&mut self, block: Block) -> &mut [Option<PoolId>] {
        let grain = self.arena.grain();
        let offset = block.range().base().get() - self.first_grain.get();
        assert!(offset.is_multiple_of(grain) && block.size().is_multiple_of(grain));
        assert!(block.range().base().get().is_multiple_of(grain));
        assert!(self.arena.range().covers(block.range()));
        &mut self.owners[offset / grain..][..block.size() / grain]
    }

    fn longest_free(&self) -> usize {
        self.owners.split(Option::is_some).map(<[_]>::len).max().unwrap_or(0)
    }

    fn alloc(&mut self, pool: PoolId, size: usize) {
        let count = size.div_ceil(self.arena.grain());
        let fits = self.longest_free() >= count;
        match self.arena.alloc_tracts(size, pool) {
            Ok(block) => {
                assert!(fits);
                assert_eq!(block.size(), count * self.arena.grain());
                for owner in self.grains(block) {
                    assert_eq!(owner.replace(pool), None);
                }
                mark(block, mark_of(pool));
                self.blocks.push((block, pool));
            }
            Err(error) => {
                assert_eq!(error, Error::Limit);
                assert!(!fits);
            }
        }
    }

    fn free_part(
        &mut self,
        block: prop::sample::Index,
        from: prop::sample::Index,
        count: prop::sample::Index,
    ) {
        if self.blocks.is_empty() {
            return;
        }
        let (block, pool) = self.blocks.swap_remove(block.index(self.blocks.len()));
        verify(block, mark_of(pool));
        let (grain, grains) = (self.arena.grain(), block.size() / self.arena.grain());
        let skip = from.index(grains);
        let count = 1 + count.index(grains - skip);
        let (before, rest) = block.split_at(skip * grain).unwrap();
        let (part, after) = rest.split_at(count * grain).unwrap();
        let kept = [before, after].into_iter().filter(|block| block.size() > 0);
        self.blocks.extend(kept.map(|block| (block, pool)));
        for owner in self.grains(part) {
            assert_eq!(owner.take(), Some(pool));
        }
        // SAFETY: whole grains from `alloc_tracts` for this pool, not used again.
        unsafe { self.arena.free_tracts(part, pool) };
    }

    fn unregister(&mut self, pool: prop::sample::Index) {
        if self.pools.is_empty() {
            return;
        }
        let pool = self.pools.swap_remove(pool.index(self.pools.len()));
        for owner in self.owners.iter_mut().filter(|owner| **owner == Some(pool)) {
            *owner = None;
        }
        self.blocks.retain(|&(block, owner)| {
            verify(block, mark_of(owner));
            owner != pool
        });
        // SAFETY: registered, dismissed once; its blocks were forgotten above.
        unsafe { self.arena.unregister(pool) };
    }

    fn alloc_descriptor(&mut self, size: usize) {
        let layout = Layout::from_size_align(size, 64).unwrap();
        let fits = self.longest_free() >= size.next_multiple_of(64).div_ceil(self.arena.grain());
        match self.arena.alloc_descriptor(layout) {
            Ok(descriptor) => {
                let value = self.descriptors.len().to_le_bytes()[0];
                // SAFETY: the arena returned `size` bytes, which stay valid until they are freed.
                mark(unsafe { Block::new(descriptor, size) }, value);
                assert!(descriptor.addr().get().is_multiple_of(64));
                self.descriptors.push((descriptor, layout, value));
            }
            Err(error) => {
                assert_eq!(error, Error::Limit);
                assert!(!fits);
            }
        }
        self.find_descriptor_grains();
    }

    /// Notes which free grains went to the arena itself.
    fn find_descriptor_grains(&mut self) {
        for (index, owner) in self.owners.iter_mut().enumerate() {
            let addr = Addr::new(self.first_grain.get() + index * self.arena.grain());
            if self.arena.pool_of(addr) == Some(PoolId::ARENA) {
                assert!(owner.is_none() || *owner == Some(PoolId::ARENA));
                *owner = Some(PoolId::ARENA);
            }
        }
    }

    fn free_descriptor(&mut self, index: prop::sample::Index) {
        if self.descriptors.is_empty() {
            return;
        }
        let (descriptor, layout, value) = self.descriptors.swap_remove(index.index(self.descriptors.len()));
        // SAFETY: the arena returned that many bytes for this layout, which stay valid until they are freed.
        verify(unsafe { Block::new(descriptor, layout.size()) }, value);
        // SAFETY: from `alloc_descriptor` with this layout, freed once, not used again.
        unsafe { self.arena.free_descriptor(descriptor, layout) };
    }

    fn apply(&mut self, step: Step) {
        match step {
            Step::Register => {
                let pool = self.arena.register().unwrap();
                assert!(pool > PoolId::ARENA && !self.pools.contains(&pool));
                self.pools.push(pool);
            }
            Step::Unregister(pool) => self.unregister(pool),
            Step::Alloc(pool, size) if !self.pools.is_empty() => {
                self.alloc(self.pools[pool.index(self.pools.len())], size);
            }
            Step::Alloc(..) => {}
            Step::Free(block, from, count) => self.free_part(block, from, count),
            Step::AllocControl(size) => self.alloc_descriptor(size),
            Step::FreeControl(index) => self.free_descriptor(index),
            Step::Freeze(true) => self.arena.freeze(),
            Step::Freeze(false) => self.arena.thaw(),
        }
    }

    fn compare(&self) {
        self.arena.check(CheckLevel::Deep).unwrap();
        let (grain, sizes, range) = (self.arena.grain(), self.arena.sizes(), self.arena.range());
        for (index, &owner) in self.owners.iter().enumerate() {
            let first = self.first_grain.get() + index * grain;
            assert_eq!(self.arena.pool_of(Addr::new(first)), owner);
            assert_eq!(self.arena.pool_of(Addr::new(first + grain - 1)), owner);
        }
        let outside = [range.base().get() - 1, range.limit().get(), 0, usize::MAX];
        assert!(outside.iter().all(|&addr| self.arena.pool_of(Addr::new(addr)).is_none()));
        assert_eq!(self.arena.pool_of(range.base()), None);
        let count = |wanted| self.owners.iter().filter(|owner| **owner == wanted).count() * grain;
        let pools: usize = self.pools.iter().map(|&pool| count(Some(pool))).sum();
        assert_eq!(sizes.reserved, range.size());
        assert_eq!(sizes.committed, sizes.reserved);
        assert_eq!(sizes.committed_high_water, sizes.reserved);
        assert_eq!(sizes.commit_limit, sizes.reserved);
        assert_eq!(sizes.spare, count(None));
        assert_eq!(sizes.own, self.before_grains + count(Some(PoolId::ARENA)));
        assert_eq!(sizes.spare + sizes.own + pools, sizes.committed);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases(96)))]

    #[test]
    fn agrees_with_an_array(
        steps in prop::collection::vec(step(), 1..effort(100) as usize),
        size in 8000..SIZE_MAX / 5,
        skip in 0..1100usize,
        grain in prop_oneof![Just(None), Just(Some(GRAIN_MIN)), Just(Some(512)), Just(Some(2048))],
    ) {
        let mut memory = memory(size);
        let options = ClientArenaOptions { grain, ..ClientArenaOptions::default() };
        let mut oracle = Oracle::new(&mut memory[skip..], options);
        for step in steps {
            oracle.apply(step);
            oracle.compare();
        }
        for &(block, pool) in &oracle.blocks {
            verify(block, mark_of(pool));
        }
        prop_assert_eq!(oracle.arena.counts().growth.get(), 0);
        prop_assert_eq!(oracle.arena.counts().growth_refused.get(), 0);
    }

    #[test]
    fn any_memory_makes_a_whole_arena_or_a_sentence(
        size in prop_oneof![0..1500usize, 0..SIZE_MAX],
        skip in 0..300usize,
        grain in prop_oneof![Just(None), (6..18u32).prop_map(|shift| Some(1usize << shift))],
    ) {
        let mut memory = memory(skip + size);
        let memory = &mut memory[skip..];
        let bounds = Addr::of(memory.as_ptr()).get()..Addr::of(memory.as_ptr()).get() + size;
        match ClientArena::create(memory, ClientArenaOptions { grain, ..ClientArenaOptions::default() }) {
            Ok(arena) => {
                arena.check(CheckLevel::Deep).unwrap();
                let (range, sizes) = (arena.range(), arena.sizes());
                prop_assert!(bounds.start <= range.base().get() && range.limit().get() <= bounds.end);
                let grains = sizes.spare / arena.grain();
                prop_assert!(grains >= 1);
                prop_assert_eq!(arena.bootstrap_size(), size_of_val(&arena) + grains * size_of::<Tract>());
                // What no grain could use is lost at either end, and no more.
                let lost = size - sizes.spare - grains * size_of::<Tract>();
                prop_assert!(lost < 3 * (arena.grain() + size_of::<Tract>()));
                let all = arena.alloc_tracts(sizes.spare, arena.register().unwrap()).unwrap();
                mark(all, 7);
                arena.check(CheckLevel::Deep).unwrap();
            }
            Err(error) => {
                prop_assert!(matches!(error, Error::Parameter(_)));
                let grain = grain.unwrap_or(256);
                prop_assert!(size < 3 * (grain + size_of::<Tract>()));
            }
        }
    }
}
