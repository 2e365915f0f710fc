//! The diagrams of the protocol, cell by cell (design/ap.md `.diagram.three`, `.diagram.four`, `.diagram.interleaved`).

use core::ptr;

use tripoint_ap::internal::{Owner, buffer_without_pool};
use tripoint_ap::{Buffer, BufferMode};
use tripoint_core::{BufferKind, RankSet, SymmetricFence};

const PAGE: &str = include_str!("../../../design/ap.md");

/// The object that is made, in memory from `BASE` on; others lie before it.
const BASE: usize = 0x1000;
const OBJECT: usize = 0x1100;
const END: usize = 0x1120;
const LIMIT: usize = 0x2000;

fn at(addr: usize) -> *mut u8 {
    ptr::without_provenance_mut(addr)
}

/// The cells of a diagram, without its head and the names of its rows.
fn drawn(tag: &str) -> Vec<Vec<String>> {
    let text = PAGE.split(&format!("**`{tag}`**")).nth(1).unwrap().split("```").nth(1).unwrap();
    let rows = text.split("---\n").last().unwrap().lines();
    let cells = |row: &str| row.split('|').skip(1).map(|cell| cell.trim().to_owned()).collect();
    rows.map(cells).filter(|row: &Vec<_>| !row.is_empty()).collect()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Collector {
    Nothing,
    Trip,
    Flip,
}

const COLLECTORS: [Collector; 3] = [Collector::Nothing, Collector::Trip, Collector::Flip];

/// What the mutator has done when the collector acts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mutator {
    Reset,
    Ready,
    Busy,
    Declared,
}

/// A mutator, step by step, as an allocation point takes the steps.
struct Steps<'b> {
    owner: Owner<'b>,
    observed: usize,
}

impl<'b> Steps<'b> {
    fn new(buffer: &'b Buffer) -> Self {
        // SAFETY: the buffer has no other owner.
        Self { owner: unsafe { Owner::new(buffer) }, observed: 0 }
    }

    fn attach(&mut self) {
        self.owner.attach(at(BASE), at(OBJECT), at(LIMIT));
        self.owner.rearm(at(LIMIT), &mut |trips| self.observed += trips);
    }

    fn to(&mut self, state: Mutator) {
        if state != Mutator::Reset {
            self.attach();
        }
        if state == Mutator::Declared {
            self.owner.declare(at(END));
        }
    }

    /// Which path a reserve takes.
    fn reserve(&mut self) -> String {
        if at(END) <= self.owner.limit() {
            return "fast".to_owned();
        }
        self.owner.observe_trips(&mut |trips| self.observed += trips);
        if self.owner.init().is_null() {
            self.attach();
        } else {
            self.owner.rearm(at(LIMIT), &mut |trips| self.observed += trips);
        }
        match self.observed {
            0 => "slow".to_owned(),
            trips => format!("slow, observes {trips}"),
        }
    }

    /// Whether an object that is declared stands.
    fn test(&mut self) -> String {
        let stands = !self.owner.limit().is_null() || self.owner.commit_tripped(at(OBJECT), at(END));
        (if stands { "stands" } else { "fails" }).to_owned()
    }

    fn commit(&mut self) -> String {
        self.owner.declare(at(END));
        self.test()
    }
}

fn act(buffer: &Buffer, collector: Collector) -> Option<usize> {
    match collector {
        Collector::Nothing => None,
        Collector::Trip => {
            buffer.trip();
            None
        }
        // SAFETY: the only commits are the test's, on this thread.
        Collector::Flip => unsafe { buffer.flip(SymmetricFence) }.map(|seen| seen.limit().get()),
    }
}

fn buffer() -> Buffer {
    buffer_without_pool(BufferKind::Mutator, RankSet::EXACT)
}

fn grid(columns: &[Mutator], cell: impl Fn(&Buffer, &mut Steps<'_>, Mutator) -> String) -> Vec<Vec<String>> {
    let of = |collector| {
        let found = columns.iter().map(|&state| {
            let buffer = buffer();
            let mut steps = Steps::new(&buffer);
            steps.to(state);
            act(&buffer, collector);
            cell(&buffer, &mut steps, state)
        });
        found.collect()
    };
    COLLECTORS.into_iter().map(of).collect()
}

#[test]
fn three_columns_say_what_the_words_amount_to() {
    let words = |buffer: &Buffer, _: &mut Steps<'_>, _| {
        let mode = buffer.snapshot().unwrap().mode;
        if mode.is_empty() {
            return "reset".to_owned();
        }
        let names: Vec<_> = mode.iter_names().map(|(name, _): (_, BufferMode)| name.to_lowercase()).collect();
        names.join(" ")
    };
    assert_eq!(drawn(".diagram.three"), grid(&[Mutator::Reset, Mutator::Ready, Mutator::Busy], words));
}

#[test]
fn four_columns_say_how_the_mutator_goes_on() {
    let goes_on = |_: &Buffer, steps: &mut Steps<'_>, state| match state {
        Mutator::Reset | Mutator::Ready => steps.reserve(),
        Mutator::Busy => steps.commit(),
        Mutator::Declared => steps.test(),
    };
    let columns = [Mutator::Reset, Mutator::Ready, Mutator::Busy, Mutator::Declared];
    assert_eq!(drawn(".diagram.four"), grid(&columns, goes_on));
}

#[test]
fn interleaved_they_say_what_becomes_of_the_object() {
    let mut found = vec![Vec::new(); 3];
    for place in 0..4 {
        let buffer = buffer();
        let mut steps = Steps::new(&buffer);
        steps.attach();
        let mut seen = None;
        let mut flip_at = |here| {
            if here == place {
                seen = act(&buffer, Collector::Flip);
            }
        };
        flip_at(0);
        steps.reserve();
        flip_at(1);
        steps.owner.declare(at(END));
        flip_at(2);
        let stands = steps.test();
        flip_at(3);
        let name = |addr, before, after| match addr {
            OBJECT => before,
            END => after,
            other => panic!("{other:#x}"),
        };
        found[0].push(name(seen.unwrap(), "before", "object").to_owned());
        found[1].push(stands);
        found[2].push(name(steps.owner.init().addr(), "object", "end").to_owned());
    }
    assert_eq!(drawn(".diagram.interleaved"), found);
}
