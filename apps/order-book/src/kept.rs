//! Updates that wait for a snapshot to cover them, in memory from a pool (design/order-book.md `.kept`).

use core::alloc::Layout;

use point_log::{Logged, logged};
use tripoint::{ArenaVm, Mfs, MfsOptions, PoolBox, Result, UnitLayout};

use crate::decimal::Decimal;
use crate::levels::Level;
use crate::record::{Entry, Side, Span};

/// Level entries of a piece.
const PIECE: usize = 8;

/// The pool that pieces come from.
pub type KeptPool<'arena> = Logged<Mfs<&'arena ArenaVm, UnitLayout>>;

/// Creates a pool for pieces.
///
/// # Errors
/// The arena's.
pub fn create_pool(arena: &ArenaVm) -> Result<KeptPool<'_>> {
    Mfs::create(arena, UnitLayout::new(Layout::new::<Piece<'_>>())?, MfsOptions::default()).map(logged)
}

/// How many pieces an update takes, by the number of its entries.
pub fn pieces(entries: usize) -> usize {
    entries.div_ceil(PIECE).max(1)
}

type Link<'pool> = Option<PoolBox<'pool, Piece<'pool>, KeptPool<'pool>>>;

/// A part of an update.
struct Piece<'pool> {
    update: Number,
    is_last: bool,
    count: usize,
    entries: [Entry; PIECE],
    next: Link<'pool>,
}

/// An update that is kept, and the record that it came in.
#[derive(Clone, Copy)]
pub struct Number {
    pub span: Span,
    pub record: u64,
}

/// How many pieces there is memory for, whichever book keeps them.
pub struct KeptRoom<'pool> {
    pool: &'pool KeptPool<'pool>,
    free: usize,
    all: usize,
}

impl<'pool> KeptRoom<'pool> {
    /// Has the pool get memory for this many pieces.
    ///
    /// # Errors
    /// The pool's.
    pub fn take(pool: &'pool KeptPool<'pool>, all: usize) -> Result<Self> {
        let nothing = Number { span: Span { before: 0, last: 0 }, record: 0 };
        let pieces: Result<Vec<_>> =
            (0..all).map(|_| PoolBox::new_in(Piece::new(nothing, &[], true), pool)).collect();
        pieces.map(|_| Self { pool, free: all, all })
    }

    /// How many pieces there is memory for now.
    pub const fn free(&self) -> usize {
        self.free
    }

    /// How many pieces there can be.
    pub const fn all(&self) -> usize {
        self.all
    }
}

impl Piece<'_> {
    fn new(update: Number, part: &[Entry], is_last: bool) -> Self {
        let level = Level { price: Decimal::ZERO, quantity: Decimal::ZERO };
        let mut entries = [Entry { side: Side::Bid, level }; PIECE];
        entries[..part.len()].copy_from_slice(part);
        Self { update, is_last, count: part.len(), entries, next: None }
    }
}

/// The updates of one book that wait, the last piece first.
#[derive(Default)]
pub struct Kept<'pool> {
    last: Link<'pool>,
    pieces: usize,
    /// Entries that set a level.
    set: usize,
}

impl<'pool> Kept<'pool> {
    /// Entries that set a level, of all updates.
    pub const fn set_entries(&self) -> usize {
        self.set
    }

    /// Keeps an update. Returns false if there is no room; nothing has changed then.
    ///
    /// # Errors
    /// The pool's, which has memory for all that there is room for.
    pub fn push(&mut self, update: Number, entries: &[Entry], room: &mut KeptRoom<'pool>) -> Result<bool> {
        let wanted = pieces(entries.len());
        let Some(free) = room.free.checked_sub(wanted) else { return Ok(false) };
        for number in 0..wanted {
            let part =
                &entries[(number * PIECE).min(entries.len())..((number + 1) * PIECE).min(entries.len())];
            let mut piece = PoolBox::new_in(Piece::new(update, part, number + 1 == wanted), room.pool)?;
            piece.next = self.last.take();
            self.last = Some(piece);
        }
        room.free = free;
        self.pieces += wanted;
        self.set += entries.iter().filter(|entry| entry.level.quantity != Decimal::ZERO).count();
        Ok(true)
    }

    /// Passes the updates to `take`, piece by piece and the oldest first, and keeps none.
    /// The last argument says that the piece is the last of its update.
    pub fn take_all(&mut self, room: &mut KeptRoom<'pool>, mut take: impl FnMut(Number, &[Entry], bool)) {
        room.free += core::mem::take(&mut self.pieces);
        self.set = 0;
        let (mut rest, mut first) = (self.last.take(), None);
        while let Some(mut piece) = rest {
            rest = piece.next.take();
            piece.next = first;
            first = Some(piece);
        }
        while let Some(mut piece) = first {
            take(piece.update, &piece.entries[..piece.count], piece.is_last);
            first = piece.next.take();
        }
    }
}

/// One by one: a list that drops itself goes as deep as it is long.
impl Drop for Kept<'_> {
    fn drop(&mut self) {
        while let Some(mut piece) = self.last.take() {
            self.last = piece.next.take();
        }
    }
}

#[cfg(test)]
mod tests {
    use tripoint::ArenaVmOptions;

    use super::*;

    fn entries(count: u64) -> Vec<Entry> {
        let level =
            |price| Level { price: Decimal::from_units(price), quantity: Decimal::from_units(price % 2) };
        (0..count).map(|price| Entry { side: Side::Ask, level: level(price) }).collect()
    }

    #[test]
    fn updates_come_back_in_their_order_and_the_room_with_them() {
        let arena = ArenaVm::create(ArenaVmOptions::default()).unwrap();
        let pool = create_pool(&arena).unwrap();
        let mut room = KeptRoom::take(&pool, 6).unwrap();
        let mut kept = Kept::default();
        for _ in 0..3 {
            for (record, count) in [(1, 0), (2, 8), (3, 17)] {
                let span = Span { before: record, last: record + 1 };
                assert_eq!(kept.push(Number { span, record }, &entries(count), &mut room), Ok(true));
            }
            assert_eq!(kept.set_entries(), 4 + 8);
            // One more piece, and two too many.
            let more = Number { span: Span { before: 4, last: 5 }, record: 4 };
            assert_eq!(kept.push(more, &entries(9), &mut room), Ok(false));
            let mut found = Vec::new();
            let mut update = Vec::new();
            kept.take_all(&mut room, |number, part, is_last| {
                update.extend_from_slice(part);
                if is_last {
                    found.push((number.record, number.span.last, core::mem::take(&mut update)));
                }
            });
            assert_eq!(found, [(1, 2, entries(0)), (2, 3, entries(8)), (3, 4, entries(17))]);
            assert_eq!((room.free, kept.set_entries()), (6, 0));
        }
    }

    #[test]
    fn many_updates_drop_on_a_small_stack() {
        let arena = ArenaVm::create(ArenaVmOptions::default()).unwrap();
        let pool = create_pool(&arena).unwrap();
        let keep_many = || {
            let mut room = KeptRoom::take(&pool, 100_000).unwrap();
            let mut kept = Kept::default();
            for record in 0..100_000 {
                let update = Number { span: Span { before: record, last: record + 1 }, record };
                assert_eq!(kept.push(update, &[], &mut room), Ok(true));
            }
        };
        std::thread::scope(|scope| {
            std::thread::Builder::new().stack_size(64 << 10).spawn_scoped(scope, keep_many).unwrap();
        });
    }
}
