//! From the number of an order to its name: a table of fixed size, all of it touched when it is made
//! (design/exchange.md `.book.ids`).

use crate::wide::table;

/// The golden ratio, for a product whose high bits depend on all bits of a number.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

/// Numbers that follow each other within as many lie together.
const TOGETHER: u32 = 64;

/// A table with at least twice the places that it needs. A number lies at its home, or at the first free place behind it.
/// Exchanges number orders one after the other, and most orders live for moments only: so numbers that are near each other
/// have homes that are, and those of young orders are in the cache. What is removed leaves no mark: those behind it move
/// up.
pub struct Ids<N> {
    places: Vec<(u64, Option<N>)>,
    shift: u32,
    len: usize,
    most: usize,
}

/// A free place for a number.
#[derive(Clone, Copy, Debug)]
pub struct Vacancy(usize);

/// Why there is no free place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// The number is in the table.
    Duplicate,
    /// There are as many numbers as there may be.
    Full,
}

impl<N: Copy> Ids<N> {
    /// A table for that many numbers, whose memory has been written to.
    pub fn new(most: usize) -> Self {
        let size = most.saturating_mul(2).max(2 * TOGETHER as usize).next_power_of_two();
        Self {
            places: table((0, None), size),
            shift: u64::BITS - size.trailing_zeros() + TOGETHER.trailing_zeros(),
            len: 0,
            most,
        }
    }

    /// The numbers in it.
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The bytes of the table.
    pub fn bytes(&self) -> usize {
        size_of_val(&*self.places)
    }

    #[inline(always)]
    const fn home(&self, id: u64) -> usize {
        let group = (id / TOGETHER as u64).wrapping_mul(SPREAD) >> self.shift;
        (group * TOGETHER as u64 + id % TOGETHER as u64) as usize
    }

    #[inline(always)]
    const fn mask(&self) -> usize {
        self.places.len() - 1
    }

    /// Where the number is, or where it would be: there is always a free place.
    #[inline(always)]
    fn place(&self, id: u64) -> usize {
        let mut at = self.home(id);
        loop {
            let (found, name) = &self.places[at & self.mask()];
            if name.is_none() || *found == id {
                return at & self.mask();
            }
            at += 1;
        }
    }

    /// The name that has this number.
    #[inline]
    pub fn get(&self, id: u64) -> Option<N> {
        self.places[self.place(id)].1
    }

    /// A place for a number that is not there.
    ///
    /// # Errors
    /// If it is there, or the table is full.
    #[inline]
    pub fn vacancy(&self, id: u64) -> Result<Vacancy, Taken> {
        let at = self.place(id);
        match self.places[at].1 {
            Some(_) => Err(Taken::Duplicate),
            None if self.len == self.most => Err(Taken::Full),
            None => Ok(Vacancy(at)),
        }
    }

    /// Puts a number where a vacancy was found for it, with no change since.
    #[inline]
    pub fn fill(&mut self, Vacancy(at): Vacancy, id: u64, name: N) {
        debug_assert!(self.places[at].1.is_none() && self.place(id) == at);
        self.places[at] = (id, Some(name));
        self.len += 1;
    }

    /// Takes a number out.
    #[inline]
    pub fn remove(&mut self, id: u64) -> Option<N> {
        let mut hole = self.place(id);
        let name = self.places[hole].1.take()?;
        self.len -= 1;
        let mask = self.mask();
        let mut at = hole;
        loop {
            at = (at + 1) & mask;
            let (behind, Some(_)) = self.places[at] else { return Some(name) };
            // It may move up if the hole is not before its home.
            let distance = |from: usize| at.wrapping_sub(from) & mask;
            if distance(self.home(behind) & mask) >= distance(hole) {
                self.places.swap(hole, at);
                hole = at;
            }
        }
    }

    /// Replaces a number by another, which has a free place, and keeps the name.
    #[inline]
    pub fn rename(&mut self, old: u64, new: u64, name: N) {
        self.remove(old);
        let at = self.place(new);
        self.fill(Vacancy(at), new, name);
    }

    /// All names.
    pub fn names(&self) -> impl Iterator<Item = N> + '_ {
        self.places.iter().filter_map(|(_, name)| *name)
    }

    /// Takes all out.
    pub fn clear(&mut self) {
        self.places.iter_mut().for_each(|place| *place = (0, None));
        self.len = 0;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;
    use crate::random::Random;

    /// Numbers that are near each other, and such as collide.
    #[test]
    fn agrees_with_a_standard_map() {
        for shift in [0_u32, 20, 52] {
            let (mut ids, mut map) = (Ids::new(100), HashMap::new());
            let mut random = Random::new(u64::from(shift));
            for turn in 0..20_000_u32 {
                let id = random.below(150) << shift;
                if random.below(2) == 0 {
                    match ids.vacancy(id) {
                        Ok(place) => {
                            ids.fill(place, id, turn);
                            assert_eq!(map.insert(id, turn), None);
                        }
                        Err(Taken::Duplicate) => assert!(map.contains_key(&id)),
                        Err(Taken::Full) => assert_eq!(map.len(), 100),
                    }
                } else {
                    assert_eq!(ids.remove(id), map.remove(&id));
                }
                assert_eq!(ids.len(), map.len());
                let probe = random.below(150) << shift;
                assert_eq!(ids.get(probe), map.get(&probe).copied());
            }
        }
    }
}
