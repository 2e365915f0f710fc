//! The hot thread of the order book: its lines come in blocks.

use tripoint::{ManualPool, Store};

use crate::coordinator::Coordinator;
use crate::handoff::{Block, Receiver, Sender};
use crate::hot::{HotReport, HotThread, Pools, Preparation};
use crate::hot_failure::HotFailure;
use crate::rehearsal::Rehearsal;
use crate::telemetry;
use crate::tops::Tops;

/// Keeps a book from the blocks of `full`, and sends them on to `next`, as a thread
/// that `coordinator` has under contract.
///
/// There is a report even if a failure ended the run: it covers all records
/// before the failure, and only those are sent on (design/order-book.md
/// `.handoff.lost`).
pub fn keep<'pool, L: Store, S: ManualPool>(
    preparation: Preparation,
    coordinator: &'pool Coordinator,
    pools: Pools<'pool, L, S>,
    rehearsal: Rehearsal<'pool, L>,
    tops: Tops,
    mut full: Receiver,
    mut next: Sender,
) -> (HotReport, Option<HotFailure>) {
    let _attached = telemetry::attach("hot");
    match HotThread::prepare(preparation, coordinator, pools, rehearsal, tops) {
        Ok(mut thread) => {
            let failure = run(&mut thread, &mut full, &mut next).err();
            (thread.report(), failure)
        }
        Err(cause) => (HotReport::default(), Some(cause.into())),
    }
}

fn run<L: Store, S: ManualPool>(
    thread: &mut HotThread<'_, L, S, Tops>,
    full: &mut Receiver,
    next: &mut Sender,
) -> Result<(), HotFailure> {
    let mut input = 0;
    while let Some(mut block) = full.receive_hot() {
        if block.input != input {
            input = block.input;
            thread.begin_input();
        }
        thread.strategy_mut().swap(&mut block.tops);
        thread.begin_burst(block.contents().len());
        let before = thread.lines();
        let outcome = keep_block(thread, &block);
        let has_failed_fast = thread.has_failed_fast();
        if outcome.is_err() || has_failed_fast {
            block.keep_lines(thread.lines() - before);
        }
        thread.strategy_mut().swap(&mut block.tops);
        next.send(block);
        outcome?;
        if has_failed_fast {
            return Ok(());
        }
    }
    thread.finish()
}

fn keep_block<L: Store, S: ManualPool>(
    thread: &mut HotThread<'_, L, S, Tops>,
    block: &Block,
) -> Result<(), HotFailure> {
    for line in block.lines() {
        thread.keep_line(line)?;
        if thread.has_failed_fast() {
            break;
        }
    }
    Ok(())
}
