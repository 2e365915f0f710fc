//! Threads, each with a stream of its own.

use std::collections::BTreeSet;
use std::thread;

use tripoint_telemetry::{GlobalSampler, Mean, Sample, SampledAllocator, Sampling, Stream, Trials};

use crate::{Call, Failing, SEED, before_failing, keep, on_new_thread, sampled, switch};

/// Small enough that each thread has samples.
const MEAN: Mean = Mean::new(if cfg!(miri) { 500 } else { 5000 }).unwrap();

fn sizes() -> impl Iterator<Item = usize> {
    (1..if cfg!(miri) { 30 } else { 1000 }).map(|number| 1 + number * 37 % 400)
}

/// The samples of a thread with this stream.
fn samples_of(stream: u64) -> Vec<Sample> {
    let mut trials = Trials::new(Stream::new(SEED, stream), MEAN);
    sizes().filter_map(|size| trials.allocate(size as u64)).collect()
}

fn key(samples: &[Sample]) -> Vec<(u64, u64)> {
    samples.iter().map(|sample| (sample.size(), sample.offset())).collect()
}

/// Streams are numbered as threads make their first allocations.
#[test]
fn each_thread_draws_from_a_stream_of_its_own() {
    const THREADS: usize = 4;
    let allocator = before_failing(switch(Some(MEAN)));
    let work = || {
        for size in sizes() {
            Call::Alloc(size).make(&allocator);
        }
        key(&sampled().iter().map(|one| one.sample).collect::<Vec<_>>())
    };
    let found: BTreeSet<_> = thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(work)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let expected: BTreeSet<_> = (0..THREADS).map(|stream| key(&samples_of(stream as u64))).collect();
    assert_eq!(found, expected);
    assert_eq!(found.len(), THREADS);
}

/// Allocators that have copies of one sampler count down together.
#[test]
fn allocators_with_one_sampler_share_their_draws() {
    on_new_thread(|| {
        let sampler = GlobalSampler::new(switch(Some(MEAN)), keep);
        let (one, other) = (SampledAllocator::system(sampler), SampledAllocator::new(Failing, sampler));
        for (number, size) in sizes().enumerate() {
            if number % 3 == 0 {
                Call::Alloc(size).make(&one)
            } else {
                Call::Alloc(size).make(&other)
            };
        }
        let found: Vec<_> = sampled().iter().map(|one| one.sample).collect();
        assert_eq!(found, samples_of(0));
    });
}

/// A process has one sampler; a second one is not what was promised, but does no harm: the
/// switch of each is followed as it comes to draw.
#[test]
fn a_second_sampler_does_no_harm() {
    on_new_thread(|| {
        let (on, off): (&Sampling, &Sampling) = (switch(Some(Mean::EVERY_BYTE)), switch(None));
        let (on, off) = (before_failing(on), before_failing(off));
        Call::Alloc(8).make(&on);
        assert_eq!(sampled().len(), 1);
        Call::Alloc(8).make(&off);
        assert_eq!(sampled().len(), 0);
        on.follow_switch();
        Call::Alloc(8).make(&on);
        assert_eq!(sampled().len(), 1);
    });
}
