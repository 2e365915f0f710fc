//! The books once more, from the specification alone: offsets, `BTreeMap`, `VecDeque` (design/exchange.md `.naive`).
//!
//! It shares nothing with the books that it is compared with, not even how messages are read.

use std::collections::{BTreeMap, HashMap, VecDeque};

/// The lengths of chapter 4 of the specification.
const LENGTHS: &str =
    "S12 R39 H25 Y20 L26 V35 W12 K28 J35 h21 A36 F40 E31 C36 X23 D19 U35 P44 Q40 B19 I50 N20 O48";

/// An order in its queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NaiveOrder {
    pub id: u64,
    pub shares: u32,
}

/// Queues by price, for each stock and side.
pub type NaiveBooks = BTreeMap<(u16, u8), BTreeMap<u32, VecDeque<NaiveOrder>>>;

/// What was read so far, and where it ended.
#[derive(Debug, Default)]
pub struct Naive {
    pub books: NaiveBooks,
    /// Stock, side and price of each order.
    places: HashMap<u64, (u16, u8, u32)>,
    pub messages: u64,
    at: usize,
    has_ended: bool,
    lengths: HashMap<u8, usize>,
    /// The most orders that may be live.
    most: usize,
}

fn number(bytes: &[u8], at: usize, size: usize) -> u64 {
    bytes[at..at + size].iter().fold(0, |value, byte| value << 8 | u64::from(*byte))
}

impl Naive {
    /// Empty books, for at most that many orders.
    pub fn new(most: usize) -> Self {
        let length = |word: &str| (word.as_bytes()[0], word[1..].parse().expect("a number"));
        Self { lengths: LENGTHS.split(' ').map(length).collect(), most, ..Self::default() }
    }

    /// Reads the next message of a file. `None` is the end.
    ///
    /// # Errors
    /// One word for what is wrong; nothing has changed then.
    pub fn step(&mut self, file: &[u8]) -> Option<Result<(), &'static str>> {
        let rest = &file[self.at..];
        if rest.is_empty() {
            return None;
        }
        if self.has_ended {
            return Some(Err("after-end"));
        }
        if rest.len() < 2 || rest.len() < 2 + number(rest, 0, 2) as usize {
            return Some(Err("cut"));
        }
        let length = number(rest, 0, 2) as usize;
        if length == 0 {
            self.has_ended = true;
            self.at += 2;
            return self.step(file);
        }
        Some(self.message(&rest[2..2 + length]).inspect(|()| {
            self.at += 2 + length;
            self.messages += 1;
        }))
    }

    fn message(&mut self, message: &[u8]) -> Result<(), &'static str> {
        match self.lengths.get(&message[0]) {
            None => return Err("type"),
            Some(length) if *length != message.len() => return Err("length"),
            Some(_) => {}
        }
        let stock = number(message, 1, 2) as u16;
        let id = if message.len() >= 19 { number(message, 11, 8) } else { 0 };
        match message[0] {
            b'A' | b'F' => {
                let (side, shares, price) =
                    (message[19], number(message, 20, 4) as u32, number(message, 32, 4) as u32);
                if side != b'B' && side != b'S' {
                    return Err("no-side");
                }
                self.add(id, stock, side, price, shares)
            }
            b'E' | b'C' | b'X' => self.reduce(id, stock, number(message, 19, 4) as u32),
            b'D' => {
                let shares = self.shares(id, stock)?;
                self.reduce(id, stock, shares)
            }
            b'U' => {
                let (new, shares) = (number(message, 19, 8), number(message, 27, 4) as u32);
                let old = self.shares(id, stock)?;
                let (_, side, _) = self.places[&id];
                if shares == 0 {
                    return Err("no-shares");
                }
                if self.places.contains_key(&new) {
                    return Err("duplicate-order");
                }
                self.reduce(id, stock, old)?;
                self.add(new, stock, side, number(message, 31, 4) as u32, shares)
            }
            _ => Ok(()),
        }
    }

    fn add(&mut self, id: u64, stock: u16, side: u8, price: u32, shares: u32) -> Result<(), &'static str> {
        if shares == 0 {
            return Err("no-shares");
        }
        if self.places.contains_key(&id) {
            return Err("duplicate-order");
        }
        if self.places.len() == self.most {
            return Err("orders-full");
        }
        self.places.insert(id, (stock, side, price));
        let queues = self.books.entry((stock, side)).or_default();
        queues.entry(price).or_default().push_back(NaiveOrder { id, shares });
        Ok(())
    }

    fn shares(&self, id: u64, stock: u16) -> Result<u32, &'static str> {
        let (is, side, price) = *self.places.get(&id).ok_or("unknown-order")?;
        if is != stock {
            return Err("other-stock");
        }
        let queue = &self.books[&(stock, side)][&price];
        Ok(queue.iter().find(|order| order.id == id).expect("an order is in its queue").shares)
    }

    fn reduce(&mut self, id: u64, stock: u16, shares: u32) -> Result<(), &'static str> {
        let has = self.shares(id, stock)?;
        if shares == 0 {
            return Err("no-shares");
        }
        if shares > has {
            return Err("too-many-shares");
        }
        let (_, side, price) = self.places[&id];
        let queues = self.books.get_mut(&(stock, side)).expect("the book of an order");
        let queue = queues.get_mut(&price).expect("the queue of an order");
        if shares < has {
            queue.iter_mut().filter(|order| order.id == id).for_each(|order| order.shares -= shares);
            return Ok(());
        }
        queue.retain(|order| order.id != id);
        if queue.is_empty() {
            queues.remove(&price);
        }
        self.places.remove(&id);
        Ok(())
    }
}
