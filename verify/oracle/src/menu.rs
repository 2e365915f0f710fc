//! Operations decoded from bytes. A fuzzer supplies all bytes at once, a property
//! test some for each operation; the decoder is the same.

use core::alloc::Layout;

use crate::choices::Choices;
use crate::operation::{Between, Operation};

/// The layouts that operations are about.
#[derive(Clone, Copy, Debug)]
pub enum Layouts {
    /// One of these.
    OneOf(&'static [Layout]),
    /// Most of the sizes are small.
    Below {
        /// Sizes are below this many bytes, at most 65536, unless near an edge.
        size: usize,
        /// Alignments are at most two to this power.
        align_log: u32,
        /// Now and then the size is close to one of these.
        edges: &'static [usize],
    },
}

impl Layouts {
    fn draw(&self, choices: &mut Choices<'_>) -> Option<Layout> {
        match *self {
            Self::OneOf(list) => list.get(choices.below(list.len().max(1))?).copied(),
            Self::Below { size, align_log, edges } => {
                let shape = choices.byte()?;
                // Half of them are aligned in some way.
                let align = if shape & 0x80 == 0 { 0 } else { u32::from(shape & 0x1f) % (align_log + 1) };
                let size = match shape >> 5 & 3 {
                    0 => near_edge(edges, choices)?.unwrap_or(choices.below(size)?),
                    _ => choices.below(size.min(256))?,
                };
                Layout::from_size_align(size, 1 << align).ok()
            }
        }
    }
}

/// A size close to an edge, for one draw in eight.
fn near_edge(edges: &[usize], choices: &mut Choices<'_>) -> Option<Option<usize>> {
    if edges.is_empty() {
        return Some(None);
    }
    let draw = choices.which()?;
    let edge = edges[draw % edges.len()];
    Some(if draw / 32 == 0 { Some(edge.saturating_sub(64) + choices.below(128)?) } else { None })
}

/// Draws an operation of one kind; none if the bytes have run out.
pub type Draw = fn(&Menu, &mut Choices<'_>) -> Option<Operation>;

/// The kinds of operations, and how often each occurs.
#[derive(Clone, Copy, Debug)]
pub struct Menu {
    /// Kinds of operations, each with its weight. The weights sum to 256 at most.
    pub kinds: &'static [(u8, Draw)],
    /// The layouts they are about.
    pub layouts: Layouts,
}

/// For pools whose objects are freed.
pub const MANUAL: &[(u8, Draw)] = &[
    (20, alloc),
    (20, free),
    (4, alloc_many),
    (4, free_many),
    (3, resize),
    (6, fill),
    (6, empty_fill),
    (2, point),
    (14, reserve),
    (3, batch),
    (2, empty_point),
    (1, trip),
    (1, check),
];

/// For pools whose allocation points are stacks.
pub const STACKS: &[(u8, Draw)] =
    &[(24, reserve), (3, batch), (8, push), (4, pop), (1, empty_point), (1, trip), (1, check)];

/// For caches over a pool.
pub const CACHES: &[(u8, Draw)] = &[(24, get), (23, put), (2, flush), (2, trip), (1, check)];

/// For allocation points over pools made for tests.
pub const POINTS: &[(u8, Draw)] = &[
    (30, reserve),
    (8, batch),
    (2, empty_point),
    (2, trip),
    (2, flip),
    (1, |_, _| Some(Operation::RefuseFills(true))),
    (2, |_, _| Some(Operation::RefuseFills(false))),
    (1, |_, choices| Some(Operation::Preallocate(choices.below(20)? * crate::MIN_ALIGN))),
];

impl Menu {
    /// The next operation; none if the bytes have run out.
    pub fn draw(&self, choices: &mut Choices<'_>) -> Option<Operation> {
        let sum: usize = self.kinds.iter().map(|&(weight, _)| usize::from(weight)).sum();
        let mut at = choices.below(sum.max(1))?;
        let drawn = self.kinds.iter().find(|&&(weight, _)| {
            let here = at < usize::from(weight);
            at = at.saturating_sub(usize::from(weight));
            here
        });
        drawn.and_then(|(_, draw)| draw(self, choices))
    }

    /// Operations until the bytes have run out.
    pub fn draw_all(&self, choices: &mut Choices<'_>) -> impl Iterator<Item = Operation> {
        core::iter::from_fn(|| self.draw(choices))
    }
}

#[cfg(feature = "proptest")]
mod strategy {
    use core::ops::Range;

    use proptest::prelude::*;

    use super::Menu;
    use crate::choices::Choices;
    use crate::listener::Draws;
    use crate::operation::Operation;

    /// More bytes than any one operation takes.
    const BYTES: usize = 16;

    impl Menu {
        /// Operations for a property test: `count` of them.
        pub fn operations(self, count: Range<usize>) -> impl Strategy<Value = Vec<Operation>> {
            let operation = any::<[u8; BYTES]>()
                .prop_filter_map("a layout", move |bytes| self.draw(&mut Choices::new(&bytes)));
            prop::collection::vec(operation, count)
        }
    }

    impl Draws {
        /// Stops for a property test, at distances below `below` bytes.
        pub fn any_below(below: usize) -> impl Strategy<Value = Self> {
            any::<[u8; BYTES]>()
                .prop_filter_map("draws", move |bytes| Self::draw_from(&mut Choices::new(&bytes), below))
        }
    }
}

fn alloc(menu: &Menu, choices: &mut Choices<'_>) -> Option<Operation> {
    Some(Operation::Alloc(menu.layouts.draw(choices)?))
}

fn free(_: &Menu, choices: &mut Choices<'_>) -> Option<Operation> {
    Some(Operation::Free(choices.which()?))
}

fn alloc_many(menu: &Menu, choices: &mut Choices<'_>) -> Option<Operation> {
    Some(Operation::AllocMany { layout: menu.layouts.draw(choices)?, most: choices.below(12)? })
}

fn free_many(_: &Menu, choices: &mut Choices<'_>) -> Option<Operation> {
    Some(Operation::FreeMany { object: choices.which()?, most: choices.below(12)? })
}

fn resize(menu: &Menu, choices: &mut Choices<'_>) -> Option<Operation> {
    Some(Operation::Resize { object: choices.which()?, size: menu.layouts.draw(choices)?.size() })
}

fn fill(menu: &Menu, choices: &mut Choices<'_>) -> Option<Operation> {
    Some(Operation::Fill { layout: menu.layouts.draw(choices)?, objects: choices.below(8)? })
}

fn empty_fill(_: &Menu, choices: &mut Choices<'_>) -> Option<Operation> {
    Some(Operation::EmptyFill(choices.which()?))
}

fn point(menu: &Menu, choices: &mut Choices<'_>) -> Option<Operation> {
    Some(Operation::Point { layout: menu.layouts.draw(choices)?, objects: choices.below(8)? })
}

fn reserve(menu: &Menu, choices: &mut Choices<'_>) -> Option<Operation> {
    let layout = menu.layouts.draw(choices)?;
    let (point, commit, between) = fate(choices)?;
    Some(Operation::Reserve { point, layout, commit, between })
}

fn batch(_: &Menu, choices: &mut Choices<'_>) -> Option<Operation> {
    let (capacity, pushed) = (choices.below(40)?, choices.below(40)?);
    let (point, commit, between) = fate(choices)?;
    Some(Operation::Batch { point, capacity, pushed, commit, between })
}

fn empty_point(_: &Menu, choices: &mut Choices<'_>) -> Option<Operation> {
    Some(Operation::EmptyPoint(choices.which()?))
}

fn trip(_: &Menu, choices: &mut Choices<'_>) -> Option<Operation> {
    Some(Operation::Trip(choices.which()?))
}

fn flip(_: &Menu, _: &mut Choices<'_>) -> Option<Operation> {
    Some(Operation::Flip)
}

fn push(_: &Menu, choices: &mut Choices<'_>) -> Option<Operation> {
    Some(Operation::Push(choices.which()?))
}

fn pop(_: &Menu, choices: &mut Choices<'_>) -> Option<Operation> {
    Some(Operation::Pop { point: choices.which()?, frame: choices.which()? })
}

fn get(menu: &Menu, choices: &mut Choices<'_>) -> Option<Operation> {
    Some(Operation::Get { cache: choices.which()?, layout: menu.layouts.draw(choices)? })
}

fn put(_: &Menu, choices: &mut Choices<'_>) -> Option<Operation> {
    Some(Operation::Put { cache: choices.which()?, object: choices.which()? })
}

fn flush(_: &Menu, choices: &mut Choices<'_>) -> Option<Operation> {
    Some(Operation::Flush(choices.which()?))
}

fn check(_: &Menu, _: &mut Choices<'_>) -> Option<Operation> {
    Some(Operation::Check)
}

/// In which point, whether it is committed (four of five), and what happens
/// meanwhile (mostly nothing).
fn fate(choices: &mut Choices<'_>) -> Option<(usize, bool, Between)> {
    let byte = choices.which()?;
    let between = match byte >> 4 & 7 {
        0 => Between { trips: 1, flips: 0 },
        1 => Between { trips: 0, flips: 1 },
        2 if byte & 2 == 0 => Between { trips: 2, flips: 1 },
        2 => Between { trips: 1, flips: 2 },
        _ => Between::default(),
    };
    Some((byte & 1, byte >> 1 & 7 != 0 || byte & 0x80 == 0, between))
}
