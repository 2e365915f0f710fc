//! Prints the figures of design/sampling.md: bias, coverage, and what rhythms do to a sampler
//! with a fixed stride. Fails if one of them is not as it must be.
//!
//! ```text
//! cargo run --release -p tripoint-telemetry --example sampling_figures
//! ```

#[path = "../tests/simulation/mod.rs"]
mod simulation;

use std::process::ExitCode;

use simulation::{AT_POINTS, Begin, Bias, HARDLY_MISSED, MIXTURES, RHYTHMS, WORKLOADS};
use tripoint_telemetry::Window;

const RUNS: u64 = 4000;
const WINDOWS: u64 = 10_000;

fn main() -> ExitCode {
    let is_good = [bias(), coverage(), intervals(), rhythms()];
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
            "{name:<36} {:<26} {:.6} ± {:.6}   sd {:.6}{}",
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
    println!("{name:<36} {:<26} {ratio:.3}{}\n", "sd / expected sd", mark(is_good));
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
    let at_any_moment =
        |begin, bytes, window| simulation::coverage_at_any_moment(begin, bytes, window, WINDOWS);
    for bytes in [100_000, 300_000, 1_000_000, 10_000_000] {
        let coverage = at_any_moment(Begin::Anywhere, bytes, Window::FROM_THE_BEGINNING);
        print(format!("from the beginning, {bytes} bytes"), coverage, coverage >= 0.95);
        let coverage = at_any_moment(Begin::Anywhere, bytes, Window::ANY);
        print(format!("at any moment, {bytes} bytes"), coverage, coverage >= 0.95);
    }
    for bytes in [2000, 100_000, 1_000_000] {
        let coverage = at_any_moment(Begin::WithASample, bytes, Window::ANY);
        print(format!("beginning with a sample, {bytes} bytes"), coverage, coverage >= 0.95);
    }
    let control = at_any_moment(Begin::Anywhere, 100_000, Window::BETWEEN_SAMPLES);
    print("control: 100000 bytes, end not adjusted".to_owned(), control, control < 0.7);
    let control = at_any_moment(Begin::WithASample, 2000, Window::FROM_THE_BEGINNING);
    print("control: with a sample, begin not adjusted".to_owned(), control, control < 0.1);
    println!();
    all_good
}

fn intervals() -> bool {
    println!("The same for intervals, and for those of the normal distribution, the control:\n");
    let mut all_good = true;
    for mixture in &MIXTURES {
        let [coverage, of_the_normal] = mixture.coverage(WINDOWS);
        let is_good = coverage >= 0.95;
        all_good &= is_good;
        println!("{:<50} {coverage:.4}   {of_the_normal:.4}{}", mixture.name, mark(is_good));
        if mixture.name == HARDLY_MISSED.name {
            all_good &= of_the_normal < 0.88;
        }
    }
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
