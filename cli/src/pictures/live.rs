//! The footprint of a recorded program: what it had allocated and not freed, operation by operation. Traces have no times.

use std::io::Read;

use super::titled;
use crate::error::TraceError;
use crate::plotting::{Axis, Chart, Content, Picture, Series, Unit};
use crate::trace::format::Course;

/// Live bytes and live objects of a trace, and why not all of it could be read.
pub(crate) fn live(course: &mut Course<impl Read>) -> (Picture, Option<TraceError>) {
    let line = |name: &str| Series { name: name.to_owned(), colour: 0, points: Vec::new() };
    let (mut bytes, mut objects, mut operations) = (line("live"), line("live objects"), 0.0);
    let cut = loop {
        match course.step() {
            // Ends of threads and forks are about no object.
            Ok(Some((_, None))) => {}
            Ok(Some(_)) => {
                course.recycle();
                bytes.add((operations, course.live_bytes() as f64));
                objects.add((operations, course.live_objects() as f64));
                operations += 1.0;
            }
            Ok(None) => break None,
            Err(error) => break Some(error),
        }
    };
    let header = course.header();
    let title = titled("Footprint", header.program().as_deref(), header.made);
    let charts = vec![
        chart("Live bytes, as they were asked for", Unit::Bytes, bytes),
        chart("Live objects", Unit::Count, objects),
    ];
    (Picture::new(title, header.command.join(" "), charts, Vec::new()), cut)
}

fn chart(title: &str, unit: Unit, line: Series) -> Chart {
    Chart {
        title: title.to_owned(),
        x: Axis::new("operations", Unit::Count),
        y: Axis::new(line.name.clone(), unit),
        moments: Vec::new(),
        content: Content::Steps(vec![line]),
        if_empty: "the trace has no operations".to_owned(),
    }
}
