//! Random numbers after a fork: a child repeats its parent's, unless it takes another seed.
//! (design/sampling.md `.fork`.)
#![cfg(all(unix, not(miri)))]

use core::array;

use tripoint_core::Control;
use tripoint_telemetry::{Mean, PointSampler, SampledObject, Sampling};

const SEED: u64 = 0xf02c;

/// The next distances to stops.
type Distances = [usize; 16];

fn draw(sampler: &mut impl Control) -> Distances {
    array::from_fn(|_| sampler.next_stop())
}

/// Runs `work` in a forked child, and returns what it returned there. It neither allocates nor
/// locks, because other threads of the parent may have done so at the fork.
fn in_child(work: impl FnOnce() -> Distances) -> Distances {
    let mut ends = [0; 2];
    let mut distances: Distances = [0; 16];
    let size = size_of_val(&distances);
    // SAFETY: the array has room for two descriptors.
    assert_eq!(unsafe { libc::pipe(ends.as_mut_ptr()) }, 0);
    // SAFETY: the child uses no lock and no memory that another thread may have left in between.
    let child = unsafe { libc::fork() };
    assert!(child >= 0, "a fork failed");
    if child == 0 {
        let distances = work();
        // SAFETY: the pipe is open, and holds less than it has room for; the array has `size` bytes.
        let written = unsafe { libc::write(ends[1], distances.as_ptr().cast(), size) };
        // SAFETY: this ends the child without running what the parent has left to do.
        unsafe { libc::_exit(i32::from(written != size as isize)) };
    }
    let mut status = 0;
    // SAFETY: the child is this process's own, and is waited for once.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    assert_eq!(status, 0, "the child failed");
    // SAFETY: the array has room for `size` bytes.
    let read = unsafe { libc::read(ends[0], distances.as_mut_ptr().cast(), size) };
    assert_eq!(read, size as isize);
    for end in ends {
        // SAFETY: this end is open, and is not used any more.
        assert_eq!(unsafe { libc::close(end) }, 0);
    }
    distances
}

#[test]
fn children_that_take_a_seed_draw_neither_as_their_parent_nor_as_each_other() {
    let sampling = Sampling::off(SEED);
    sampling.set_mean(Mean::new(100_000));
    let ignore = |_: SampledObject| ();
    let mut sampler = PointSampler::new(&sampling, ignore);
    draw(&mut sampler);

    let repeated = in_child(|| draw(&mut sampler));
    let [first, second] = [1, 2].map(|child| {
        in_child(|| {
            sampling.reseed(SEED + child);
            draw(&mut sampler)
        })
    });
    // Samplers that the child makes take its seed as well.
    let fresh = in_child(|| {
        sampling.reseed(SEED + 3);
        draw(&mut PointSampler::new(&sampling, ignore))
    });
    let parent = draw(&mut sampler);
    // The control: without a new seed the child draws the same.
    assert_eq!(repeated, parent);
    let all = [parent, first, second, fresh];
    for (index, one) in all.iter().enumerate() {
        for other in &all[..index] {
            let same = one.iter().zip(other).filter(|(one, other)| one == other).count();
            // Two of 16 pairs are equal by chance about once in 10^8 seeds; these are fixed.
            assert!(same <= 1, "{one:?} {other:?}");
        }
    }
}
