//! The books of all stocks, order by order (design/exchange.md `.book`).
//!
//! ```text
//!   ids[number] ──► order ◄──► order ◄──► order        one queue for each level, the oldest first
//!                     │          │          │
//!                     └──────────┴──────────┴──► level ◄── sides[stock, side]: levels, the best last
//! ```
//!
//! Orders and levels live where [`Places`] says. Everything else has its full size from the start.

use core::time::Duration;
use std::time::Instant;

use crate::ids::{Ids, Taken};
use crate::itch::{Executed, Header, Message};
pub use crate::nodes::{Level, Order, Side};
use crate::places::{NoMemory, Place, Places};
pub use crate::refused::Refused;
use crate::shelves::{Entry, NoRun, Run, Shelves};
use crate::wide::table;

/// Locate codes are two bytes.
const LOCATES: usize = 1 << 16;

/// How much memory the books have from the start.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Orders that are live at once.
    pub orders: usize,
    /// Levels that have orders at once.
    pub levels: usize,
}

impl Plan {
    /// A plan for that many live orders, each at a price of its own if need be.
    pub const fn of_live(orders: usize) -> Self {
        Self { orders, levels: orders }
    }

    /// Entries in the lists of sides: runs are up to twice as long as their lists, and sides that shrink keep theirs.
    const fn entries(self) -> usize {
        self.levels.saturating_mul(4).saturating_add(LOCATES)
    }

    /// Levels that a home has memory for: a replaced order has two for a moment.
    pub const fn level_room(self) -> usize {
        self.levels + 1
    }
}

/// Where an order stands: its side, its shares, and its neighbours in the queue of its price.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standing {
    pub locate: u16,
    pub side: Side,
    pub price: u32,
    pub shares: u32,
    pub earlier: Option<u64>,
    pub later: Option<u64>,
}

/// What a level shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Depth {
    pub price: u32,
    pub shares: u64,
    pub orders: u32,
}

/// All books.
pub struct Books<P: Places> {
    ids: Ids<P::Name>,
    orders: P::Orders,
    levels: P::Levels,
    /// Two for each locate code.
    sides: Vec<[Run; 2]>,
    shelves: Shelves<P::Name>,
    plan: Plan,
    /// Locate codes are below this, of all orders so far.
    locates: usize,
    levels_live: usize,
    most_orders: usize,
    most_levels: usize,
}

impl<P: Places> Books<P> {
    /// Empty books, whose orders and levels are to live in these homes. All memory apart from theirs is taken, and
    /// written to, here.
    pub fn new(orders: P::Orders, levels: P::Levels, plan: Plan) -> Self {
        Self {
            ids: Ids::new(plan.orders),
            orders,
            levels,
            sides: table([Run::EMPTY; 2], LOCATES),
            shelves: Shelves::new(plan.entries()),
            plan,
            locates: 0,
            levels_live: 0,
            most_orders: 0,
            most_levels: 0,
        }
    }

    /// Where orders live.
    #[inline(always)]
    pub(crate) const fn orders_mut(&mut self) -> &mut P::Orders {
        &mut self.orders
    }

    /// Does what a message says.
    ///
    /// # Errors
    /// If it cannot be true of these books; nothing has changed then.
    #[inline]
    pub fn apply(&mut self, message: &Message<'_>) -> Result<(), Refused> {
        match message {
            Message::Add(add, attribution) => {
                let id = add.order.get();
                let side = match add.side {
                    b'B' => Side::Buy,
                    b'S' => Side::Sell,
                    says => return Err(Refused::NoSide { order: id, says }),
                };
                let shares = add.shares.get();
                let (locate, entered) = (add.header.locate.get(), add.header.nanoseconds());
                self.add(id, locate, side, add.price.get(), shares, entered, *attribution)
            }
            Message::Executed(Executed { header, order, shares, .. }) => {
                self.reduce(header, order.get(), shares.get())
            }
            Message::Cancel(cancel) => self.reduce(&cancel.header, cancel.order.get(), cancel.shares.get()),
            Message::Delete(delete) => {
                let id = delete.order.get();
                let name = self.find(&delete.header, id)?;
                self.end_order(id, name);
                Ok(())
            }
            Message::Replace(replace) => {
                let (old, new) = (replace.old.get(), replace.new.get());
                let entered = replace.header.nanoseconds();
                self.replace(&replace.header, old, new, replace.shares.get(), replace.price.get(), entered)
            }
            Message::System(_)
            | Message::Directory(_)
            | Message::Trade(_)
            | Message::Cross(_)
            | Message::Broken(_)
            | Message::Other => Ok(()),
        }
    }

    /// Adds an order at the end of the queue of its price.
    ///
    /// # Errors
    /// If it cannot be; nothing has changed then.
    #[expect(clippy::too_many_arguments, reason = "the fields of one message")]
    #[inline]
    pub fn add(
        &mut self,
        id: u64,
        locate: u16,
        side: Side,
        price: u32,
        shares: u32,
        entered: u64,
        attribution: [u8; 4],
    ) -> Result<(), Refused> {
        if shares == 0 {
            return Err(Refused::NoShares(id));
        }
        let vacancy = self.ids.vacancy(id).map_err(|taken| match taken {
            Taken::Duplicate => Refused::DuplicateOrder(id),
            Taken::Full => Refused::OrdersFull(self.plan.orders),
        })?;
        let level = self.level_at(locate, side, side.rank(price))?;
        let order =
            Order { id, entered, earlier: None, later: None, level, shares, attribution, locate, side };
        let name = match self.orders.put(order) {
            Ok(name) => name,
            Err(NoMemory) => {
                self.end_level_if_empty(locate, side, level);
                return Err(Refused::NoMemory);
            }
        };
        self.ids.fill(vacancy, id, name);
        self.most_orders = self.most_orders.max(self.ids.len());
        self.most_levels = self.most_levels.max(self.levels_live);
        self.link(name, level, shares);
        Ok(())
    }

    /// Takes shares from an order, which ends when it has none left.
    #[inline]
    fn reduce(&mut self, header: &Header, id: u64, shares: u32) -> Result<(), Refused> {
        let name = self.find(header, id)?;
        let order = self.order_mut(name);
        if shares == 0 {
            return Err(Refused::NoShares(id));
        }
        match order.shares.checked_sub(shares) {
            None => Err(Refused::TooManyShares { order: id, has: order.shares, says: shares }),
            Some(0) => {
                self.end_order(id, name);
                Ok(())
            }
            Some(left) => {
                order.shares = left;
                let level = order.level;
                self.level_mut(level).shares -= u64::from(shares);
                Ok(())
            }
        }
    }

    /// Gives an order a new number, price and size, and with them the last place of a queue.
    #[inline]
    fn replace(
        &mut self,
        header: &Header,
        old: u64,
        new: u64,
        shares: u32,
        price: u32,
        entered: u64,
    ) -> Result<(), Refused> {
        let name = self.find(header, old)?;
        if shares == 0 {
            return Err(Refused::NoShares(new));
        }
        if self.ids.get(new).is_some() {
            return Err(Refused::DuplicateOrder(new));
        }
        let Order { locate, side, .. } = *self.order(name);
        let level = self.level_at_or_instead(locate, side, side.rank(price), name)?;
        self.unlink(name);
        self.ids.rename(old, new, name);
        let order = self.order_mut(name);
        let before = core::mem::replace(&mut order.level, level);
        (order.id, order.shares, order.entered) = (new, shares, entered);
        self.link(name, level, shares);
        self.end_level_if_empty(locate, side, before);
        self.most_levels = self.most_levels.max(self.levels_live);
        Ok(())
    }

    /// The order with this number, of the stock that the message is about.
    #[inline(always)]
    fn find(&self, header: &Header, id: u64) -> Result<P::Name, Refused> {
        let name = self.ids.get(id).ok_or(Refused::UnknownOrder(id))?;
        let (is, says) = (self.order(name).locate, header.locate.get());
        if is != says {
            return Err(Refused::OtherStock { order: id, is, says });
        }
        Ok(name)
    }

    /// The level of a price, which is made if there is none. Without an order it must not stay.
    #[inline]
    fn level_at(&mut self, locate: u16, side: Side, rank: u32) -> Result<P::Name, Refused> {
        let run = self.sides[usize::from(locate)][side as usize];
        match self.shelves.find(run, rank) {
            Ok(at) => self.shelves.list(run)[at].level.ok_or(Refused::NoMemory),
            Err(_) if self.levels_live >= self.plan.levels => Err(Refused::LevelsFull(self.plan.levels)),
            Err(at) => self.make_level(locate, side, rank, at),
        }
    }

    /// As [`Books::level_at`], for an order that leaves another level, which may be the last one that there may be.
    #[inline]
    fn level_at_or_instead(
        &mut self,
        locate: u16,
        side: Side,
        rank: u32,
        leaving: P::Name,
    ) -> Result<P::Name, Refused> {
        let run = self.sides[usize::from(locate)][side as usize];
        match self.shelves.find(run, rank) {
            Ok(at) => self.shelves.list(run)[at].level.ok_or(Refused::NoMemory),
            Err(at) => {
                let ends = usize::from(self.level(self.order(leaving).level).orders == 1);
                if self.levels_live - ends >= self.plan.levels {
                    return Err(Refused::LevelsFull(self.plan.levels));
                }
                self.make_level(locate, side, rank, at)
            }
        }
    }

    #[inline]
    fn make_level(&mut self, locate: u16, side: Side, rank: u32, at: usize) -> Result<P::Name, Refused> {
        let run = &mut self.sides[usize::from(locate)][side as usize];
        self.shelves.make_room(run).map_err(|NoRun| Refused::LevelsFull(self.plan.levels))?;
        let level = Level { first: None, last: None, shares: 0, rank, orders: 0 };
        let name = self.levels.put(level).map_err(|NoMemory| Refused::NoMemory)?;
        self.shelves.insert(run, at, Entry { rank, level: Some(name) });
        self.levels_live += 1;
        self.locates = self.locates.max(usize::from(locate) + 1);
        Ok(name)
    }

    /// Puts an order at the end of the queue of its level.
    #[inline]
    fn link(&mut self, name: P::Name, level: P::Name, shares: u32) {
        let level = self.level_mut(level);
        let last = level.last.replace(name);
        level.shares += u64::from(shares);
        level.orders += 1;
        match last {
            None => level.first = Some(name),
            Some(last) => self.order_mut(last).later = Some(name),
        }
        let order = self.order_mut(name);
        (order.earlier, order.later) = (last, None);
    }

    /// Takes an order out of the queue of its level, which may be left empty.
    #[inline]
    fn unlink(&mut self, name: P::Name) {
        let Order { earlier, later, level, shares, .. } = *self.order(name);
        if let Some(earlier) = earlier {
            self.order_mut(earlier).later = later;
        }
        if let Some(later) = later {
            self.order_mut(later).earlier = earlier;
        }
        let level = self.level_mut(level);
        if earlier.is_none() {
            level.first = later;
        }
        if later.is_none() {
            level.last = earlier;
        }
        level.shares -= u64::from(shares);
        level.orders -= 1;
    }

    #[inline]
    fn end_order(&mut self, id: u64, name: P::Name) {
        let Order { locate, side, level, .. } = *self.order(name);
        self.unlink(name);
        self.ids.remove(id);
        // SAFETY: an order that was live; it was just taken out of the ids and out of its queue, so nothing names it.
        unsafe { self.orders.take(name) };
        self.end_level_if_empty(locate, side, level);
    }

    #[inline]
    fn end_level_if_empty(&mut self, locate: u16, side: Side, name: P::Name) {
        let level = self.level(name);
        if level.orders > 0 {
            return;
        }
        let rank = level.rank;
        let run = &mut self.sides[usize::from(locate)][side as usize];
        if let Ok(at) = self.shelves.find(*run, rank) {
            self.shelves.remove(run, at);
            self.levels_live -= 1;
            // SAFETY: a level that was live; no order has it, and it was just taken out of its side, so nothing names it.
            unsafe { self.levels.take(name) };
        }
    }

    /// The order of a name from `ids` or from a queue, the only places where this type keeps names of orders.
    #[inline(always)]
    fn order(&self, name: P::Name) -> &Order<P::Name> {
        // SAFETY: names come into `ids` and queues when their order is put, and `end_order` takes them out before it is
        // taken.
        unsafe { self.orders.get(name) }
    }

    #[inline(always)]
    fn order_mut(&mut self, name: P::Name) -> &mut Order<P::Name> {
        // SAFETY: names come into `ids` and queues when their order is put, and `end_order` takes them out before it is
        // taken.
        unsafe { self.orders.get_mut(name) }
    }

    /// The level of a name from `sides` or from an order, the only places where this type keeps names of levels.
    #[inline(always)]
    fn level(&self, name: P::Name) -> &Level<P::Name> {
        // SAFETY: names come into `sides` when their level is put, and into orders from there; a level is taken when it
        // has no orders, after it was taken out of its side.
        unsafe { self.levels.get(name) }
    }

    #[inline(always)]
    fn level_mut(&mut self, name: P::Name) -> &mut Level<P::Name> {
        // SAFETY: names come into `sides` when their level is put, and into orders from there; a level is taken when it
        // has no orders, after it was taken out of its side.
        unsafe { self.levels.get_mut(name) }
    }
}

/// What the books say. None of this is for the hot path.
impl<P: Places> Books<P> {
    /// Orders that are live.
    pub const fn len(&self) -> usize {
        self.ids.len()
    }

    /// Whether no order is live.
    pub const fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    /// Levels that have orders.
    pub const fn levels_live(&self) -> usize {
        self.levels_live
    }

    /// The most orders, and the most levels, that were there at once.
    pub const fn most(&self) -> (usize, usize) {
        (self.most_orders, self.most_levels)
    }

    /// The plan they were made with.
    pub const fn plan(&self) -> Plan {
        self.plan
    }

    /// The bytes of tables, apart from orders and levels.
    pub fn table_bytes(&self) -> usize {
        self.ids.bytes() + self.shelves.bytes() + size_of_val(&*self.sides)
    }

    /// The homes of orders and levels.
    pub(crate) const fn homes_mut(&mut self) -> (&mut P::Orders, &mut P::Levels) {
        (&mut self.orders, &mut self.levels)
    }

    /// The locate codes of all orders so far.
    pub fn locates(&self) -> impl Iterator<Item = u16> + use<P> {
        (0..=u16::MAX).take(self.locates)
    }

    /// The best level of a side.
    pub fn best(&self, locate: u16, side: Side) -> Option<Depth> {
        self.depth(locate, side).next()
    }

    /// The levels of a side, the best first.
    pub fn depth(&self, locate: u16, side: Side) -> impl Iterator<Item = Depth> + '_ {
        self.names_of_levels(locate, side).map(move |name| {
            let level = self.level(name);
            Depth { price: side.rank(level.rank), shares: level.shares, orders: level.orders }
        })
    }

    fn names_of_levels(&self, locate: u16, side: Side) -> impl Iterator<Item = P::Name> + '_ {
        let run = self.sides[usize::from(locate)][side as usize];
        self.shelves.list(run).iter().rev().filter_map(|entry| entry.level)
    }

    /// The orders of a side with their prices: the best price first, and of a price the oldest first.
    pub fn queue(&self, locate: u16, side: Side) -> impl Iterator<Item = (u32, &Order<P::Name>)> + '_ {
        self.names_of_levels(locate, side).flat_map(move |name| {
            let level = self.level(name);
            let first = level.first.map(|name| self.order(name));
            let orders = core::iter::successors(first, |order| order.later.map(|later| self.order(later)));
            orders.map(move |order| (side.rank(level.rank), order))
        })
    }

    /// Where an order stands, if it is live.
    pub fn standing(&self, id: u64) -> Option<Standing> {
        let order = self.order(self.ids.get(id)?);
        let Order { locate, side, shares, .. } = *order;
        let id_of = |name: Option<P::Name>| name.map(|name| self.order(name).id);
        let price = side.rank(self.level(order.level).rank);
        Some(Standing {
            locate,
            side,
            price,
            shares,
            earlier: id_of(order.earlier),
            later: id_of(order.later),
        })
    }

    /// The sum of all orders at their places: equal books have equal sums.
    pub fn checksum(&self) -> u64 {
        let mut sum = 0_u64;
        let mut mix = |value: u64| {
            sum = (sum ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
        };
        for locate in self.locates() {
            for side in Side::BOTH {
                for (price, order) in self.queue(locate, side) {
                    mix(u64::from(locate) << 33 | (side as u64) << 32 | u64::from(price));
                    mix(order.id);
                    mix(u64::from(order.shares) << 32 | u64::from(u32::from_be_bytes(order.attribution)));
                    mix(order.entered);
                }
            }
        }
        sum
    }

    /// Looks for what must hold: sums of levels, links in both directions, each order under its number, and no crossed
    /// order of levels.
    ///
    /// # Errors
    /// The first thing that does not hold.
    pub fn check(&self) -> Result<(), &'static str> {
        let (mut orders, mut levels) = (0, 0);
        for locate in self.locates() {
            for side in Side::BOTH {
                let mut better = None;
                for name in self.names_of_levels(locate, side) {
                    let level = self.level(name);
                    levels += 1;
                    if better.replace(level.rank).is_some_and(|better| better <= level.rank) {
                        return Err("the levels of a side are not sorted");
                    }
                    let (mut shares, mut count, mut earlier, mut next) = (0, 0, None, level.first);
                    while let Some(current) = next {
                        let order = self.order(current);
                        if order.earlier != earlier
                            || order.level != name
                            || self.ids.get(order.id) != Some(current)
                        {
                            return Err("an order is not where its neighbours or its number say");
                        }
                        if (order.locate, order.side) != (locate, side) || order.shares == 0 {
                            return Err("an order is of another side, or has no shares");
                        }
                        shares += u64::from(order.shares);
                        count += 1;
                        (earlier, next) = (next, order.later);
                    }
                    if level.last != earlier || (level.shares, level.orders) != (shares, count) || count == 0
                    {
                        return Err("a level does not say what its orders say");
                    }
                    orders += count as usize;
                }
            }
        }
        if (orders, levels) != (self.ids.len(), self.levels_live) {
            return Err("there are more numbers or fewer than orders in queues");
        }
        Ok(())
    }

    /// Ends all orders one by one, in the order of the table of numbers.
    pub fn clear(&mut self) {
        self.end_objects();
        self.forget();
    }

    /// Ends all orders and levels, whose names must be forgotten before anything else is done.
    fn end_objects(&mut self) {
        for name in self.ids.names() {
            // SAFETY: a name in the ids is of a live order; the caller has all names of orders forgotten.
            unsafe { self.orders.take(name) };
        }
        for run in self.sides[..self.locates].iter().flatten() {
            for entry in self.shelves.list(*run) {
                if let Some(level) = entry.level {
                    // SAFETY: a name in a side is of a live level; the caller has all names of levels forgotten.
                    unsafe { self.levels.take(level) };
                }
            }
        }
    }

    /// Ends all orders in the way that is fastest for their home, and says how long that took, without the tables.
    pub fn end(mut self) -> Duration {
        if P::END_TOGETHER {
            self.forget();
            (self.ids, self.shelves, self.sides) = (Ids::new(0), Shelves::new(0), Vec::new());
            let start = Instant::now();
            drop(self);
            return start.elapsed();
        }
        let start = Instant::now();
        self.end_objects();
        let time = start.elapsed();
        self.forget();
        time
    }

    /// Forgets all orders, whose memory is not freed: for homes that end with all they have.
    pub fn forget(&mut self) {
        self.ids.clear();
        self.sides[..self.locates].fill([Run::EMPTY; 2]);
        self.locates = 0;
        self.shelves.clear();
        self.levels_live = 0;
    }
}

impl<P: Places> Drop for Books<P> {
    fn drop(&mut self) {
        if !P::END_TOGETHER {
            self.clear();
        }
    }
}
