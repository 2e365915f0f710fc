//! What reports say, and the hook that observes them.

use super::*;

/// The bytes of all objects that the hook observed.
static OBSERVED: AtomicUsize = AtomicUsize::new(0);

/// (design/debug.md `.req.report`)
#[test]
fn the_hook_observes_faults_and_reports_name_pool_and_object() {
    let mut memory = memory(32);
    let arena = arena(&mut memory);
    let hook = |report: &DebugReport| {
        OBSERVED.fetch_add(report.size, Ordering::Relaxed);
    };
    let options = DebugOptions { hook: Some(hook), ..DebugOptions::default() };
    let pool = DebugPool::create(Mvff::create(&arena, MvffOptions::default()).unwrap(), options).unwrap();
    let object = pool.alloc(layout(40, 8)).unwrap();
    for _ in 0..21 {
        // SAFETY: a debug pool refuses the second free.
        unsafe { pool.free(object, layout(40, 8)) };
    }
    assert_eq!(OBSERVED.load(Ordering::Relaxed), 20 * 40);
    let reports = pool.reports();
    assert_eq!((reports.count(), reports.iter().count()), (20, 16));
    let text = reports.iter().next().unwrap().to_string();
    let number = pool.header().id().get();
    assert_eq!(
        text,
        format!("MVFF #{number}: object {} of 40 bytes was freed, and is not allocated", addr_of(object))
    );
    let mut description = String::new();
    pool.describe(&mut description, 0).unwrap();
    assert!(description.contains("faults: 20") && description.contains(&text), "{description}");
}

#[test]
fn every_fault_has_a_sentence() {
    let at = Addr::new(0x1010);
    let faults = [
        (Fault::DoubleFree, "not allocated"),
        (Fault::Foreign, "not in this pool"),
        (Fault::Interior, "not the base"),
        (Fault::WrongLayout { allocated: 48, align: 16 }, "48 bytes aligned to 16"),
        (Fault::Overrun { at }, "damaged at 0x1010"),
        (Fault::UsedAfterFree { at }, "0x1010 after it was freed"),
    ];
    for (fault, says) in faults {
        let pool = tripoint_core::PoolId::new(3).unwrap();
        let report = DebugReport { class: "MFS", pool, object: Addr::new(0x1000), size: 24, fault };
        let text = report.to_string();
        assert!(text.starts_with("MFS #3: object 0x1000 of 24 bytes ") && text.contains(says), "{text}");
    }
}
