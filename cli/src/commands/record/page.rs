//! A page of what was recorded: replayed on allocators and drawn, in one file that needs no other
//! ([design/cli-traces.md `.page`](crate::design::cli_traces)).

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::html::Html;
use crate::commands::plot::Look;
use crate::commands::replay::{DOUBTFUL, ROUNDS, Report, Table, default_contenders, explained};
use crate::error::Error;
use crate::output::complain;
use crate::pictures::{live, titled};
use crate::plotting::{Picture, Theme, Unit, svg};
use crate::trace::format::Course;
use crate::trace::record::Recorded;
use crate::trace::replay::{Comparison, Order};
use crate::{progress, whole_file};

/// How the page looks: light or dark, as the system of the reader is. It has the pictures for both.
const STYLE: &str = "
:root { color-scheme: light dark; }
body { font: 15px/1.5 sans-serif; max-width: 1000px; margin: 2em auto; padding: 0 1em; }
table { border-collapse: collapse; margin: 1em 0; font-variant-numeric: tabular-nums; }
td, th { padding: 0.15em 0.7em; border-bottom: 1px solid #8886; text-align: right; }
td:first-child, th:first-child { text-align: left; }
dl { font-size: 13px; display: grid; grid-template-columns: max-content auto; gap: 0 1em; }
dd { margin: 0; }
svg { max-width: 100%; height: auto; }
.dark { display: none; }
@media (prefers-color-scheme: dark) { .dark { display: block; } .light { display: none; } }
";

/// A page that was written.
pub(super) struct Page {
    pub(super) path: PathBuf,
    /// Whether anything was wrong in the replay.
    pub(super) is_wrong: bool,
}

impl Page {
    /// Replays the trace that has most steps, and writes a page of that and of all traces beside the first one. None if nothing
    /// was recorded.
    ///
    /// # Errors
    /// Those of the replay and of the system.
    pub(super) fn make(traces: &[Recorded], output: &Path, json: bool) -> Result<Option<Self>, Error> {
        let Some(most) = traces.iter().max_by_key(|trace| trace.summary.steps) else { return Ok(None) };
        let mut path = output.to_path_buf();
        path.as_mut_os_string().push(".html");
        let contenders = default_contenders();
        let comparison = Comparison { contenders: &contenders, rounds: ROUNDS, order: Order::Strict };
        let bar = progress::begin(json, 0);
        let made = Report::make(&most.path, u64::MAX, &comparison, &bar);
        bar.finish_and_clear();
        let (report, _) = made?;
        let mut course = Course::open(&most.path, u64::MAX)
            .map_err(|error| Error::Trace { path: most.path.clone(), error })?;
        let pictures = [live(&mut course).0, report.picture()];
        whole_file::write(&path, text(traces, &report, pictures, &path)?.as_bytes())?;
        Ok(Some(Self { path, is_wrong: report.is_wrong() }))
    }

    /// Has the desktop show it, if there is one.
    pub(super) fn open(&self) {
        let is_desktop = |name| std::env::var_os(name).is_some_and(|display| !display.is_empty());
        if !is_desktop("DISPLAY") && !is_desktop("WAYLAND_DISPLAY") {
            return;
        }
        let mut opener = Command::new("xdg-open");
        opener.arg(&self.path).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        // It may stay as long as the browser does.
        if let Err(error) = opener.spawn() {
            complain(&format_args!("the page is not shown, because xdg-open does not start: {error}"));
        }
    }
}

/// The whole page.
fn text(traces: &[Recorded], report: &Report, pictures: [Picture; 2], path: &Path) -> Result<String, Error> {
    let title = titled("Allocations", report.program.as_deref(), report.made);
    let mut html = Html::begin(&title, STYLE);
    html.add("pre", report.command.join(" "));
    report.about().iter().for_each(|line| html.add("p", line));
    html.add("h2", "Verdict");
    html.add("p", &report.verdict);
    if !report.doubts.is_empty() {
        html.add("p", DOUBTFUL);
        report.doubts.iter().for_each(|doubt| html.add("p", doubt));
    }
    for mut picture in pictures {
        for (theme, class) in [(Theme::Light, "light"), (Theme::Dark, "dark")] {
            let look = Look { theme, width: 960, height: None }.page(&picture);
            let drawn = svg(&mut picture, &look, path)?;
            html.add_elements(&format!("<div class=\"{class}\">\n{drawn}</div>\n"));
        }
    }
    report.tables().iter().for_each(|table| add_table(table, &mut html));
    add_traces(traces, &mut html);
    html.add("h2", "Next");
    let trace = report.trace.display();
    html.add("pre", format_args!("tripoint replay --rounds 9 {trace}"));
    html.add("pre", format_args!("tripoint advise --rust {trace}"));
    Ok(html.finish())
}

fn add_table(table: &Table, html: &mut Html) {
    html.add("h2", table.title);
    let headings: Vec<_> = table.columns.iter().map(|column| column.heading).collect();
    html.add_table(&headings, &table.rows);
    html.add_elements("<dl>\n");
    for column in &table.columns[1..] {
        html.add("dt", column.heading);
        html.add("dd", column.meaning);
    }
    html.add_elements("</dl>\n");
}

/// All processes that were recorded.
fn add_traces(traces: &[Recorded], html: &mut Html) {
    let row = |trace: &Recorded| {
        let summary = &trace.summary;
        vec![
            trace.program.clone().unwrap_or_default(),
            trace.pid.to_string(),
            Unit::Count.brief(summary.steps as f64),
            summary.threads.to_string(),
            Unit::Bytes.brief(trace.peak_live as f64),
            explained(trace.peak_live, summary.peak_resident).unwrap_or_default(),
            trace.cut.clone().unwrap_or_else(|| summary.ended.clone()),
        ]
    };
    html.add("h2", "Processes");
    let head = ["program", "process", "steps", "threads", "at most live", "its memory", "end"];
    html.add_table(&head, &traces.iter().map(row).collect::<Vec<_>>());
}
