//! How soon a thread follows the switch.

use core::alloc::GlobalAlloc;

use tripoint_telemetry::{Mean, Sampling};

use crate::{Call, LOOK, before_failing, on_new_thread, sampled, switch};

const OBJECT: usize = 1 << 10;

/// Allocates objects of 1 KiB until one is sampled, at most `most`, and returns how many were not.
fn until_sampled(allocator: &impl GlobalAlloc, most: usize) -> usize {
    (0..most)
        .take_while(|_| {
            Call::Alloc(OBJECT).make(allocator);
            sampled().is_empty()
        })
        .count()
}

/// After as many objects a thread has looked.
const STEP: usize = LOOK / OBJECT;

fn every_byte(sampling: &Sampling) {
    sampling.set_mean(Some(Mean::EVERY_BYTE));
}

#[test]
fn a_thread_that_is_off_notices_the_switch_after_a_step() {
    on_new_thread(|| {
        let sampling = switch(None);
        let allocator = before_failing(sampling);
        assert_eq!(until_sampled(&allocator, 3 * STEP), 3 * STEP);
        every_byte(sampling);
        let passed = until_sampled(&allocator, 2 * STEP);
        // The control: without a look at each allocation it does not notice at once.
        assert!((1..=STEP).contains(&passed), "{passed}");
        assert_eq!(until_sampled(&allocator, STEP), 0, "from then on it samples");
        sampling.set_mean(None);
        assert_eq!(until_sampled(&allocator, STEP), 0, "a draw that was made stays");
        assert_eq!(until_sampled(&allocator, STEP), STEP);
    });
}

#[test]
fn a_thread_notices_another_mean_after_a_step() {
    on_new_thread(|| {
        // One draw in 10^29 is within the first ten bytes, and the seed is fixed.
        let sampling = switch(Mean::new(u32::MAX));
        let allocator = before_failing(sampling);
        assert_eq!(until_sampled(&allocator, 2 * STEP), 2 * STEP);
        every_byte(sampling);
        let passed = until_sampled(&allocator, 2 * STEP);
        assert!((1..=STEP).contains(&passed), "{passed}");
        sampling.set_mean(Mean::new(u32::MAX));
        assert_eq!(until_sampled(&allocator, 1), 0);
        sampling.set_mean(None);
        assert_eq!(until_sampled(&allocator, STEP), STEP);
    });
}

#[test]
fn a_thread_that_follows_the_switch_notices_at_once() {
    on_new_thread(|| {
        let sampling = switch(None);
        let allocator = before_failing(sampling);
        // Also before its first allocation.
        allocator.follow_switch();
        assert_eq!(until_sampled(&allocator, 1), 1);
        every_byte(sampling);
        assert_eq!(until_sampled(&allocator, 1), 1);
        allocator.follow_switch();
        assert_eq!(until_sampled(&allocator, 1), 0);
        sampling.set_mean(None);
        allocator.follow_switch();
        assert_eq!(until_sampled(&allocator, 2 * STEP), 2 * STEP);
    });
}

/// To follow a switch that did not change is no new draw.
#[test]
fn a_switch_that_did_not_change_moves_no_draw() {
    let samples = |follows: bool| {
        on_new_thread(|| {
            let allocator = before_failing(switch(Mean::new(100_000)));
            for size in 1..2000 {
                Call::Alloc(size).make(&allocator);
                if follows {
                    allocator.follow_switch();
                }
            }
            sampled().iter().map(|one| one.sample).collect::<Vec<_>>()
        })
    };
    assert_eq!(samples(true), samples(false));
    assert!(!samples(false).is_empty());
}
