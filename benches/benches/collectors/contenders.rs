//! The contenders of works whose objects are of two kinds, with references and without.

/// Their list, by the functions that do the work: in typed pools, in two stores, and in collectors of others.
macro_rules! contenders {
    ($typed:path, $manual:path, $gc_arena:path, $boa_gc:path, $dumpster:path $(,)?) => {
        &[
            ("tripoint, typed", $typed),
            (crate::trees::MALLOC, |size, laps| {
                let store = crate::trees::manual::Global(std::alloc::System);
                $manual(&store, &store, size, laps)
            }),
            ("mimalloc", |size, laps| {
                let store = crate::trees::manual::Global(mimalloc::MiMalloc);
                $manual(&store, &store, size, laps)
            }),
            #[cfg(boehm)]
            (crate::trees::BOEHM, |size, laps| {
                crate::boehm::begin();
                $manual(&crate::boehm::Boehm, &crate::boehm::BoehmLeaves, size, laps)
            }),
            (crate::trees::GC_ARENA, |size, laps| $gc_arena(Pacing::DEFAULT, size, laps)),
            (crate::trees::GC_ARENA_AT_ONCE, |size, laps| $gc_arena(Pacing::STOP_THE_WORLD, size, laps)),
            ("boa_gc", $boa_gc),
            ("dumpster", $dumpster),
        ]
    };
}

pub(crate) use contenders;
