//! Objects of one layout, on their way between a store and its caller.

#![forbid(unsafe_code)]

use core::ptr::NonNull;

/// Up to [`Magazine::MAX`] objects of one layout: what `Store::alloc_many` adds to,
/// and what `Store::free_many` empties.
///
/// It is a list of addresses, and does not own the objects: those of a magazine that is dropped stay allocated.
#[derive(Debug)]
pub struct Magazine {
    objects: [Option<NonNull<u8>>; Self::MAX],
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
        Self { objects: [None; Self::MAX], len: 0, most }
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

    /// Adds an object.
    ///
    /// # Errors
    /// The object, if there is no room for it.
    #[inline]
    pub fn push(&mut self, object: NonNull<u8>) -> Result<(), NonNull<u8>> {
        // No index: a bound that the compiler does not see would be code that can panic.
        let Some(place) = self.objects.get_mut(self.len).filter(|_| self.len < self.most) else {
            return Err(object);
        };
        *place = Some(object);
        self.len += 1;
        Ok(())
    }

    /// Takes the last object out.
    #[inline]
    pub fn pop(&mut self) -> Option<NonNull<u8>> {
        self.len = self.len.checked_sub(1)?;
        self.objects.get(self.len).copied().flatten()
    }

    /// The object that [`Magazine::pop`] would take out.
    #[inline]
    #[must_use]
    pub fn next_out(&self) -> Option<NonNull<u8>> {
        self.objects.get(self.len.checked_sub(1)?).copied().flatten()
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
        assert_eq!((magazine.len(), magazine.room(), magazine.next_out()), (2, 0, Some(at(16))));
        assert_eq!((magazine.pop(), magazine.pop(), magazine.pop()), (Some(at(16)), Some(at(32)), None));
        assert!(magazine.is_empty());
    }
}
