//! The footprint of a recorded program: what it had allocated and not freed, operation by operation. Traces have no times.

use std::io::Read;

use crate::plotting::{Axis, Chart, Content, Picture, Series, Unit};
use crate::trace::{Course, TraceError};

/// Live bytes and live objects of a trace, and why not all of it could be read.
pub(crate) fn live(course: &mut Course<impl Read>) -> (Picture, Option<TraceError>) {
    let (mut bytes, mut objects, mut operations) = (Vec::new(), Vec::new(), 0.0);
    let cut = loop {
        match course.step() {
            // Ends of threads and forks are about no object.
            Ok(Some((_, None))) => {}
            Ok(Some(_)) => {
                course.recycle();
                bytes.push((operations, course.live_bytes() as f64));
                objects.push((operations, course.live_objects() as f64));
                operations += 1.0;
            }
            Ok(None) => break None,
            Err(error) => break Some(error),
        }
    };
    let picture = Picture {
        title: "Footprint of the recorded program".to_owned(),
        about: course.header().command.join(" "),
        charts: vec![
            chart("Live bytes, as they were asked for", "live", Unit::Bytes, bytes),
            chart("Live objects", "live objects", Unit::Count, objects),
        ],
        notes: Vec::new(),
    };
    (picture, cut)
}

fn chart(title: &str, name: &str, unit: Unit, points: Vec<(f64, f64)>) -> Chart {
    Chart {
        title: title.to_owned(),
        x: Axis::new("operations", Unit::Count),
        y: Axis::new(name, unit),
        moments: Vec::new(),
        content: Content::Steps(vec![Series { name: name.to_owned(), points }]),
        if_empty: "the trace has no operations".to_owned(),
    }
}
