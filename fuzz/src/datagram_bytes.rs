//! The framing of the packet path on any bytes, and its recovery window on any arrivals.

use std::collections::BTreeSet;
use std::ops::Range;

use crate::datagram_writer::Writer;
use crate::message::Message;
use crate::moldudp64::{Datagram, FIRST, Request};
use crate::window::{Arrival, Turn, Window};

/// The messages that the window reaches.
const REACH: u64 = 32;

/// Reads the bytes as a datagram and as a request: what is read, written again, is the same bytes. Then each pair of bytes is
/// the arrival of a datagram, in a window beside a set of numbers (design/packet-path.md `.window`).
///
/// # Panics
/// If any of that does not hold.
pub fn datagram_bytes(data: &[u8]) {
    read(data);
    let arrivals = data.chunks_exact(2).map(|pair| {
        let first = FIRST + u64::from(pair[0] % 64);
        first..first + u64::from(pair[1] % 8)
    });
    arrive(arrivals);
}

fn read(data: &[u8]) {
    if let Some(request) = Request::parse(data) {
        assert_eq!(request.bytes(), *data);
    }
    let Ok(datagram) = Datagram::parse(data) else { return };
    let span = datagram.span();
    let mut writer = Writer::new(datagram.session, data.len());
    writer.begin(datagram.sequence);
    for bytes in datagram.messages() {
        if let Some(message) = Message::parse(bytes) {
            assert_eq!([&message.prefix(), message.bytes].concat(), bytes);
        }
        assert!(writer.push(&[bytes]), "what came in a datagram has room in it");
    }
    if span.is_empty() {
        // Only the end of a session has messages that are none.
        assert_eq!(datagram.messages().count(), 0);
    } else {
        assert_eq!(writer.finish(), data);
    }
}

fn arrive(arrivals: impl Iterator<Item = Range<u64>>) {
    let mut window = Window::new((0..REACH).map(|_| None).collect::<Vec<_>>(), FIRST);
    let (mut came, mut next, mut held) = (BTreeSet::new(), FIRST, 0_usize);
    // The two highest numbers that were said, the lower one first.
    let mut said = [FIRST, FIRST];
    for span in arrivals {
        if span.start < next + REACH {
            let mut all = [said[0], said[1], span.end];
            all.sort_unstable();
            said = [all[1], all[2]];
        }
        match window.arrive(span.clone(), span.clone()) {
            Arrival::Beyond(beyond) => assert!(beyond.start >= next + REACH),
            kept => {
                came.extend(span);
                held += usize::from(kept == Arrival::Kept);
                if let Arrival::Duplicate(old) = kept {
                    assert!({ old }.all(|number| came.contains(&number)));
                }
            }
        }
        while let Some(Turn { item, skip }) = window.next() {
            held -= 1;
            for number in item.skip(skip as usize) {
                assert_eq!(number, next, "every message once, in order");
                next += 1;
            }
        }
        assert!(!came.contains(&next) && window.expected() == next);
        let end = said[0].min(next + REACH);
        let missing = (next..end).filter(|number| !came.contains(number));
        assert!(missing.eq(window.gaps().flatten()), "what is missing is named");
    }
    assert_eq!(std::iter::from_fn(|| window.take_any()).count(), held, "what waits is given back");
}
