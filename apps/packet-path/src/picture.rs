//! The picture of a run, for `tripoint plot` (design/packet-path.md `.picture`, cli.md `.plot.given`).

use order_book::steady::Latency;
use serde_json::{Value, json};

use crate::course::Course;

/// Where the percentiles of a [`Latency`] but the most are, in nines.
const NINES: [f64; 4] = [core::f64::consts::LOG10_2, 2.0, 3.0, 4.0];

/// The picture: latencies from the wire to the book beside what the book took of that, if there is one, and how full rings and window were.
pub(crate) fn picture(
    receiver: &str,
    distribution: &[(f64, f64)],
    course: &Course,
    book: Option<Latency>,
) -> Value {
    let Latency { p50, p99, p999, p9999, .. } = book.unwrap_or_default();
    let book = book.map(|_| {
        json!({
            "name": "of it the book",
            "colour": 1,
            "points": NINES.iter().zip([p50, p99, p999, p9999]).collect::<Vec<_>>(),
        })
    });
    let wire = json!({ "name": "wire to book", "colour": 0, "points": distribution });
    let lines: Vec<_> = [wire].into_iter().chain(book).collect();
    let over_time = |name: &str, colour: usize, points: Vec<(u64, u64)>| json!({ "name": name, "colour": colour, "points": points });
    let waiting = course.intervals().map(|(at, peaks)| (at, peaks.waiting)).collect();
    let window = course.intervals().map(|(at, peaks)| (at, peaks.window)).collect();
    json!({
        "title": "Packets from the wire to the book",
        "about": format!("receiver: {receiver}; the steady part's latencies"),
        "charts": [
            {
                "title": "Latency: from the sender's clock to the end of the record in the book",
                "x": { "label": "share that took at most this long", "unit": "nines" },
                "y": { "label": "time", "unit": "nanoseconds", "is_logarithmic": true },
                "content": { "lines": lines },
                "if_empty": "no message was handled in the steady part",
            },
            {
                "title": "Datagrams that waited, the most of each interval",
                "x": { "label": "time since the run began", "unit": "nanoseconds" },
                "y": { "label": "datagrams", "unit": "count" },
                "content": { "steps": [
                    over_time("in the ring", 2, waiting),
                    over_time("in the recovery window", 3, window),
                ] },
                "if_empty": "no datagram came",
            },
        ],
    })
}
