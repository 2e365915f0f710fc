//! What forked children draw, and what becomes of a process whose report of a sample unwinds.
#![cfg(all(unix, not(miri)))]

use core::array;

use tripoint_telemetry::{GlobalSampler, Mean, SampledAllocator, Sampling};

use crate::child::{Distances, in_child};
use crate::{Call, SEED, before_failing, on_new_thread, sampled, switch};

fn draw(allocator: &SampledAllocator<crate::Failing>) -> Distances {
    array::from_fn(|_| {
        (0..)
            .take_while(|_| {
                Call::Alloc(1).make(allocator);
                sampled().is_empty()
            })
            .count()
    })
}

#[test]
fn children_that_take_a_seed_draw_neither_as_their_parent_nor_as_each_other() {
    on_new_thread(|| {
        let sampling = switch(Mean::new(1000));
        let allocator = before_failing(sampling);
        draw(&allocator);

        let repeated = in_child(|| draw(&allocator)).unwrap();
        let reseeded = |seed: u64| {
            in_child(|| {
                sampling.reseed(seed);
                allocator.follow_switch();
                draw(&allocator)
            })
        };
        let [first, second] = [1, 2].map(|child| reseeded(SEED + child).unwrap());
        let parent = draw(&allocator);
        // The control: without a new seed the child draws the same.
        assert_eq!(repeated, parent);
        let all = [parent, first, second];
        for (index, one) in all.iter().enumerate() {
            for other in &all[..index] {
                let same = one.iter().zip(other).filter(|(one, other)| one == other).count();
                assert!(same <= 1, "{one:?} {other:?}");
            }
        }
    });
}

/// An allocator must not unwind.
#[test]
fn a_report_that_unwinds_aborts_the_process() {
    static SAMPLING: Sampling = Sampling::off(SEED);
    static ALLOCATOR: SampledAllocator =
        SampledAllocator::system(GlobalSampler::new(&SAMPLING, |_| std::panic::resume_unwind(Box::new(()))));

    on_new_thread(|| {
        SAMPLING.set_mean(Some(Mean::EVERY_BYTE));
        let status = in_child(|| {
            // The system would write a core file.
            let limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
            // SAFETY: the limit is a valid one.
            unsafe { libc::setrlimit(libc::RLIMIT_CORE, &raw const limit) };
            Call::Alloc(8).make(&ALLOCATOR);
            [0; 16]
        })
        .unwrap_err();
        assert!(libc::WIFSIGNALED(status) && libc::WTERMSIG(status) == libc::SIGABRT, "{status:#x}");
    });
}
