//! Objects of one layout, on their way between a store and its caller.

#![forbid(unsafe_code)]

use core::mem;
use core::ptr::NonNull;

/// Up to [`Magazine::MAX`] objects of one layout: what `Store::alloc_many` adds to,
/// and what `Store::free_many` empties.
///
/// It is a list of addresses, and does not own the objects: those of a magazine that is dropped stay allocated.
#[derive(Debug)]
pub struct Magazine {
    /// The objects, and behind them what was there before.
    objects: [NonNull<u8>; Self::MAX],
    len: usize,
    most: usize,
}

impl Magazine {
    /// The most objects that any magazine has.
    pub const MAX: usize = 64;

    /// An empty magazine for `most` objects, or for [`Magazine::MAX`] if that is less.
    #[must_use]
    pub const fn up_to(most: usize) -> Self {
        let most = if most < Self::MAX { most } else { Self::MAX };
        Self { objects: [NonNull::dangling(); Self::MAX], len: 0, most }
    }

    /// The number of objects.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether it has no object.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The number of objects that it has room for.
    #[must_use]
    pub const fn room(&self) -> usize {
        self.most.saturating_sub(self.len)
    }

    /// Returns the objects, in the order in which they were added.
    #[inline]
    #[must_use]
    pub fn as_slice(&self) -> &[NonNull<u8>] {
        // No index: a bound that the compiler does not see would be code that can panic.
        self.objects.get(..self.len).unwrap_or_default()
    }

    /// Adds an object.
    ///
    /// # Errors
    /// The object, if there is no room for it.
    #[inline]
    pub fn push(&mut self, object: NonNull<u8>) -> Result<(), NonNull<u8>> {
        let Some(place) = self.objects.get_mut(self.len).filter(|_| self.len < self.most) else {
            return Err(object);
        };
        *place = object;
        self.len += 1;
        Ok(())
    }

    /// Adds objects while there is room. It takes no further one from the iterator.
    #[inline]
    pub fn extend(&mut self, objects: impl Iterator<Item = NonNull<u8>>) {
        let places = self.objects.get_mut(self.len..self.most).unwrap_or_default();
        let added = places.iter_mut().zip(objects).map(|(place, object)| *place = object).count();
        self.len += added;
    }

    /// Replaces each object by what `replace` returns for it. If that is `None`, takes the object out. If `replace` unwinds, the
    /// magazine is empty, and its objects stay allocated.
    #[inline]
    pub fn replace_each(&mut self, mut replace: impl FnMut(NonNull<u8>) -> Option<NonNull<u8>>) {
        // Objects that moved down are there twice meanwhile.
        let (mut kept, len) = (0, mem::take(&mut self.len));
        for index in 0..len {
            if let Some(object) = self.objects.get(index).and_then(|object| replace(*object))
                && let Some(place) = self.objects.get_mut(kept)
            {
                *place = object;
                kept += 1;
            }
        }
        self.len = kept;
    }

    /// Takes the last object out.
    #[inline]
    pub fn pop(&mut self) -> Option<NonNull<u8>> {
        self.len = self.len.checked_sub(1)?;
        self.objects.get(self.len).copied()
    }

    /// Takes all objects out.
    #[inline]
    pub const fn clear(&mut self) {
        self.len = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(address: usize) -> NonNull<u8> {
        NonNull::without_provenance(address.try_into().unwrap())
    }

    #[test]
    fn a_magazine_has_room_for_as_many_as_it_was_made_for() {
        assert_eq!(Magazine::up_to(usize::MAX).room(), Magazine::MAX);
        assert_eq!(Magazine::up_to(0).push(at(16)), Err(at(16)));
        let mut magazine = Magazine::up_to(2);
        assert_eq!(
            (magazine.push(at(32)), magazine.push(at(16)), magazine.push(at(48))),
            (Ok(()), Ok(()), Err(at(48)))
        );
        assert_eq!((magazine.as_slice(), magazine.room()), (&[at(32), at(16)][..], 0));
        assert_eq!((magazine.pop(), magazine.pop(), magazine.pop()), (Some(at(16)), Some(at(32)), None));
        assert!(magazine.is_empty());
    }

    #[test]
    fn objects_are_added_as_long_as_there_is_room_and_no_further_one_is_asked_for() {
        let mut magazine = Magazine::up_to(3);
        assert_eq!(magazine.push(at(16)), Ok(()));
        let mut more = (2..10).map(|number| at(number * 16));
        magazine.extend(more.by_ref());
        assert_eq!(magazine.as_slice(), [at(16), at(32), at(48)]);
        assert_eq!(more.next(), Some(at(64)), "the next one was not taken");
        magazine.extend(more.by_ref());
        assert_eq!((magazine.len(), more.next()), (3, Some(at(80))));
    }

    #[test]
    fn objects_that_are_not_replaced_are_taken_out() {
        let mut magazine = Magazine::up_to(4);
        magazine.extend((1..5).map(|number| at(number * 16)));
        magazine.replace_each(|object| (object != at(32)).then(|| at(object.addr().get() + 1)));
        assert_eq!(magazine.as_slice(), [at(17), at(49), at(65)]);
        assert_eq!(magazine.room(), 1);
        magazine.clear();
        assert_eq!((magazine.as_slice(), magazine.room()), (&[][..], 4));
    }

    #[test]
    fn no_object_is_in_a_magazine_twice_if_a_replacement_unwinds() {
        let mut magazine = Magazine::up_to(4);
        magazine.extend((1..5).map(|number| at(number * 16)));
        let unwound = std::panic::catch_unwind(core::panic::AssertUnwindSafe(|| {
            magazine.replace_each(|object| match object.addr().get() {
                16 => None,
                64 => panic!("the test's"),
                _ => Some(object),
            });
        }));
        assert!(unwound.is_err());
        assert_eq!((magazine.as_slice(), magazine.room()), (&[][..], 4));
    }
}
