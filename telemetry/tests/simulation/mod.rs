//! Programs that allocate, samplers that watch them, and how the estimates compare with the
//! truth. Shared by the tests and by the example `sampling_figures`; every run is seeded.

use core::alloc::Layout;
use core::mem::MaybeUninit;

use tripoint_ap::AllocationPoint;
use tripoint_core::{BufferKind, ClientArena, ClientArenaOptions};
use tripoint_oracle::BumpPool;
use tripoint_telemetry::{
    Confidence, Estimate, Groups, Mean, PointSampler, Sample, Sampling, Stream, Trials, Window,
};

/// The mean of everything here, unless it says otherwise: 100 KiB.
pub(crate) const MEAN: Mean = Mean::new(102_400).unwrap();

/// A way to allocate: the size of each object by its number.
pub(crate) struct Workload {
    pub(crate) name: &'static str,
    /// A row of figures has random numbers of its own.
    seed: u64,
    pub(crate) size: fn(u64) -> u64,
}

pub(crate) const WORKLOADS: [Workload; 4] = [
    Workload { name: "48 B", seed: 11, size: |_| 48 },
    Workload {
        name: "mixed, 16 B to 4 KiB",
        seed: 12,
        // Scattered, but the same in every run.
        size: |number| 16 << ((number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) % 9),
    },
    Workload {
        name: "1 % of 256 KiB",
        seed: 13,
        size: |number| if number % 100 == 99 { 256 << 10 } else { 64 },
    },
    Workload { name: "all 1 MiB", seed: 14, size: |_| 1 << 20 },
];

/// A workload at an allocation point, which gets its memory in buffers of that many bytes.
pub(crate) struct AtPoint {
    pub(crate) workload: Workload,
    pub(crate) buffer: usize,
    form: Form,
}

/// How objects come about at an allocation point.
#[derive(Clone, Copy)]
enum Form {
    /// One reserve and commit for each.
    OneByOne,
    /// The same, after a reserve that is abandoned.
    AtTheSecondAttempt,
    /// In batches for 20 objects of 48 bytes, of which 15 are committed.
    InBatches,
}

/// Objects that fit a buffer once, buffers that are smaller than nearly all draws, and objects that
/// are not simply reserved and committed.
pub(crate) const AT_POINTS: [AtPoint; 4] = [
    AtPoint {
        workload: Workload { name: "1,400 B in buffers of 1,536", seed: 21, size: |_| 1408 },
        buffer: 1536,
        form: Form::OneByOne,
    },
    AtPoint {
        workload: Workload { name: "48 B in buffers of 1,536", seed: 22, size: |_| 48 },
        buffer: 1536,
        form: Form::OneByOne,
    },
    AtPoint {
        workload: Workload { name: "48 B, each abandoned once before", seed: 23, size: |_| 48 },
        buffer: 1536,
        form: Form::AtTheSecondAttempt,
    },
    AtPoint {
        workload: Workload { name: "48 B, 15 committed of batches of 20", seed: 24, size: |_| 48 },
        buffer: 1536,
        form: Form::InBatches,
    },
];

impl Workload {
    /// The sizes of objects, until there are `bytes` of them.
    pub(crate) fn sizes(&self, bytes: u64) -> Vec<u64> {
        let mut allocated = 0;
        (0..)
            .map(self.size)
            .take_while(|size| {
                let goes_on = allocated < bytes;
                allocated += size;
                goes_on
            })
            .collect()
    }
}

/// The trials of one run, with the usual mean.
fn trials(seed: u64, run: u64) -> Trials {
    Trials::new(Stream::new(seed, run), MEAN)
}

fn estimate(trials: &mut Trials, sizes: &[u64]) -> Estimate {
    let mut estimate = Estimate::new(MEAN);
    for &size in sizes {
        if let Some(sample) = trials.allocate(size) {
            estimate.add(&sample);
        }
    }
    estimate
}

/// The average of many estimates, each divided by the truth.
pub(crate) struct Average {
    pub(crate) name: &'static str,
    pub(crate) mean: f64,
    pub(crate) standard_error: f64,
    pub(crate) deviation: f64,
}

impl Average {
    fn of(name: &'static str, ratios: &[f64]) -> Self {
        let runs = ratios.len() as f64;
        let mean = ratios.iter().sum::<f64>() / runs;
        let variance = ratios.iter().map(|ratio| (ratio - mean).powi(2)).sum::<f64>() / (runs - 1.0);
        Self { name, mean, standard_error: (variance / runs).sqrt(), deviation: variance.sqrt() }
    }

    /// Whether the truth is within four standard errors, and what is averaged varies at all.
    pub(crate) fn is_unbiased(&self) -> bool {
        (self.mean - 1.0).abs() < 4.0 * self.standard_error
    }
}

pub(crate) struct Bias {
    pub(crate) averages: [Average; 4],
    /// The standard deviation that the first average should have.
    pub(crate) deviation: f64,
}

/// How the estimates of `runs` runs of a workload compare with the truth
/// (design/sampling.md `.req.unbiased`).
pub(crate) fn bias(workload: &Workload, bytes: u64, runs: u64) -> Bias {
    let sizes = workload.sizes(bytes);
    let estimates = (0..runs).map(|run| estimate(&mut trials(workload.seed, run), &sizes)).collect();
    compare(&sizes, estimates)
}

/// The same for one allocation point a run.
pub(crate) fn bias_at_points(at_point: &AtPoint, bytes: u64, runs: u64) -> Bias {
    let sizes = at_point.workload.sizes(bytes);
    let mut memory = Box::new_uninit_slice(2 * bytes as usize + (64 << 10));
    let estimates = (0..runs).map(|run| point_estimate(&mut memory, at_point, run, &sizes)).collect();
    compare(&sizes, estimates)
}

fn point_estimate(
    memory: &mut [MaybeUninit<u8>],
    &AtPoint { ref workload, buffer, form }: &AtPoint,
    run: u64,
    sizes: &[u64],
) -> Estimate {
    let options = ClientArenaOptions { grain: Some(4096), event_hook: None };
    let arena = ClientArena::create(memory, options).unwrap();
    let pool = BumpPool::create(&arena, buffer);
    let sampling = Sampling::off(workload.seed << 32 | run);
    sampling.set_mean(Some(MEAN));
    let mut estimate = Estimate::new(MEAN);
    let sampler = PointSampler::new(&sampling, |sampled| estimate.add(&sampled.sample));
    let mut point = AllocationPoint::create_with(&pool, BufferKind::Mutator, sampler).unwrap();
    match form {
        Form::OneByOne | Form::AtTheSecondAttempt => {
            for &size in sizes {
                let layout = Layout::from_size_align(size as usize, 16).unwrap();
                if let Form::AtTheSecondAttempt = form {
                    drop(point.reserve(layout).unwrap());
                }
                // SAFETY: no thread reads the objects of this pool.
                unsafe { point.reserve(layout).unwrap().commit() }.unwrap();
            }
        }
        Form::InBatches => {
            for objects in sizes.chunks(15) {
                let mut batch = point.batch::<[u64; 6]>(20).unwrap();
                objects.iter().for_each(|&size| batch.push([size; 6]).unwrap());
                let _ = batch.commit();
            }
        }
    }
    drop(point);
    estimate
}

fn compare(sizes: &[u64], estimates: Vec<Estimate>) -> Bias {
    let (truth, objects) = (sizes.iter().sum::<u64>() as f64, sizes.len() as f64);
    let average = |name, ratio: &dyn Fn(&Estimate) -> f64| {
        Average::of(name, &estimates.iter().map(ratio).collect::<Vec<_>>())
    };
    let variance_of = |&size: &u64| {
        let chance = MEAN.chance(size);
        (size as f64).powi(2) * (1.0 - chance) / chance
    };
    let variance: f64 = sizes.iter().map(variance_of).sum();
    Bias {
        averages: [
            average("weighted samples, bytes", &|estimate| estimate.bytes() / truth),
            average("weighted samples, objects", &|estimate| estimate.objects() / objects),
            average("failed trials, bytes", &|estimate| estimate.bytes_by_trials() as f64 / truth),
            average("variance", &|estimate| estimate.standard_error().powi(2) / variance),
        ],
        deviation: variance.sqrt() / truth,
    }
}

/// The share of this many windows in which `holds` returns true for the number of the window.
fn share(windows: u64, holds: impl Fn(u64) -> bool) -> f64 {
    (0..windows).filter(|&run| holds(run)).count() as f64 / windows as f64
}

/// The share of windows, each from the beginning to its sample number `samples`, in which the limits hold the truth.
pub(crate) fn coverage_between_samples(samples: u64, windows: u64) -> f64 {
    share(windows, |run| {
        let mut trials = trials(31, run);
        let (mut estimate, mut allocated) = (Estimate::new(MEAN), 0);
        while estimate.samples() < samples {
            allocated += 48;
            if let Some(sample) = trials.allocate(48) {
                estimate.add(&sample);
            }
        }
        limits(&estimate, Window::BETWEEN_SAMPLES, allocated)
    })
}

/// Where a window begins.
#[derive(Clone, Copy)]
pub(crate) enum Begin {
    /// Without regard to what is drawn.
    Anywhere,
    /// With an object that is sampled, so its sample has no failed trials in the window.
    WithASample,
}

/// The share of windows of `bytes` bytes, which end at any moment, in which the limits for `window` hold the truth.
pub(crate) fn coverage_at_any_moment(begin: Begin, bytes: u64, window: Window, windows: u64) -> f64 {
    let sizes = WORKLOADS[0].sizes(bytes);
    let truth = sizes.iter().sum();
    share(windows, |run| {
        let mut trials = trials(32, run);
        let (mut first, mut rest) = (Estimate::new(MEAN), &sizes[..]);
        if let Begin::WithASample = begin {
            let sample = core::iter::repeat_with(|| trials.allocate(sizes[0])).find_map(|sample| sample);
            first.add(&sample.unwrap());
            rest = &sizes[1..];
        }
        first.merge(&estimate(&mut trials, rest));
        limits(&first, window, truth)
    })
}

fn limits(estimate: &Estimate, window: Window, truth: u64) -> bool {
    estimate.limits(Confidence::PERCENT_95, window).unwrap().contains(truth)
}

/// Objects of which intervals are made: numbers of objects and their sizes, with a mean that may change after
/// each group.
pub(crate) struct Mixture {
    pub(crate) name: &'static str,
    seed: u64,
    groups: &'static [(u64, u64, Mean)],
}

/// Ten times the usual one.
const GREATER: Mean = Mean::new(1_024_000).unwrap();

/// From objects that are small beside the mean to those that are hardly ever missed.
pub(crate) const MIXTURES: [Mixture; 11] = [
    Mixture { name: "100 kB of 48 B", seed: 41, groups: &[(2083, 48, MEAN)] },
    Mixture { name: "10 MB of 48 B", seed: 42, groups: &[(208_333, 48, MEAN)] },
    Mixture { name: "100 of 100 kB", seed: 43, groups: &[(100, 100_000, MEAN)] },
    Mixture { name: "101 of 471 kB", seed: 44, groups: &[(101, 471_040, MEAN)] },
    HARDLY_MISSED,
    Mixture { name: "1,000 of 655 kB", seed: 46, groups: &[(1000, 655_360, MEAN)] },
    Mixture {
        name: "100 of 655 kB, 300 kB of 64 B",
        seed: 47,
        groups: &[(100, 655_360, MEAN), (4687, 64, MEAN)],
    },
    Mixture {
        name: "10 of 200 kB, 1 MB of 64 B",
        seed: 48,
        groups: &[(10, 200_000, MEAN), (15_625, 64, MEAN)],
    },
    Mixture {
        name: "300 each of 50, 150, 500 kB",
        seed: 49,
        groups: &[(300, 50_000, MEAN), (300, 150_000, MEAN), (300, 500_000, MEAN)],
    },
    Mixture {
        name: "3 MB of 64 B, 10 MB with 10 times the mean",
        seed: 50,
        groups: &[(46_875, 64, MEAN), (156_250, 64, GREATER)],
    },
    Mixture {
        name: "100 of 655 kB, 10 of 2 MB with 10 times the mean",
        seed: 51,
        groups: &[(100, 655_360, MEAN), (10, 2_000_000, GREATER)],
    },
];

/// 6.4 means each: of 100, one is missed in one window of seven.
pub(crate) const HARDLY_MISSED: Mixture =
    Mixture { name: "100 of 655 kB", seed: 45, groups: &[(100, 655_360, MEAN)] };

impl Mixture {
    /// The shares of windows in which the interval of 95 % holds the truth, and in which that of the normal distribution
    /// does, which is the control (design/sampling.md `.interval`).
    pub(crate) fn coverage(&self, windows: u64) -> [f64; 2] {
        let truth = self.groups.iter().map(|(count, size, _)| count * size).sum();
        let estimates = (0..windows).map(|run| self.estimate(run)).collect::<Vec<_>>();
        let of = |holds: &dyn Fn(&Estimate) -> bool| share(windows, |run| holds(&estimates[run as usize]));
        [
            of(&|estimate| estimate.interval(Confidence::PERCENT_95).contains(truth)),
            of(&|estimate| (estimate.bytes() - truth as f64).abs() <= 1.96 * estimate.standard_error()),
        ]
    }

    fn estimate(&self, run: u64) -> Estimate {
        let mut trials = trials(self.seed, run);
        let mut estimate = Estimate::new(MEAN);
        for &(count, size, mean) in self.groups {
            trials.set_mean(mean);
            for sample in (0..count).filter_map(|_| trials.allocate(size)) {
                estimate.add(&sample);
            }
        }
        estimate
    }
}

/// A sampler that takes the object with every n-th byte: the control.
pub(crate) struct FixedStride {
    stride: u64,
    allocated: u64,
    /// Whether counting goes on from the byte that was taken, rather than from zero.
    carries: bool,
}

impl FixedStride {
    fn allocate(&mut self, size: u64) -> bool {
        self.allocated += size;
        let is_taken = self.allocated >= self.stride;
        if is_taken {
            self.allocated = if self.carries { self.allocated - self.stride } else { 0 };
        }
        is_taken
    }
}

/// A rhythm of allocations, and by which factors a fixed stride misjudges each group in it.
pub(crate) struct Rhythm {
    pub(crate) name: &'static str,
    pub(crate) stride: u32,
    pub(crate) carries: bool,
    /// Objects of one size in a row; each is a group.
    pub(crate) period: &'static [(u64, u64)],
    pub(crate) factors: &'static [f64],
}

pub(crate) const RHYTHMS: [Rhythm; 8] = [
    Rhythm {
        name: "16 B, 24 B",
        stride: 512 << 10,
        carries: false,
        period: &[(1, 16), (1, 24)],
        factors: &[1.25, 0.8333],
    },
    Rhythm {
        name: "1,599 of 64 B, then one",
        stride: 102_400,
        carries: false,
        period: &[(1599, 64), (1, 64)],
        factors: &[0.0, 1600.0],
    },
    Rhythm {
        name: "400 of 64 B, then 400",
        stride: 102_400,
        carries: false,
        period: &[(400, 64), (400, 64)],
        factors: &[0.0, 2.0],
    },
    Rhythm {
        name: "100 of 1,008 B, one of 1,600 B",
        stride: 102_400,
        carries: false,
        period: &[(100, 1008), (1, 1600)],
        factors: &[0.0, 64.0],
    },
    Rhythm {
        name: "1 KiB, 1 KiB",
        stride: 102_400,
        carries: false,
        period: &[(1, 1024), (1, 1024)],
        factors: &[0.0, 2.0],
    },
    Rhythm {
        name: "48 B, 80 B, 3,968 B",
        stride: 102_400,
        carries: false,
        period: &[(1, 48), (1, 80), (1, 3968)],
        factors: &[0.0, 0.0, 1.0323],
    },
    Rhythm {
        name: "97 of 64 B, one of 4 KiB",
        stride: 102_400,
        carries: false,
        period: &[(97, 64), (1, 4096)],
        factors: &[0.0, 2.5],
    },
    Rhythm {
        name: "the same, with the rest carried on",
        stride: 102_400,
        carries: true,
        period: &[(97, 64), (1, 4096)],
        factors: &[1.0, 1.0],
    },
];

/// What a fixed stride and trials say of one group of a rhythm, each divided by the truth.
pub(crate) struct Judged {
    pub(crate) fixed_stride: f64,
    pub(crate) trials: f64,
    /// The standard error that `trials` should have.
    pub(crate) standard_error: f64,
}

/// Has both samplers watch a rhythm for about 2,000 samples, and compares them with the truth.
pub(crate) fn judge(rhythm: &Rhythm) -> Vec<Judged> {
    let mean = Mean::new(rhythm.stride).unwrap();
    let mut fixed = FixedStride { stride: rhythm.stride.into(), allocated: 0, carries: rhythm.carries };
    let mut trials = Trials::new(Stream::new(61, 0), mean);
    let mut estimates = Groups::<usize, 4>::new(mean);
    let mut taken = vec![0u64; rhythm.period.len()];
    let period: u64 = rhythm.period.iter().map(|(count, size)| count * size).sum();
    let periods = 2000 * u64::from(rhythm.stride) / period;
    for _ in 0..periods {
        for (group, &(count, size)) in rhythm.period.iter().enumerate() {
            for _ in 0..count {
                taken[group] += u64::from(fixed.allocate(size));
                if let Some(sample) = trials.allocate(size) {
                    estimates.add(group, &sample);
                }
            }
        }
    }
    let judged = |(group, &(count, size)): (usize, &(u64, u64))| {
        let truth = (periods * count * size) as f64;
        let sample = Sample::new(size, 0, mean).unwrap();
        Judged {
            fixed_stride: taken[group] as f64 * f64::from(rhythm.stride) / truth,
            trials: estimates.get(&group).map_or(0.0, Estimate::bytes) / truth,
            standard_error: ((sample.weight() - 1.0) / (periods * count) as f64).sqrt(),
        }
    };
    rhythm.period.iter().enumerate().map(judged).collect()
}
