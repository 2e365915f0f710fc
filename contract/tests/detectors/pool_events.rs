//! Fills and growth.

use core::hint::black_box;

use crate::common::{armed, contract, of_kind, records};
use crate::{POOL_EVENTS, hot, json, on_hot_thread};
use tripoint_ap::AllocationPoint;
use tripoint_arena_vm::{ArenaVm, ArenaVmOptions};
use tripoint_contract::{DetectorSet, RecordKind, ViolationClass};
use tripoint_core::{Arena, Error};
use tripoint_pools::{Mvff, MvffOptions};

fn arena() -> ArenaVm {
    let options = ArenaVmOptions { event_hook: Some(&POOL_EVENTS), reserve: 1 << 30, ..Default::default() };
    ArenaVm::create(options).unwrap()
}

#[test]
fn fills_are_caught() {
    on_hot_thread(|| {
        let arena = arena();
        let pool = Mvff::create(&arena, MvffOptions::default()).unwrap();
        let point = core::cell::RefCell::new(AllocationPoint::create(&pool).unwrap());
        #[inline(never)]
        fn culprit_fill(point: &mut AllocationPoint<'_, Mvff<&ArenaVm>>) {
            point.empty();
            black_box(point.alloc([0_u64; 4]).unwrap());
        }
        let contract = contract();
        let guard = armed(contract, hot(DetectorSet::POOL_EVENTS));
        // The detector is live from the first event on.
        culprit_fill(&mut point.borrow_mut());
        guard.check();
        let _ = records(contract);
        black_box(point.borrow_mut().alloc([0_u64; 4]).unwrap());
        guard.check();
        assert_eq!(records(contract), [], "allocating in the buffer is no fill");
        culprit_fill(&mut point.borrow_mut());
        guard.check();
        let records = records(contract);
        assert_eq!(of_kind(&records, RecordKind::Alarm).len(), 1);
        let report = json(contract, &of_kind(&records, RecordKind::Violation));
        let site = report["violations"][0]["site"].as_str().unwrap();
        assert!(site.contains("culprit_fill"), "{site}: {report:#}");
        assert!(guard.slot().live().contains(DetectorSet::POOL_EVENTS));
    });
}

#[test]
fn growth_and_refused_growth_are_caught() {
    on_hot_thread(|| {
        let arena = arena();
        let pool = arena.register().unwrap();
        let contract = contract();
        let guard = armed(contract, hot(DetectorSet::POOL_EVENTS));
        let _ = arena.alloc_tracts(100_000, pool).unwrap();
        guard.check();
        arena.freeze();
        guard.check();
        let grown = of_kind(&records(contract), RecordKind::Alarm);
        assert_eq!(grown.len(), 1);
        assert_eq!((grown[0].class, grown[0].bytes >= 100_000), (ViolationClass::Growth, true));
        assert_eq!(arena.alloc_tracts(10_000_000, pool).err(), Some(Error::Frozen));
        guard.check();
        let refused = of_kind(&records(contract), RecordKind::Alarm);
        assert_eq!((refused[0].class, refused[0].count), (ViolationClass::Growth, 1));
    });
}
