//! A feed at the pace at which it was recorded: blocks are cut so that each line is handed on when it is due
//! (design/order-book.md `.pace`).

use core::time::Duration;
use std::thread;
use std::time::Instant;

use crate::handoff::{Block, Receiver, Sender};
use crate::tops::time_of;

/// The longest sleep, so that the end of the input is seen.
const SLEEP_MAX: Duration = Duration::from_millis(50);

/// When lines are due: as long after the first as they were received after it. A line whose time is before the first is
/// due at once, and so are the lines of a second input.
pub struct Pace {
    start: Instant,
    first: Option<u64>,
}

impl Pace {
    /// The pace of a feed whose first line is due now.
    pub fn new() -> Self {
        Self { start: Instant::now(), first: None }
    }

    /// How long it is until a line is due.
    fn time_to(&mut self, line: &[u8]) -> Duration {
        let time = time_of(line);
        let first = *self.first.get_or_insert(time);
        let due = Duration::from_nanos(time.saturating_sub(first));
        due.saturating_sub(self.start.elapsed())
    }

    /// Sends the lines of a block as they are due, in blocks from `empty`; `block` comes last, with the last of them.
    /// Returns false if meanwhile it `is_over`: then the rest is not sent.
    pub fn send(
        &mut self,
        mut block: Block,
        is_over: &dyn Fn() -> bool,
        empty: &mut Receiver,
        full: &mut Sender,
    ) -> bool {
        let (mut sent, mut end) = (0, 0);
        loop {
            let lines = &block.contents()[end..];
            let size = lines.iter().position(|&byte| byte == b'\n').map_or(lines.len(), |at| at + 1);
            let wait = if size == 0 { Duration::ZERO } else { self.time_to(&lines[..size]) };
            if size == 0 || !wait.is_zero() {
                if size == 0 {
                    block.keep_from(sent);
                    full.send(block);
                    return true;
                }
                if end > sent {
                    let Some(mut part) = empty.receive() else { return false };
                    part.set(&block.contents()[sent..end], block.input);
                    full.send(part);
                    sent = end;
                }
                if !sleep(wait, is_over) {
                    return false;
                }
            }
            end += size;
        }
    }
}

/// Sleeps. Returns false if meanwhile it `is_over`.
fn sleep(time: Duration, is_over: &dyn Fn() -> bool) -> bool {
    let end = Instant::now() + time;
    loop {
        if is_over() {
            return false;
        }
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return true;
        }
        thread::sleep(left.min(SLEEP_MAX));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::handoff::Round;

    #[test]
    fn lines_come_in_their_order_and_not_before_they_are_due() {
        let Round { to_hot: (mut sender, mut receiver), to_reader: (_give_back, mut empty), .. } =
            Round::new();
        let mut block = empty.receive().unwrap();
        block.set(b"1000000 a\n1000000 b\n21000000 c\n500 d\n41000000 e\n", 3);
        let start = Instant::now();
        assert!(Pace::new().send(block, &|| false, &mut empty, &mut sender));
        assert!(start.elapsed() >= Duration::from_millis(40));
        let mut found = Vec::new();
        drop(sender);
        while let Some(block) = receiver.receive() {
            assert_eq!(block.input, 3);
            found.push(String::from_utf8(block.contents().to_vec()).unwrap());
        }
        assert_eq!(found, ["1000000 a\n1000000 b\n", "21000000 c\n500 d\n", "41000000 e\n"]);
    }
}
