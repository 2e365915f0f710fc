//! The same comparison in several processes, one after the other: which pages a home gets, and when, is drawn for each
//! process, and moves its times by more than homes differ (design/exchange.md `.compare.processes`).

use core::fmt::Write;
use core::time::Duration;
use std::ffi::OsString;
use std::process::{Command, Stdio};

use clap::ValueEnum;

use super::entrants::Entrant;
use super::phases::Phase;
use super::tables::{Comparison, Row, Table};
use super::{median, text};
use crate::histogram::Percentiles;

/// Compares in that many processes of this program, and takes medians. The order of homes is drawn from `draw` in the first,
/// and from the numbers after it in the others. A process ends if this one does.
///
/// # Errors
/// What a process says that failed, and if it cannot be started or understood.
pub fn compare_in_processes(count: u64, draw: u64, arguments: &[OsString]) -> Result<Comparison, String> {
    let program = std::env::current_exe().map_err(text)?;
    let mut runs = Vec::new();
    for number in 0..count {
        let name = format!("process {} of {count}", number + 1);
        let mut child = Command::new(&program);
        child.args(arguments).stderr(Stdio::inherit());
        // The last `--draw` counts.
        child.args(["--processes", "1", "--rows", "--draw", &draw.wrapping_add(number).to_string()]);
        end_with_this(&mut child);
        let child = child
            .output()
            .map_err(|error| format!("{name}: {} did not start: {error}", program.display()))?;
        if !child.status.success() {
            return Err(format!("{name} failed: {}", child.status));
        }
        let rows = String::from_utf8_lossy(&child.stdout);
        runs.push(read(&rows).ok_or_else(|| format!("{name} wrote what is no comparison"))?);
    }
    merge(&runs).ok_or_else(|| "the processes compared different homes or phases".into())
}

/// Has the kernel end a process when the thread ends that starts it.
#[cfg(target_os = "linux")]
fn end_with_this(child: &mut Command) {
    use std::os::unix::process::CommandExt;
    // SAFETY: `prctl` may be called between fork and exec, and neither allocates nor takes a lock.
    unsafe {
        child.pre_exec(|| match libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGTERM) {
            0 => Ok(()),
            _ => Err(std::io::Error::last_os_error()),
        });
    }
}

/// This system does not do it for us.
#[cfg(not(target_os = "linux"))]
const fn end_with_this(_child: &mut Command) {}

impl Comparison {
    /// What [`compare_in_processes`] reads.
    pub fn rows(&self) -> String {
        let mut rows = String::new();
        // A string takes everything.
        let _ = writeln!(rows, "day\t{}\t{}", self.live, self.processor.map_or(-1, |own| own as i64));
        for Table { phase, messages, orders, levels, rows: homes } in &self.tables {
            let _ = writeln!(rows, "phase\t{}\t{messages}\t{orders}\t{levels}", phase.name());
            for Row { entrant, nanoseconds, ratio, latency, faults, bytes, .. } in homes {
                let _ = write!(
                    rows,
                    "home\t{entrant}\t{nanoseconds}\t{ratio}\t{faults}\t{bytes}\t{}",
                    latency.mean
                );
                latency.named().iter().for_each(|(_, value)| {
                    let _ = write!(rows, "\t{value}");
                });
                rows.push('\n');
            }
        }
        for (entrant, time) in &self.ends {
            let _ = writeln!(rows, "end\t{entrant}\t{}", time.as_nanos());
        }
        rows
    }
}

fn read(rows: &str) -> Option<Comparison> {
    let mut comparison = Comparison { tables: Vec::new(), ends: Vec::new(), live: 0, processor: None };
    for row in rows.lines() {
        let fields: Vec<_> = row.split('\t').collect();
        match fields[..] {
            ["day", live, processor] => {
                comparison.live = live.parse().ok()?;
                comparison.processor = usize::try_from(processor.parse::<i64>().ok()?).ok();
            }
            ["phase", name, messages, orders, levels] => comparison.tables.push(Table {
                phase: Phase::ALL.into_iter().find(|phase| phase.name() == name)?,
                messages: messages.parse().ok()?,
                orders: orders.parse().ok()?,
                levels: levels.parse().ok()?,
                rows: Vec::new(),
            }),
            [
                "home",
                entrant,
                nanoseconds,
                ratio,
                faults,
                bytes,
                mean,
                p50,
                p90,
                p99,
                p999,
                p9999,
                p99999,
                max,
            ] => {
                let latency = Percentiles {
                    mean: mean.parse().ok()?,
                    p50: p50.parse().ok()?,
                    p90: p90.parse().ok()?,
                    p99: p99.parse().ok()?,
                    p999: p999.parse().ok()?,
                    p9999: p9999.parse().ok()?,
                    p99999: p99999.parse().ok()?,
                    max: max.parse().ok()?,
                };
                comparison.tables.last_mut()?.rows.push(Row {
                    entrant: Entrant::from_str(entrant, false).ok()?,
                    nanoseconds: nanoseconds.parse().ok()?,
                    ratio: ratio.parse().ok()?,
                    spread: None,
                    latency,
                    faults: faults.parse().ok()?,
                    bytes: bytes.parse().ok()?,
                });
            }
            ["end", entrant, time] => {
                let time = Duration::from_nanos(time.parse().ok()?);
                comparison.ends.push((Entrant::from_str(entrant, false).ok()?, time));
            }
            _ => return None,
        }
    }
    Some(comparison)
}

/// Medians over the runs, of which all have the same rows.
fn merge(runs: &[Comparison]) -> Option<Comparison> {
    let (first, others) = runs.split_first()?;
    let mut merged = first.clone();
    let shape = |run: &Comparison| -> Vec<_> {
        run.tables.iter().flat_map(|table| table.rows.iter().map(|row| (table.phase, row.entrant))).collect()
    };
    if others.iter().any(|run| shape(run) != shape(first) || run.ends.len() != first.ends.len()) {
        return None;
    }
    for (at, table) in merged.tables.iter_mut().enumerate() {
        for (place, row) in table.rows.iter_mut().enumerate() {
            let of = |value: fn(&Row) -> f64| -> Vec<f64> {
                runs.iter().map(|run| value(&run.tables[at].rows[place])).collect()
            };
            let whole = |value: fn(&Row) -> f64| median(of(value)) as u64;
            let ratios = of(|row| row.ratio);
            row.spread = Some((
                ratios.iter().copied().fold(f64::INFINITY, f64::min),
                ratios.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            ));
            row.ratio = median(ratios);
            row.nanoseconds = median(of(|row| row.nanoseconds));
            row.faults = whole(|row| row.faults as f64);
            row.bytes = whole(|row| row.bytes as f64);
            row.latency = Percentiles {
                mean: median(of(|row| row.latency.mean)),
                p50: whole(|row| row.latency.p50 as f64),
                p90: whole(|row| row.latency.p90 as f64),
                p99: whole(|row| row.latency.p99 as f64),
                p999: whole(|row| row.latency.p999 as f64),
                p9999: whole(|row| row.latency.p9999 as f64),
                p99999: whole(|row| row.latency.p99999 as f64),
                max: whole(|row| row.latency.max as f64),
            };
        }
    }
    for (place, (_, time)) in merged.ends.iter_mut().enumerate() {
        *time =
            Duration::from_secs_f64(median(runs.iter().map(|run| run.ends[place].1.as_secs_f64()).collect()));
    }
    Some(merged)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(ratio: f64, max: u64) -> Comparison {
        let latency = Percentiles { mean: 0.5, p50: 1, p90: 2, p99: 3, p999: 4, p9999: 5, p99999: 6, max };
        let row = Row {
            entrant: Entrant::Pools,
            nanoseconds: 80.25,
            ratio,
            spread: None,
            latency,
            faults: 7,
            bytes: 8,
        };
        let table = Table { phase: Phase::Second, messages: 9, orders: 10, levels: 11, rows: vec![row] };
        let ends = vec![(Entrant::System, Duration::from_nanos(12))];
        Comparison { tables: vec![table], ends, live: 13, processor: Some(1) }
    }

    #[test]
    fn what_is_written_is_read() {
        let written = run(0.75, 14).rows();
        assert_eq!(read(&written).unwrap().rows(), written);
        assert!(read(&written.replace("pools", "pool")).is_none());
        assert!(read(&written.replace("\t14", "\t")).is_none());
    }

    #[test]
    fn medians_are_taken_and_ends_shown() {
        let merged = merge(&[run(0.5, 30), run(1.5, 10), run(0.75, 20)]).unwrap();
        let row = &merged.tables[0].rows[0];
        assert_eq!((row.ratio, row.spread, row.latency.max), (0.75, Some((0.5, 1.5)), 20));
        let mut other = run(1.0, 1);
        other.tables[0].rows[0].entrant = Entrant::Hand;
        assert!(merge(&[run(1.0, 1), other]).is_none());
        assert!(merge(&[]).is_none());
    }

    #[test]
    fn columns_stand_apart_if_a_pause_was_long() {
        let mut long = run(1e6, u64::MAX);
        let Row { latency, nanoseconds, faults, bytes, .. } = &mut long.tables[0].rows[0];
        *latency = Percentiles { p50: 1_234_567, p99: u64::MAX, ..*latency };
        (*nanoseconds, *faults, *bytes) = (1e9, u64::MAX, u64::MAX);
        let said = long.tables[0].to_string();
        // No range, and nothing above p99 of nine messages; a size takes two words.
        assert_eq!(said.lines().last().unwrap().split_whitespace().count(), 12, "{said}");
    }
}
