//! Objects freed through allocation points, and blocks that wait in their buffers (design/ap.md `.free`, design/pool-mfs.md
//! `.mfs.freed`, design/pool-mvff.md `.mvff.freed`, `.mvff.waiting`).

use core::alloc::Layout;
use core::ptr::NonNull;
use std::collections::BTreeMap;

use crate::common::{arena, effort, layout, memory};
use proptest::prelude::*;
use tripoint_ap::AllocationPoint;
use tripoint_core::{Addr, Arena, Check, CheckLevel, ManualPool, PoolBox};
use tripoint_pools::{Mfs, MfsOptions, Mvff, MvffOptions, Tlsf, TlsfOptions, UnitOf};

/// What happens to two allocation points of a pool, and to the pool.
#[derive(Clone, Copy, Debug)]
enum Step {
    Reserve { point: usize, layout: usize },
    Box { point: usize, layout: usize },
    Free { point: usize, object: usize },
    FreeInPool { object: usize },
    Trip { point: usize },
    Empty { point: usize },
    Renew { point: usize },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let (point, any) = (0..2_usize, any::<usize>());
    let step = prop_oneof![
        2 => (point.clone(), any).prop_map(|(point, layout)| Step::Reserve { point, layout }),
        6 => (point.clone(), any).prop_map(|(point, layout)| Step::Box { point, layout }),
        6 => (point.clone(), any).prop_map(|(point, object)| Step::Free { point, object }),
        3 => any.prop_map(|object| Step::FreeInPool { object }),
        1 => point.clone().prop_map(|point| Step::Trip { point }),
        1 => point.clone().prop_map(|point| Step::Empty { point }),
        1 => point.prop_map(|point| Step::Renew { point }),
    ];
    // Runs of the same step, so that fills are used up and many blocks are kept.
    prop::collection::vec((step, 1..40_usize), 1..effort(40) as usize).prop_map(|steps| {
        steps.into_iter().flat_map(|(step, times)| core::iter::repeat_n(step, times)).collect()
    })
}

/// The objects that live, by address: a naive account.
#[derive(Default)]
struct Live(BTreeMap<usize, (NonNull<u8>, Layout, u8)>);

impl Live {
    fn add(&mut self, pool: &impl ManualPool, object: NonNull<u8>, layout: Layout) {
        let (base, tag) = (object.addr().get(), self.0.len() as u8);
        assert!(base.is_multiple_of(layout.align()));
        assert_eq!(pool.header().arena().pool_of(Addr::new(base)), Some(pool.header().id()));
        let before =
            self.0.range(..=base).next_back().map_or(0, |(base, (_, layout, _))| base + layout.size());
        let after = self.0.range(base..).next().map_or(usize::MAX, |(&base, _)| base);
        assert!(before <= base && base + layout.size() <= after, "an object overlaps another");
        // SAFETY: just allocated, with this layout.
        unsafe { object.write_bytes(tag, layout.size()) };
        self.0.insert(base, (object, layout, tag));
    }

    /// Takes an object out, which still has what was written into it.
    fn take(&mut self, which: usize) -> Option<(NonNull<u8>, Layout)> {
        let which = *self.0.keys().nth(which % self.0.len().max(1))?;
        let (object, layout, tag) = self.0.remove(&which)?;
        // SAFETY: allocated with this layout, written whole, and not freed.
        let bytes = unsafe { core::slice::from_raw_parts(object.as_ptr(), layout.size()) };
        assert!(bytes.iter().all(|&byte| byte == tag), "an object was written over");
        Some((object, layout))
    }
}

/// A box of an object of this layout, which is one of [`LAYOUTS`].
fn boxed<P: ManualPool>(point: &mut AllocationPoint<'_, P>, layout: Layout) -> Option<NonNull<u8>> {
    fn raw<T, P: ManualPool>(point: &mut AllocationPoint<'_, P>, value: T) -> Option<NonNull<u8>> {
        point.boxed(value).ok().map(|object| PoolBox::into_raw(object).cast())
    }
    match layout.size() {
        16 => raw(point, [0_u64; 2]),
        32 => raw(point, [0_u64; 4]),
        48 => raw(point, [0_u64; 6]),
        _ => raw(point, [0_u64; 40]),
    }
}

const LAYOUTS: [Layout; 4] = [layout(16, 8), layout(32, 8), layout(48, 8), layout(320, 8)];

/// Does the steps, and compares with the account. At the end everything is freed, and nothing may be lost.
fn live<P: ManualPool>(pool: &P, layouts: &[Layout], steps: &[Step]) {
    let counts = pool.header().arena().counts();
    let (mut live, mut trips) = (Live::default(), 0);
    let mut points = [(); 2].map(|()| AllocationPoint::create(pool).unwrap());
    for &step in steps {
        match step {
            Step::Reserve { point, layout } => {
                let layout = layouts[layout % layouts.len()];
                let Ok(reservation) = points[point].reserve(layout) else { continue };
                // SAFETY: the objects of a manual pool need no format.
                let object = unsafe { reservation.commit() }.unwrap();
                live.add(pool, object, layout);
            }
            Step::Box { point, layout } => {
                let layout = layouts[layout % layouts.len()];
                let Some(object) = boxed(&mut points[point], layout) else { continue };
                live.add(pool, object, layout);
            }
            Step::Free { point, object } => {
                let Some((object, layout)) = live.take(object) else { continue };
                // SAFETY: an object of the pool, of this layout, which the account has once.
                unsafe { points[point].free(object, layout) };
            }
            Step::FreeInPool { object } => {
                let Some((object, layout)) = live.take(object) else { continue };
                // SAFETY: an object of the pool, of this layout, which the account has once.
                unsafe { pool.free(object, layout) };
            }
            Step::Trip { point } => {
                points[point].tripper().trip();
                let layout = layouts[0];
                let before = counts.trips.get();
                let Some(object) = boxed(&mut points[point], layout) else { continue };
                live.add(pool, object, layout);
                // Each is observed by the next object, wherever its memory comes from.
                trips += 1;
                assert!(counts.trips.get() > before && counts.trips.get() >= trips);
            }
            Step::Empty { point } => points[point].empty(),
            Step::Renew { point } => points[point] = AllocationPoint::create(pool).unwrap(),
        }
        let buffered: u64 = points.iter().map(|point| point.room() as u64).sum();
        let [filled, emptied] = [counts.fill_mutator.get(), counts.empty_mutator.get()];
        assert!(filled - emptied >= buffered, "{filled} filled, {emptied} emptied, {buffered} in buffers");
    }
    for point in &mut points {
        pool.check(CheckLevel::Deep).unwrap();
        point.check(CheckLevel::Deep).unwrap();
        point.empty();
        assert_eq!(point.room(), 0);
    }
    // What was filled and not emptied was allocated.
    assert_eq!(counts.fill_mutator.get() - counts.empty_mutator.get(), counts.alloc_mutator.get());
    let used = |live: &Live| {
        live.0.values().map(|&(_, layout, _)| pool.reserve_size(layout).unwrap()).sum::<usize>()
    };
    let sizes = pool.sizes();
    assert_eq!(sizes.free + used(&live), sizes.total - slack(pool), "bytes are lost, or in two places");
    while let Some((object, layout)) = live.take(0) {
        // SAFETY: an object of the pool, of this layout, which the account has once.
        unsafe { pool.free(object, layout) };
    }
    let sizes = pool.sizes(); // a pool with `spare` has less now
    assert_eq!(sizes.free, sizes.total - slack(pool));
    let mut walked = 0;
    pool.walk_free(&mut |block| walked += block.size());
    assert_eq!(walked, pool.sizes().free);
    pool.check(CheckLevel::Deep).unwrap();
}

/// The bytes of the pool's extents that make no whole unit.
fn slack<P: ManualPool>(pool: &P) -> usize {
    if P::CLASS != "MFS" {
        return 0;
    }
    let unit = pool.reserve_size(LAYOUTS[0]).unwrap();
    let grains = pool.header().total() / crate::common::GRAIN;
    // Each extent is a grain here.
    grains * (crate::common::GRAIN % unit)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(crate::common::cases(64)))]

    #[test]
    #[cfg_attr(feature = "hardening", ignore = "counts bytes without what hardening takes")]
    fn units(steps in steps(), fill_size in prop::sample::select(vec![0, 320, 4096, 64 << 10])) {
        let mut memory = memory(24);
        let arena = arena(&mut memory);
        let options = MfsOptions { fill_size, extend_by: 0 };
        let pool = Mfs::create(&arena, UnitOf::<[u64; 4]>::new(), options).unwrap();
        live(&pool, &LAYOUTS[..2], &steps);
    }

    #[test]
    fn first_fit(steps in steps(), fill_size in prop::sample::select(vec![0, 320, 4096, 64 << 10]), bins in any::<bool>()) {
        let mut memory = memory(24);
        let arena = arena(&mut memory);
        let bin_blocks = if bins { 20 } else { 0 };
        let options = MvffOptions { fill_size, extend_by: 0, bin_blocks, ..MvffOptions::default() };
        live(&Mvff::create(&arena, options).unwrap(), &LAYOUTS, &steps);
    }

    #[test]
    fn good_fit(
        steps in steps(),
        fill_size in prop::sample::select(vec![0, 320, 4096, 64 << 10]),
        bins in any::<bool>(),
        spare in prop::sample::select(vec![0, 8192, usize::MAX]),
    ) {
        let mut memory = memory(24);
        let arena = arena(&mut memory);
        let options = TlsfOptions {
            fill_size,
            extend_by: 0,
            bin_blocks: if bins { 20 } else { 0 },
            spare,
        };
        live(&Tlsf::create(&arena, options).unwrap(), &LAYOUTS, &steps);
    }
}

/// Replaces objects through a point, and returns how often the point was filled meanwhile.
fn fills_of_replacing<P: ManualPool>(pool: &P, through_point: bool) -> u64 {
    let mut point = AllocationPoint::create(pool).unwrap();
    let mut ring: Vec<_> = (0..100_u64).map(|number| Some(point.boxed([number; 4]).unwrap())).collect();
    let fills = || pool.header().arena().counts().fills.get();
    let before = fills();
    for step in 0..effort(10_000) as usize {
        let object = ring[step * 37 % 100].take().unwrap();
        if through_point {
            point.free_box(object)
        } else {
            drop(object)
        }
        ring[step * 37 % 100] = Some(point.boxed([step as u64; 4]).unwrap());
    }
    fills() - before
}

/// An object that is freed through a point makes room for the next, without a fill.
#[test]
fn what_is_freed_through_a_point_is_allocated_there_again() {
    let mut memory = memory(64);
    let arena = arena(&mut memory);
    let mfs =
        Mfs::create(&arena, UnitOf::<[u64; 4]>::new(), MfsOptions { fill_size: 4096, extend_by: 0 }).unwrap();
    let mvff = Mvff::create(&arena, MvffOptions { fill_size: 4096, ..MvffOptions::default() }).unwrap();
    let tlsf = Tlsf::create(&arena, TlsfOptions { fill_size: 4096, ..TlsfOptions::default() }).unwrap();
    assert_eq!(fills_of_replacing(&mfs, true), 0);
    assert_eq!(fills_of_replacing(&mvff, true), 0);
    assert_eq!(fills_of_replacing(&tlsf, true), 0);
    // The control: what the pool gets back has to be filled again.
    assert!(fills_of_replacing(&mfs, false) >= u64::from(effort(10_000)) / 150);
}

/// An object of another pool goes home, and one that unwinds when it is dropped is freed.
#[test]
fn boxes_that_are_freed_through_a_point_are_dropped_once() {
    struct Counted<'c>(&'c core::cell::Cell<u32>, bool);
    impl Drop for Counted<'_> {
        fn drop(&mut self) {
            self.0.set(self.0.get() + 1);
            assert!(!self.1, "a drop that fails");
        }
    }
    let mut memory = memory(64);
    let arena = arena(&mut memory);
    let options = MvffOptions { fill_size: 1024, ..MvffOptions::default() };
    let [mine, other] = [(); 2].map(|()| Mvff::create(&arena, options).unwrap());
    let mut point = AllocationPoint::create(&mine).unwrap();
    let dropped = core::cell::Cell::new(0);
    let free = |pool: &Mvff<_>| tripoint_core::PoolClass::sizes(pool).free;
    let foreign = PoolBox::new_in(Counted(&dropped, false), &other).unwrap();
    let before = free(&other);
    point.free_box(foreign);
    assert_eq!((dropped.get(), free(&other) > before), (1, true));
    point.free_box(PoolBox::new_in((), &mine).unwrap());
    let failing = point.boxed(Counted(&dropped, true)).unwrap();
    let place = &raw const *failing;
    let failure = std::panic::catch_unwind(core::panic::AssertUnwindSafe(|| point.free_box(failing)));
    assert!(failure.is_err());
    assert_eq!(dropped.get(), 2);
    // Its memory is kept: it is the next object's, once the buffer is full.
    let objects: Vec<_> = (0..200).map_while(|_| point.boxed(Counted(&dropped, false)).ok()).collect();
    assert!(objects.iter().any(|object| core::ptr::eq(&raw const **object, place)));
}

/// (design/hardening.md `.mfs`)
#[cfg(feature = "hardening")]
mod hardened {
    use super::*;
    use tripoint_core::Error;

    /// Runs with three objects of a point whose buffer is full: the next can only be one that is freed.
    fn with_objects<P: ManualPool>(
        pool: &P,
        damage: impl FnOnce(&mut AllocationPoint<'_, P>, [NonNull<u8>; 3]),
    ) -> Option<Error> {
        let mut point = AllocationPoint::create(pool).unwrap();
        let mut object = || PoolBox::into_raw(point.boxed([7_u64; 3]).unwrap()).cast();
        let objects = [object(), object(), object()];
        damage(&mut point, objects);
        (0..10_000).find_map(|_| point.boxed([7_u64; 3]).map(PoolBox::into_raw).err())
    }

    fn free<P: ManualPool>(point: &mut AllocationPoint<'_, P>, object: NonNull<u8>) {
        // SAFETY: an object of the pool, of this layout. If it is freed twice the pool is disabled before it is used.
        unsafe { point.free(object, Layout::new::<[u64; 3]>()) };
    }

    fn is_found(damage: impl Fn(&mut dyn FnMut(usize), [NonNull<u8>; 3])) {
        let mut memory = memory(128);
        let arena = arena(&mut memory);
        let mfs = Mfs::create(&arena, UnitOf::<[u64; 3]>::new(), MfsOptions::default()).unwrap();
        let mvff = Mvff::create(&arena, MvffOptions::default()).unwrap();
        let tlsf = Tlsf::create(&arena, TlsfOptions::default()).unwrap();
        let of_mfs =
            with_objects(&mfs, |point, objects| damage(&mut |which| free(point, objects[which]), objects));
        let of_mvff =
            with_objects(&mvff, |point, objects| damage(&mut |which| free(point, objects[which]), objects));
        let of_tlsf =
            with_objects(&tlsf, |point, objects| damage(&mut |which| free(point, objects[which]), objects));
        assert_eq!([of_mfs, of_mvff, of_tlsf], [Some(Error::Damaged); 3]);
    }

    #[test]
    fn an_object_that_is_freed_twice_through_a_point_disables_the_pool() {
        is_found(|free, _| [0, 1, 1].into_iter().for_each(free));
    }

    #[test]
    fn a_link_of_a_kept_object_written_over_is_not_followed() {
        is_found(|free, objects| {
            [0, 1, 2].into_iter().for_each(free);
            // SAFETY: memory that is kept in the buffer, which only this thread uses.
            unsafe { objects[2].cast::<usize>().write(0x4141_4141) };
        });
    }
}
