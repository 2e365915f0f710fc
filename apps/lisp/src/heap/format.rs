//! What the collector knows of objects: where each ends, and where its references are.

use core::ptr::NonNull;

use tripoint::author::Block;
use tripoint::gc::{Format, MovableFormat, Scan};

use super::keys::Keys;
use super::object::{Kind, Object};
use super::value::is_reference;

/// The format of all objects of Lisp.
#[derive(Debug)]
pub(crate) struct Objects;

// SAFETY: a header is written before an object is committed, and never changed; the object was reserved with the
// header's size. Fields that are values are passed on if they are references, and so are weak keys.
unsafe impl Format for Objects {
    unsafe fn skip(&self, object: NonNull<u8>) -> usize {
        // SAFETY: the caller promises an object.
        unsafe { Object::at(object) }.header().size()
    }

    unsafe fn type_name(&self, object: NonNull<u8>) -> Option<&'static str> {
        // SAFETY: the caller promises an object.
        Some(unsafe { Object::at(object) }.header().kind().name())
    }

    unsafe fn dependent(&self, object: NonNull<u8>) -> *mut u8 {
        // SAFETY: the caller promises an object. Only keys are in the pool whose objects have dependent ones.
        Keys::of(unsafe { Object::at(object) }).dependent()
    }

    unsafe fn scan(&self, objects: Block, scan: &mut Scan<'_>) {
        let mut at = 0;
        while at < objects.size() {
            // SAFETY: the caller promises whole objects in a row.
            let object = unsafe { Object::at(objects.base().add(at)) };
            let header = object.header();
            if header.kind() == Kind::Keys {
                Keys::of(object).scan(scan);
            }
            for field in header.values() {
                // SAFETY: the field is in the object, which no thread uses meanwhile.
                let word = unsafe { object.place(field).as_mut() };
                if is_reference(*word) {
                    scan.fix(word);
                }
            }
            at += header.size();
        }
    }
}

// SAFETY: nothing in an object depends on its address but the references to it. Keys and their values, to which keys
// refer in their own way, are in pools whose objects do not move.
unsafe impl MovableFormat for Objects {}
