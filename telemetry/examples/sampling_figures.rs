//! Prints the figures of design/sampling.md: bias, coverage, and what rhythms do to a sampler
//! with a fixed stride. Fails if one of them is not as it must be.
//!
//! ```text
//! cargo run --release -p tripoint-telemetry --example sampling_figures
//! ```

#[path = "../tests/simulation/mod.rs"]
mod simulation;

use std::process::ExitCode;

use simulation::{AT_POINTS, Bias, RHYTHMS, WORKLOADS};
use tripoint_telemetry::Window;

const RUNS: u64 = 4000;
const WINDOWS: u64 = 10_000;

fn main() -> ExitCode {
    let is_good = [bias(), coverage(), rhythms()];
    if is_good.contains(&false) { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// Marks a figure that is not as it must be.
fn mark(is_good: bool) -> &'static str {
    if is_good { "" } else { "   <-- WRONG" }
}

fn bias() -> bool {
    println!("Estimate / truth, over {RUNS} runs of 10 MB (10 GB of 1 MiB):\n");
    let mut all_good = true;
    for workload in &WORKLOADS {
        let bytes = if workload.name == "all 1 MiB" { 10_000_000_000 } else { 10_000_000 };
        all_good &= print_bias(workload.name, &simulation::bias(workload, bytes, RUNS));
    }
    println!("The same at allocation points, over {RUNS} runs of 1 MB:\n");
    for at_point in &AT_POINTS {
        let workload = &at_point.workload;
        let bias = simulation::bias_at_points(at_point, 1_000_000, RUNS);
        all_good &= print_bias(workload.name, &bias);
    }
    all_good
}

fn print_bias(name: &str, bias: &Bias) -> bool {
    let mut all_good = true;
    for average in &bias.averages {
        let is_good = average.is_unbiased();
        all_good &= is_good;
        println!(
            "{name:<28} {:<26} {:.5} ± {:.5}   sd {:.5}{}",
            average.name,
            average.mean,
            average.standard_error,
            average.deviation,
            mark(is_good)
        );
    }
    let ratio = bias.averages[0].deviation / bias.deviation;
    let is_good = (0.95..1.05).contains(&ratio);
    all_good &= is_good;
    println!("{name:<28} {:<26} {ratio:.3}{}\n", "sd / expected sd", mark(is_good));
    all_good
}

fn coverage() -> bool {
    println!("Share of {WINDOWS} windows in which 95 % limits hold the truth:\n");
    let mut all_good = true;
    let mut print = |name: String, coverage: f64, is_good: bool| {
        all_good &= is_good;
        println!("{name:<46} {coverage:.4}{}", mark(is_good));
    };
    for samples in [1, 2, 5, 8, 20, 100] {
        let coverage = simulation::coverage_between_samples(samples, WINDOWS);
        print(format!("between samples, {samples}"), coverage, (coverage - 0.95).abs() <= 0.01);
    }
    for bytes in [100_000, 300_000, 1_000_000, 10_000_000] {
        let coverage = simulation::coverage_at_any_moment(bytes, Window::ANY, WINDOWS);
        print(format!("at any moment, {bytes} bytes"), coverage, coverage >= 0.95);
    }
    let control = simulation::coverage_at_any_moment(100_000, Window::BETWEEN_SAMPLES, WINDOWS);
    print("control: 100000 bytes, unadjusted".to_owned(), control, control < 0.7);
    println!();
    all_good
}

fn rhythms() -> bool {
    println!("Estimate / truth for each group of a rhythm, over 2,000 samples:\n");
    let mut all_good = true;
    for rhythm in &RHYTHMS {
        for (judged, factor) in simulation::judge(rhythm).iter().zip(rhythm.factors) {
            let is_good = (judged.fixed_stride - factor).abs() <= 0.002 * factor
                && (judged.trials - 1.0).abs() < 4.0 * judged.standard_error;
            all_good &= is_good;
            println!(
                "{:<36} fixed stride {:>9.4}   trials {:.4} ± {:.4}{}",
                rhythm.name,
                judged.fixed_stride,
                judged.trials,
                judged.standard_error,
                mark(is_good)
            );
        }
    }
    all_good
}
