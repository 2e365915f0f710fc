//! The client arena against a plain array of owners.
//! (design/arena.md `.req.own`, `.req.exact`, `.req.part`, `.req.bare`.)
#![cfg(not(tripoint_loom))]

use core::alloc::Layout;
use core::mem::MaybeUninit;
use core::ptr::NonNull;

use proptest::prelude::*;
use tripoint_core::internal::{AtomicU32, Ordering, Tract};
use tripoint_core::{
    Addr, Arena, Block, Check, CheckLevel, ClientArena, ClientArenaOptions, Describe, Error, Event,
    EventHook, PoolId,
};
use tripoint_oracle::{all_are, effort};

/// The largest random arena, in bytes. Miri walks the whole table whenever it is lent.
const SIZE_MAX: usize = if cfg!(miri) { 50_000 } else { 200_000 };
/// The smallest grain of random arenas, in bytes.
const GRAIN_MIN: usize = if cfg!(miri) { 256 } else { 64 };

fn memory(size: usize) -> Box<[MaybeUninit<u8>]> {
    Box::new_uninit_slice(size)
}

fn with_grain(grain: usize) -> ClientArenaOptions<'static> {
    ClientArenaOptions { grain: Some(grain), ..ClientArenaOptions::default() }
}

/// Marks every byte of a block.
fn mark(block: Block, value: u8) {
    // SAFETY: the test holds the block, which is valid for writes.
    unsafe { block.base().write_bytes(value, block.size()) };
}

/// Asserts that every byte of a marked block still has its mark.
fn verify(block: Block, value: u8) {
    // SAFETY: the test holds the block, and `mark` initialised it.
    let bytes = unsafe { core::slice::from_raw_parts(block.base().as_ptr(), block.size()) };
    assert!(all_are(bytes, value), "somebody else wrote to {block:?}");
}

/// A byte that is different for each pool.
fn mark_of(pool: PoolId) -> u8 {
    pool.get().to_le_bytes()[0]
}

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
                // SAFETY: the arena gave `size` bytes.
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
        // SAFETY: the arena gave that many bytes for this layout.
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
    #![proptest_config(ProptestConfig::with_cases(effort(96)))]

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

#[test]
fn grains_that_are_no_powers_of_two_are_refused() {
    for grain in [0, 1, 32, 63, 65, 96, 3000, usize::MAX] {
        let mut memory = memory(4096);
        let refused = ClientArena::create(&mut memory, with_grain(grain)).err();
        assert!(matches!(refused, Some(Error::Parameter(_))), "{grain}");
    }
    for grain in [4096, 1 << (usize::BITS - 1)] {
        let mut memory = memory(4096);
        let refused = ClientArena::create(&mut memory, with_grain(grain)).err();
        assert!(matches!(refused, Some(Error::Parameter(_))), "{grain}");
    }
}

#[test]
fn default_grains_are_a_64th_within_bounds() {
    for (size, grain) in [
        (4 << 10, 256),
        (64 << 10, 1 << 10),
        (1 << 20, 16 << 10),
        ((1 << 20) + 64, 32 << 10),
        (8 << 20, 64 << 10),
    ] {
        let mut memory = memory(size);
        let arena = ClientArena::create(&mut memory, ClientArenaOptions::default()).unwrap();
        assert_eq!(arena.grain(), grain, "{size}");
    }
}

#[test]
fn bootstrap_takes_less_than_two_kilobytes() {
    for size in [4 << 10, 64 << 10, 1 << 20, 4 << 20] {
        let mut memory = memory(size);
        let arena = ClientArena::create(&mut memory, ClientArenaOptions::default()).unwrap();
        assert!(arena.bootstrap_size() < 2048, "{size}: {}", arena.bootstrap_size());
        assert!(arena.bootstrap_size() > size_of::<ClientArena<'_>>());
    }
}

#[test]
fn tracts_of_impossible_sizes_are_refused() {
    let mut memory = memory(64 << 10);
    let arena = ClientArena::create(&mut memory, ClientArenaOptions::default()).unwrap();
    let pool = arena.register().unwrap();
    for size in [0, isize::MAX.unsigned_abs() + 1, usize::MAX] {
        assert!(matches!(arena.alloc_tracts(size, pool), Err(Error::Parameter(_))), "{size}");
    }
    assert_eq!(arena.alloc_tracts(isize::MAX.unsigned_abs(), pool), Err(Error::Limit));
    assert_eq!(arena.alloc_tracts(64 << 10, pool), Err(Error::Limit));
    assert!(
        matches!(arena.alloc_tracts(1, PoolId::ARENA), Err(Error::Parameter(_))),
        "only the arena uses it"
    );
    let over_aligned = Layout::from_size_align(64, 128).unwrap();
    for layout in [Layout::new::<()>(), Layout::new::<[u8; 513]>(), over_aligned] {
        assert!(matches!(arena.alloc_descriptor(layout), Err(Error::Parameter(_))));
    }
    assert_eq!(arena.sizes().spare, arena.alloc_tracts(arena.sizes().spare, pool).unwrap().size());
}

#[test]
fn a_full_arena_says_limit_and_goes_on() {
    let mut memory = memory(16 << 10);
    let arena = ClientArena::create(&mut memory, with_grain(512)).unwrap();
    let pool = arena.register().unwrap();
    for frozen in [false, true] {
        if frozen {
            arena.freeze();
        }
        assert_eq!(arena.is_frozen(), frozen);
        let mut blocks = Vec::new();
        while let Ok(block) = arena.alloc_tracts(512, pool) {
            blocks.push(block);
        }
        assert_eq!(arena.sizes().spare, 0);
        assert_eq!(arena.alloc_tracts(1, pool), Err(Error::Limit));
        let descriptor = Layout::new::<[u64; 64]>();
        while arena.alloc_descriptor(descriptor).is_ok() {}
        assert_eq!(arena.alloc_descriptor(descriptor), Err(Error::Limit));
        arena.check(CheckLevel::Deep).unwrap();
        for block in blocks {
            // SAFETY: allocated above, freed once, never used.
            unsafe { arena.free_tracts(block, pool) };
        }
        assert!(arena.alloc_descriptor(descriptor).is_ok());
    }
    arena.thaw();
    assert!(!arena.is_frozen());
}

/// Allocates, verifies and frees, keeping every third block, until nothing fits.
fn use_arena(arena: &ClientArena<'_>) {
    let layout = Layout::new::<[u64; 24]>();
    let pool = arena.register().unwrap();
    for round in 0..effort(300) as usize {
        let Ok(block) = arena.alloc_tracts(1 + round * 37 % 9000, pool) else { break };
        mark(block, mark_of(pool));
        assert_eq!(arena.pool_of(block.range().base()), Some(pool));
        if let Ok(base) = arena.alloc_descriptor(layout) {
            // SAFETY: the arena gave that many bytes.
            let descriptor = unsafe { Block::new(base, layout.size()) };
            mark(descriptor, !mark_of(pool));
            std::thread::yield_now();
            verify(descriptor, !mark_of(pool));
            // SAFETY: from `alloc_descriptor` above, freed once.
            unsafe { arena.free_descriptor(base, layout) };
        }
        verify(block, mark_of(pool));
        if !round.is_multiple_of(3) {
            // SAFETY: from `alloc_tracts` above, freed once.
            unsafe { arena.free_tracts(block, pool) };
        }
    }
    // SAFETY: registered above, dismissed once, its memory unused.
    unsafe { arena.unregister(pool) };
}

#[test]
fn threads_share_an_arena() {
    let mut memory = memory(256 << 10);
    let arena = ClientArena::create(&mut memory, ClientArenaOptions::default()).unwrap();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| use_arena(&arena));
        }
    });
    arena.check(CheckLevel::Deep).unwrap();
    let sizes = arena.sizes();
    assert_eq!(sizes.spare + sizes.own, sizes.committed);
    // Each thread has one descriptor at a time, so the arena never needs more than
    // that.
    assert!(sizes.own <= arena.bootstrap_size() + 2 * arena.grain());
}

#[test]
fn an_arena_may_be_moved_and_lent_as_a_trait_object() {
    let mut memory = memory(64 << 10);
    let arena = ClientArena::create(&mut memory, ClientArenaOptions::default()).unwrap();
    let pool = arena.register().unwrap();
    let block = arena.alloc_tracts(100, pool).unwrap();
    mark(block, 0x5a);
    let moved = Box::new(arena);
    let lent: &dyn Arena = &*moved;
    assert!(lent.contains(block.range().base()));
    assert!(!lent.contains(lent.range().limit()));
    assert_eq!(lent.pool_of(block.range().base()), Some(pool));
    lent.check(CheckLevel::Deep).unwrap();
    verify(block, 0x5a);
}

#[test]
fn an_arena_may_be_static_and_sent() {
    static mut MEMORY: [MaybeUninit<u8>; 8 << 10] = [MaybeUninit::uninit(); 8 << 10];
    let memory = &raw mut MEMORY;
    // SAFETY: only the line above names MEMORY, and it runs once.
    let memory: &'static mut [MaybeUninit<u8>] = unsafe { &mut *memory };
    let arena: ClientArena<'static> = ClientArena::create(memory, ClientArenaOptions::default()).unwrap();
    let pool = arena.register().unwrap();
    let block = arena.alloc_tracts(100, pool).unwrap();
    let sent = std::thread::spawn(move || {
        // SAFETY: from `alloc_tracts` above, freed once.
        unsafe { arena.free_tracts(block, pool) };
        arena
    });
    let arena = sent.join().unwrap();
    arena.check(CheckLevel::Deep).unwrap();
    assert_eq!(arena.pool_of(block.range().base()), None);
}

#[test]
fn checks_find_a_damaged_table() {
    let mut memory = memory(64 << 10);
    let arena = ClientArena::create(&mut memory, ClientArenaOptions::default()).unwrap();
    let pool = arena.register().unwrap();
    let block = arena.alloc_tracts(3 * arena.grain(), pool).unwrap();
    let words = 4 * arena.sizes().spare / arena.grain();
    // A pointer with the arena's own provenance, to its table.
    let table = block.base().as_ptr().with_addr(arena.range().base().get()).cast::<AtomicU32>();
    let damage = |word: usize, bits: u32| {
        // SAFETY: the table has four atomic words for each grain, aligned.
        let word = unsafe { &*table.add(word) };
        word.fetch_xor(bits, Ordering::Relaxed);
        let found = arena.check(CheckLevel::Deep);
        word.fetch_xor(bits, Ordering::Relaxed);
        found
    };
    for grain in 0..words / 4 {
        assert!(damage(4 * grain, 1 << 25).is_err(), "state of grain {grain}");
    }
    assert!(damage(1 + 4 * 3, 1).is_err(), "length of the spare run");
    assert!(damage(3 + 4 * 3, 1).is_err(), "link of the spare run");
    assert!(damage(0, pool.get() ^ PoolId::ARENA.get()).is_err(), "a grain that became the arena's own");
    assert!(damage(0, 0).is_ok());
}

#[test]
fn describes_itself() {
    let mut memory = memory(64 << 10);
    let arena = ClientArena::create(&mut memory, with_grain(1024)).unwrap();
    arena.register().unwrap();
    arena.freeze();
    let (range, sizes) = (arena.range(), arena.sizes());
    let mut text = String::new();
    arena.describe(&mut text, 0).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let expected = [
        format!("client arena: {range}"),
        format!("  reserved: {} bytes", range.size()),
        format!("  spare: {} bytes", sizes.spare),
        format!("  tables and descriptors: {} bytes", sizes.own),
        "  grain: 1024 bytes".into(),
        "  frozen: true".into(),
        "  pools: 1".into(),
    ];
    assert_eq!(lines[..7], expected);
    assert!(
        lines[7].starts_with("  descriptors: ") && lines[7].ends_with(" bytes supplied, 0 in use"),
        "{text}"
    );
    let grains = sizes.spare / 1024;
    assert_eq!(lines[8], format!("  tracts: {grains} of {grains} grains used"));
    assert!(format!("{arena:?}").contains("ClientArena"));
    assert!(format!("{:?}", with_grain(64)).contains("64"));
}

#[test]
fn events_reach_the_hook() {
    let heard = CountEvents::default();
    let mut memory = memory(8 << 10);
    let options = ClientArenaOptions { event_hook: Some(&heard), ..ClientArenaOptions::default() };
    let arena = ClientArena::create(&mut memory, options).unwrap();
    arena.event(Event::Trip { pool: arena.register().unwrap() });
    assert_eq!(heard.0.load(Ordering::Relaxed), 1);
}

/// Uses an arena as pools do that hold it by value, and compares it with itself.
fn lend<A: Arena>(lent: A, arena: &ClientArena<'_>) {
    assert_eq!((lent.grain(), lent.range()), (arena.grain(), arena.range()));
    assert!(lent.contains(arena.range().base()) && !lent.contains(arena.range().limit()));
    let (first, second) = (lent.register().unwrap(), lent.register().unwrap());
    assert_eq!(second.get(), first.get() + 1);
    let block = lent.alloc_tracts(3 * arena.grain(), first).unwrap();
    let base = block.range().base();
    assert_eq!((lent.pool_of(base), arena.pool_of(base)), (Some(first), Some(first)));
    assert_eq!(
        (lent.next_tracts(first, Addr::ZERO), lent.next_tracts(second, Addr::ZERO)),
        (Some(block), None)
    );
    assert_eq!(lent.sizes(), arena.sizes());
    // SAFETY: allocated above, freed once, never used.
    unsafe { lent.free_tracts(block, first) };
    assert_eq!(arena.pool_of(base), None);
    let kept = lent.alloc_tracts(1, second).unwrap();
    let spare = arena.sizes().spare;
    // SAFETY: registered above, dismissed once; `kept` is not used.
    unsafe { lent.unregister(second) };
    assert_eq!(arena.sizes().spare, spare + kept.size());
    let layout = Layout::new::<[u64; 8]>();
    let descriptor = lent.alloc_descriptor(layout).unwrap();
    // SAFETY: from `alloc_descriptor` above, freed once.
    unsafe { lent.free_descriptor(descriptor, layout) };
    assert_eq!(lent.alloc_descriptor(layout), Ok(descriptor), "it was given back");
    assert!(core::ptr::eq(lent.counts(), arena.counts()));
    lent.freeze();
    assert!(lent.is_frozen() && arena.is_frozen());
    lent.thaw();
    assert!(!lent.is_frozen() && !arena.is_frozen());
    assert_eq!(lent.event_hook().is_some(), arena.event_hook().is_some());
    lent.event(Event::Trip { pool: first });
    let (mut text, mut expected) = (String::new(), String::new());
    lent.describe(&mut text, 1).unwrap();
    arena.describe(&mut expected, 1).unwrap();
    assert_eq!(text, expected);
    assert_eq!(lent.check(CheckLevel::Deep), Ok(()));
}

#[test]
fn a_lent_arena_is_the_arena() {
    let heard = CountEvents::default();
    let mut memory = memory(16 << 10);
    let options = ClientArenaOptions { event_hook: Some(&heard), ..ClientArenaOptions::default() };
    let arena = ClientArena::create(&mut memory, options).unwrap();
    lend(&arena, &arena);
    let object: &dyn Arena = &arena;
    lend(object, &arena);
    assert_eq!(heard.0.load(Ordering::Relaxed), 2);
}

#[test]
fn a_lent_arena_that_is_damaged_says_so() {
    fn check<C: Check>(lent: C) -> bool {
        lent.check(CheckLevel::Deep).is_ok()
    }
    let mut memory = memory(16 << 10);
    let arena = ClientArena::create(&mut memory, ClientArenaOptions::default()).unwrap();
    let block = arena.alloc_tracts(1, arena.register().unwrap()).unwrap();
    assert!(check(&arena));
    // A pointer with the arena's own provenance, to the first word of its table.
    let table = block.base().as_ptr().with_addr(arena.range().base().get()).cast::<AtomicU32>();
    // SAFETY: the table begins with an atomic word.
    unsafe { &*table }.fetch_xor(1 << 25, Ordering::Relaxed);
    assert!(!check(&arena));
}

#[derive(Default)]
struct CountEvents(AtomicU32);

impl EventHook for CountEvents {
    fn event(&self, event: Event) {
        assert!(matches!(event, Event::Trip { .. }));
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// A check on an arena's address finds that the arena has ended.
#[test]
fn an_arena_that_is_gone_has_no_signature() {
    let mut memory = memory(16 << 10);
    let arena = ClientArena::create(&mut memory, ClientArenaOptions::default()).unwrap();
    let mut arena = core::mem::ManuallyDrop::new(arena);
    assert_eq!(arena.check(CheckLevel::Cheap), Ok(()));
    // SAFETY: dropped once. What is read of it after are plain words, which stay.
    unsafe { core::mem::ManuallyDrop::drop(&mut arena) };
    assert!(arena.check(CheckLevel::Cheap).is_err());
}
