//! Homes that are asked for, and books in them.

use core::fmt::Display;

use tripoint::points::Control;
use tripoint::{AllocationPoint, ArenaVm, BufferKind, Mfs, Store};

use crate::book::{Books, Level, Order, Plan};
use crate::places::hand::{Hand, Index, Slots};
use crate::places::heap::{Global, Heap, Heaps};
use crate::places::point::{Pointed, Points};
use crate::places::stored::{OwnedPools, Pointer, Pools, Stored, Units, options_for, unit_of};
use crate::places::{Home, Places};

/// What is done with books, wherever their orders live.
pub trait Visitor {
    /// What comes of it.
    type Out;

    /// Works with empty books: one set for each plan that was asked for.
    fn visit<P: Places>(self, books: [Books<P>; 2]) -> Self::Out;
}

/// A home of orders and one of levels, and how many of them there is memory for.
pub struct HomeOf<P: Places> {
    pub orders: P::Orders,
    pub levels: P::Levels,
    pub plan: Plan,
}

/// What is done with homes.
pub trait HomeVisitor {
    /// What comes of it.
    type Out;

    /// Works with empty homes: one for each plan that was asked for.
    fn visit<P: Places>(self, homes: [HomeOf<P>; 2]) -> Self::Out;
}

/// Makes books, for a visitor that wants them.
struct MakeBooks<V>(V);

impl<V: Visitor> HomeVisitor for MakeBooks<V> {
    type Out = V::Out;

    fn visit<P: Places>(self, homes: [HomeOf<P>; 2]) -> V::Out {
        self.0.visit(homes.map(|home| Books::<P>::new(home.orders, home.levels, home.plan)))
    }
}

/// What the two types of objects are in homes whose names are pointers.
pub type PointedOrder = Order<Pointer>;
pub type PointedLevel = Level<Pointer>;

/// Makes books in a home, whose memory is taken now as far as that is possible, and lets the visitor work with them.
///
/// # Errors
/// If there is too little memory.
pub fn with_books<V: Visitor>(
    home: Home,
    arena: &ArenaVm,
    plans: [Plan; 2],
    visitor: V,
) -> Result<V::Out, String> {
    with_homes(home, arena, plans, MakeBooks(visitor))
}

/// Makes homes, whose memory is taken now as far as that is possible, and lets the visitor work with them.
///
/// # Errors
/// If there is too little memory.
pub fn with_homes<V: HomeVisitor>(
    home: Home,
    arena: &ArenaVm,
    plans: [Plan; 2],
    visitor: V,
) -> Result<V::Out, String> {
    match home {
        Home::Pools => {
            let pools = [pools_for(arena, plans[0])?, pools_for(arena, plans[1])?];
            let caches = pools.each_ref().map(|[orders, levels]| [orders.cache(), levels.cache()]);
            let made = |at: usize| {
                let [orders, levels] = &caches[at];
                warm::<PointedOrder, _>(orders)?;
                warm::<PointedLevel, _>(levels)?;
                let (orders, levels) = (Stored::new(orders), Stored::new(levels));
                Ok::<_, String>(HomeOf::<Pools<'_>> { orders, levels, plan: plans[at] })
            };
            Ok(visitor.visit([made(0)?, made(1)?]))
        }
        Home::Point if point_log::is_on() => on_points(arena, plans, point_log::logger, visitor),
        Home::Point => on_points(arena, plans, || (), visitor),
        Home::Owned => {
            let pool = |plan: Plan| {
                let orders = Mfs::create_owned(
                    arena,
                    unit_of::<PointedOrder>().map_err(text)?,
                    options_for::<PointedOrder>(plan.orders),
                );
                let levels = Mfs::create_owned(
                    arena,
                    unit_of::<PointedLevel>().map_err(text)?,
                    options_for::<PointedLevel>(plan.level_room()),
                );
                Ok::<_, String>([orders.map_err(text)?, levels.map_err(text)?])
            };
            let pools = [pool(plans[0])?, pool(plans[1])?];
            let made = |at: usize| {
                let [orders, levels] = &pools[at];
                warm::<PointedOrder, _>(orders)?;
                warm::<PointedLevel, _>(levels)?;
                let (orders, levels) = (Stored::new(orders), Stored::new(levels));
                Ok::<_, String>(HomeOf::<OwnedPools<'_>> { orders, levels, plan: plans[at] })
            };
            Ok(visitor.visit([made(0)?, made(1)?]))
        }
        Home::Hand => Ok(visitor.visit(plans.map(|plan| {
            let (orders, levels) = (Slots::touched(plan.orders), Slots::touched(plan.level_room()));
            HomeOf::<Hand> { orders, levels, plan }
        }))),
        Home::System => Ok(on_heap(plans, || Global, visitor)),
        #[cfg(feature = "slab")]
        Home::Slab => Ok(visitor.visit(plans.map(|plan| {
            use crate::places::keyed::{Keyed, Slabs};
            let (orders, levels) = (Keyed::new(plan.orders), Keyed::new(plan.level_room()));
            HomeOf::<Slabs> { orders, levels, plan }
        }))),
        #[cfg(feature = "mimalloc")]
        Home::Mimalloc => Ok(on_heap(plans, || mimalloc::MiMalloc, visitor)),
        #[cfg(feature = "jemalloc")]
        Home::Jemalloc => Ok(on_heap(plans, || tikv_jemallocator::Jemalloc, visitor)),
        #[cfg(feature = "snmalloc")]
        Home::Snmalloc => Ok(on_heap(plans, || snmalloc_rs::SnMalloc, visitor)),
    }
}

/// Works with homes on points that have controls. Pools are made and dropped in the order of the log, if there is one:
/// another thread may use the arena.
fn on_points<C: Control, V: HomeVisitor>(
    arena: &ArenaVm,
    plans: [Plan; 2],
    control: impl Fn() -> C,
    visitor: V,
) -> Result<V::Out, String> {
    let pools = point_log::call(|| {
        let [first, second] = plans.map(|plan| pools_for(arena, plan));
        Ok::<_, String>([first?, second?])
    })?;
    let point = |pool| AllocationPoint::create_with(pool, BufferKind::Mutator, control()).map_err(text);
    let made = |at: usize| {
        let [orders, levels] = &pools[at];
        let homes = (Pointed::new(point(orders)?), Pointed::new(point(levels)?));
        warm::<PointedOrder, _>(&point_log::store(orders))?;
        warm::<PointedLevel, _>(&point_log::store(levels))?;
        Ok::<_, String>(HomeOf::<Points<'_, C>> { orders: homes.0, levels: homes.1, plan: plans[at] })
    };
    let out = visitor.visit([made(0)?, made(1)?]);
    point_log::call(|| drop(pools));
    Ok(out)
}

fn on_heap<A: core::alloc::GlobalAlloc, V: HomeVisitor>(
    plans: [Plan; 2],
    allocator: fn() -> A,
    visitor: V,
) -> V::Out {
    visitor.visit(plans.map(|plan| {
        let (orders, levels) = (Heap::new(allocator()), Heap::new(allocator()));
        HomeOf::<Heaps<A>> { orders, levels, plan }
    }))
}

/// Pools for the orders and levels of a plan, which take all their memory at the first of each.
///
/// # Errors
/// If the arena has no memory for their descriptors.
pub fn pools_for(arena: &ArenaVm, plan: Plan) -> Result<[Units<'_>; 2], String> {
    let orders = Mfs::create(
        arena,
        unit_of::<PointedOrder>().map_err(text)?,
        options_for::<PointedOrder>(plan.orders + IN_HAND),
    );
    let levels = Mfs::create(
        arena,
        unit_of::<PointedLevel>().map_err(text)?,
        options_for::<PointedLevel>(plan.level_room() + IN_HAND),
    );
    Ok([orders.map_err(text)?, levels.map_err(text)?])
}

/// Units that a cache or a point may have in hand beside those in use: two fills.
const IN_HAND: usize = 4_096;

/// Has the pool take its memory: one object, which is freed again.
///
/// # Errors
/// If the arena has no memory for it.
pub fn warm<T, S: Store>(store: &S) -> Result<(), String> {
    let layout = core::alloc::Layout::new::<T>();
    let object = store.alloc(layout).map_err(text)?;
    // SAFETY: it was just allocated by this store, with this layout, and is not used.
    unsafe { store.free(object, layout) };
    Ok(())
}

fn text(error: impl Display) -> String {
    error.to_string()
}

/// Names of orders in arrays, for those that write tests.
pub type HandBooks = Books<Hand>;

/// Books in arrays.
pub fn by_hand(plan: Plan) -> HandBooks {
    let (orders, levels) = (Slots::<Order<Index>>::touched(plan.orders), Slots::touched(plan.level_room()));
    Books::new(orders, levels, plan)
}
