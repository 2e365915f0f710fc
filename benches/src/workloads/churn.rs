//! Fragmentation: how much of 8 MiB is in objects of 16 to 512 bytes when the first is refused, at first and after
//! every object was replaced many times.

use core::alloc::Layout;
use core::cell::RefCell;
use core::mem::MaybeUninit;
use core::ptr::NonNull;

use rlsf::Tlsf as Rlsf;
use talc::DefaultBinning;
use talc::base::Talc;
use talc::source::Manual;
use tripoint::{
    ClientArena, ClientArenaOptions, ManualPool, Mvff, MvffOptions, Mvt, MvtOptions, Tlsf, TlsfOptions,
};

use crate::random::Random;
use crate::table::Table;

const MEMORY: usize = 8 << 20;

/// A contender, which refuses when its memory is used up.
trait Heap {
    fn alloc(&self, layout: Layout) -> Option<NonNull<u8>>;
    /// Frees what it allocated, once.
    fn free(&self, object: NonNull<u8>, layout: Layout);
}

struct Pool<P>(P);

impl<P: ManualPool> Heap for Pool<P> {
    fn alloc(&self, layout: Layout) -> Option<NonNull<u8>> {
        self.0.alloc(layout).ok()
    }

    fn free(&self, object: NonNull<u8>, layout: Layout) {
        // SAFETY: allocated here with this layout, freed once.
        unsafe { self.0.free(object, layout) };
    }
}

impl Heap for RefCell<Rlsf<'_, u32, u32, 24, 32>> {
    fn alloc(&self, layout: Layout) -> Option<NonNull<u8>> {
        self.borrow_mut().allocate(layout)
    }

    fn free(&self, object: NonNull<u8>, layout: Layout) {
        // SAFETY: allocated here with this layout, freed once.
        unsafe { self.borrow_mut().deallocate(object, layout.align()) };
    }
}

impl Heap for RefCell<Talc<Manual, DefaultBinning>> {
    fn alloc(&self, layout: Layout) -> Option<NonNull<u8>> {
        // SAFETY: no layout here has size zero.
        unsafe { self.borrow_mut().allocate(layout) }
    }

    fn free(&self, object: NonNull<u8>, layout: Layout) {
        // SAFETY: allocated here with this layout, freed once.
        unsafe { self.borrow_mut().deallocate(object.as_ptr(), layout) };
    }
}

/// Allocates until it is refused, and returns the share of the memory that is in objects; then frees a tenth at random and
/// allocates again, that many times, and returns the share after the last.
fn shares(heap: &impl Heap, churns: usize) -> [Option<f64>; 2] {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let mut objects: Vec<(NonNull<u8>, Layout)> = Vec::new();
    let mut live = 0;
    let fill = |objects: &mut Vec<(NonNull<u8>, Layout)>, live: &mut usize, random: &mut Random| loop {
        let layout = Layout::from_size_align(16 + 8 * random.below(63), 8).expect("a small size");
        let Some(object) = heap.alloc(layout) else { break };
        *live += layout.size();
        objects.push((object, layout));
    };
    fill(&mut objects, &mut live, &mut random);
    let first = live as f64 / MEMORY as f64;
    for _ in 0..churns {
        for _ in 0..objects.len() / 10 {
            let (object, layout) = objects.swap_remove(random.below(objects.len()));
            heap.free(object, layout);
            live -= layout.size();
        }
        fill(&mut objects, &mut live, &mut random);
    }
    [Some(live as f64 / MEMORY as f64), Some(first)]
}

pub(super) fn measure(quick: bool) -> Vec<Table> {
    let churns = if quick { 2 } else { 200 };
    let title = "share of 8 MiB in objects of 16 to 512 bytes when one is refused";
    let mut table = Table::new(title, &["after replacing", "at first"]);
    let mut memory: Vec<MaybeUninit<u8>> = vec![MaybeUninit::uninit(); MEMORY];
    macro_rules! pool {
        ($name:literal, $arena:ident, $pool:expr) => {{
            let options = ClientArenaOptions { grain: Some(4096), ..ClientArenaOptions::default() };
            let $arena = ClientArena::create(&mut memory, options).expect("an arena");
            table.add($name, &shares(&Pool($pool.expect("a pool")), churns));
        }};
    }
    pool!("Mvff", arena, Mvff::create(&arena, MvffOptions::default()));
    pool!("Tlsf", arena, Tlsf::create(&arena, TlsfOptions::default()));
    pool!("Mvt", arena, Mvt::create(&arena, MvtOptions::default()));
    {
        let mut peer: Rlsf<'_, u32, u32, 24, 32> = Rlsf::new();
        peer.insert_free_block(&mut memory);
        table.add("rlsf", &shares(&RefCell::new(peer), churns));
    }
    let mut peer = Talc::new(Manual);
    // SAFETY: the memory is used by nothing else, and outlives the peer.
    unsafe { peer.claim(memory.as_mut_ptr().cast(), MEMORY) }.expect("memory");
    table.add("talc", &shares(&RefCell::new(peer), churns));
    vec![table]
}
