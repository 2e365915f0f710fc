//! Growing to many live objects of 32 bytes: what each takes, in time and in memory that the process has more.

use core::alloc::{GlobalAlloc, Layout};
use std::alloc::System;
use std::time::Instant;

use bumpalo::Bump;
use rusty_alloc_api::RustyAlloc;
use snmalloc_rs::SnMalloc;
use tikv_jemallocator::Jemalloc;
use tripoint::{
    AllocationPoint, ArenaVm, ArenaVmOptions, ManualPool, Mfs, MfsOptions, Mvff, MvffOptions, UnitOf,
};

use super::objects::MiMallocDirect;
use crate::table::Table;

type Object = [u64; 4];

/// The memory of this process that is in memory, in bytes.
fn resident() -> f64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    statm.split(' ').nth(1).and_then(|pages| pages.parse::<f64>().ok()).unwrap_or(0.0) * 4096.0
}

fn row(table: &mut Table, name: &str, count: usize, mut make: impl FnMut(u64)) {
    let (start, before) = (Instant::now(), resident());
    (0..count as u64).for_each(&mut make);
    let (time, grown) = (start.elapsed(), resident() - before);
    table.add(name, &[Some(time.as_secs_f64() * 1e9 / count as f64), Some(grown / count as f64)]);
}

fn point(table: &mut Table, name: &str, count: usize, pool: &impl ManualPool) {
    let mut point = AllocationPoint::create(pool).unwrap();
    row(table, name, count, |number| {
        core::mem::forget(point.boxed([number; 4]).unwrap());
    });
}

/// The objects are linked, so that they can be freed without a list of them.
fn general(table: &mut Table, name: &str, count: usize, allocator: impl GlobalAlloc) {
    let layout = Layout::new::<Object>();
    let mut last = core::ptr::null_mut::<Object>();
    row(table, name, count, |number| {
        // SAFETY: the layout's size is not zero.
        let object = unsafe { allocator.alloc(layout) }.cast::<Object>();
        // SAFETY: fresh memory of the layout.
        unsafe { object.write([last.expose_provenance() as u64, number, number, number]) };
        last = object;
    });
    while !last.is_null() {
        // SAFETY: the object is alive, and begins with the address of the one before.
        let before = core::ptr::with_exposed_provenance_mut(unsafe { last.read() }[0] as usize);
        // SAFETY: allocated above with this layout, freed once.
        unsafe { allocator.dealloc(last.cast(), layout) };
        last = before;
    }
}

/// A table for that many objects.
#[must_use]
pub fn measure(count: usize) -> Vec<Table> {
    let mut table = Table::new(
        format!("growth to {count} live objects of 32 bytes"),
        &["ns an object", "bytes an object"],
    );
    {
        let arena = ArenaVm::create(ArenaVmOptions::default()).unwrap();
        let pool = Mfs::create(&arena, UnitOf::<Object>::new(), MfsOptions::default()).unwrap();
        point(&mut table, "Mfs, allocation point", count, &pool);
    }
    {
        let arena = ArenaVm::create(ArenaVmOptions::default()).unwrap();
        let pool = Mvff::create(&arena, MvffOptions::default()).unwrap();
        point(&mut table, "Mvff, allocation point", count, &pool);
    }
    {
        let bump = Bump::new();
        row(&mut table, "bumpalo", count, |number| _ = core::hint::black_box(bump.alloc([number; 4])));
    }
    general(&mut table, "mi_malloc", count, MiMallocDirect);
    general(&mut table, "rusty_alloc", count, RustyAlloc);
    general(&mut table, "snmalloc", count, SnMalloc);
    general(&mut table, "jemalloc", count, Jemalloc);
    general(&mut table, "system malloc", count, System);
    vec![table]
}
