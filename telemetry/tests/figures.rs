//! Checks that estimates are right on average, and that limits hold as often as they say: a
//! small part of what the example `sampling_figures` runs. Seeds are fixed, so these tests
//! pass always or never.

// Not under Miri: these are statistics, with no code that could have undefined
// behaviour.
#![cfg(not(miri))]

mod simulation;

use simulation::{AT_POINTS, Begin, HARDLY_MISSED, MIXTURES, RHYTHMS, WORKLOADS};
use tripoint_telemetry::Window;

/// (design/sampling.md `.req.unbiased`)
#[test]
fn no_estimate_is_biased() {
    for workload in &WORKLOADS {
        // One object of 1 MiB in 28,000 is not sampled: it takes many of them to see a variance.
        let bytes = if workload.name == "all 1 MiB" { 10 << 30 } else { 1 << 20 };
        let bias = simulation::bias(workload, bytes, 200);
        for average in &bias.averages {
            assert!(average.is_unbiased(), "{}, {}: {}", workload.name, average.name, average.mean);
        }
        let deviation = bias.averages[0].deviation / bias.deviation;
        assert!((0.85..1.15).contains(&deviation), "{}: {deviation}", workload.name);
    }
}

/// (design/sampling.md `.req.unbiased`)
#[test]
fn no_estimate_is_biased_by_buffers_second_attempts_and_batches() {
    for at_point in &AT_POINTS {
        let workload = &at_point.workload;
        let bias = simulation::bias_at_points(at_point, 256 << 10, 200);
        for average in &bias.averages {
            assert!(average.is_unbiased(), "{}, {}: {}", workload.name, average.name, average.mean);
        }
        let deviation = bias.averages[0].deviation / bias.deviation;
        assert!((0.85..1.15).contains(&deviation), "{}: {deviation}", workload.name);
    }
}

/// (design/sampling.md `.req.coverage`)
#[test]
fn limits_hold_as_often_as_they_say() {
    for samples in [1, 2, 8] {
        let coverage = simulation::coverage_between_samples(samples, 1000);
        assert!((0.93..0.97).contains(&coverage), "{samples} samples: {coverage}");
    }
    for bytes in [100_000, 1_000_000] {
        for window in [Window::ANY, Window::FROM_THE_BEGINNING] {
            let coverage = simulation::coverage_at_any_moment(Begin::Anywhere, bytes, window, 1000);
            assert!(coverage >= 0.95, "{bytes} bytes, {window:?}: {coverage}");
        }
    }
    for bytes in [2000, 100_000] {
        let coverage = simulation::coverage_at_any_moment(Begin::WithASample, bytes, Window::ANY, 1000);
        assert!(coverage >= 0.95, "{bytes} bytes from a sample on: {coverage}");
    }
}

/// The controls: limits that ignore where the window ends, and where it begins.
#[test]
fn limits_for_the_wrong_window_hold_too_seldom() {
    let window = Window::BETWEEN_SAMPLES;
    let coverage = simulation::coverage_at_any_moment(Begin::Anywhere, 100_000, window, 1000);
    assert!((0.5..0.7).contains(&coverage), "{coverage}");
    let window = Window::FROM_THE_BEGINNING;
    let coverage = simulation::coverage_at_any_moment(Begin::WithASample, 2000, window, 1000);
    assert!(coverage < 0.1, "{coverage}");
}

/// (design/sampling.md `.interval`)
#[test]
fn intervals_hold_as_often_as_they_say() {
    for mixture in &MIXTURES {
        let [coverage, _] = mixture.coverage(300);
        assert!(coverage >= 0.92, "{}: {coverage}", mixture.name);
    }
    let [coverage, of_the_normal] = HARDLY_MISSED.coverage(1000);
    assert!(coverage >= 0.95 && of_the_normal < 0.88, "{coverage} {of_the_normal}");
}

/// (design/sampling.md `.req.rhythm`)
#[test]
fn a_rhythm_deceives_a_fixed_stride_and_not_trials() {
    for rhythm in &RHYTHMS {
        for (judged, factor) in simulation::judge(rhythm).iter().zip(rhythm.factors) {
            let fixed = judged.fixed_stride;
            assert!((fixed - factor).abs() <= 0.002 * factor, "{}: {fixed}, not {factor}", rhythm.name);
            let error = (judged.trials - 1.0).abs();
            assert!(error < 4.0 * judged.standard_error, "{}: {}", rhythm.name, judged.trials);
        }
    }
}
