//! A process that maps the image, looks everything up, and collects a heap whose objects refer to it.

use std::io::{BufRead, stdin};
use std::time::Instant;

use core::ptr::NonNull;
use core::time::Duration;

use tripoint::gc::{Heap, HeapOptions, Tag};
use tripoint::{ArenaVm, ArenaVmOptions};

use crate::mapping::{FileMemory, Linux, Mapped, header_of, map};
use crate::{Options, instruments, sharing};

type Outcome = Result<(), Box<dyn core::error::Error>>;

/// Writes `ready` when all pages were read. Writes how they are shared when the parent asks, and ends when the parent
/// closes the pipe.
pub(crate) fn read(options: &Options, is_displaced: bool) -> Outcome {
    let path = options.image.as_deref().ok_or("a reader needs an image")?;
    if is_displaced {
        let header = header_of(&mut std::fs::File::open(path)?)?;
        Linux.take(header.preferred_base(), header.size())?;
    }
    let began = Instant::now();
    let mapped = map(&Linux, path)?;
    let opened = began.elapsed();
    use_frozen(&mapped, options.instruments)?;
    println!("ready {} {}", mapped.relocated.map_or(0, |count| count + 1), opened.as_micros());
    for line in stdin().lock().lines() {
        line?;
        let sharing = sharing::of_mapping(mapped.memory.base().addr().get());
        println!("{}", sharing.map_or("unknown".to_owned(), sharing::Sharing::line));
    }
    Ok(())
}

/// Looks all instruments up, and collects while roots and objects refer to them.
fn use_frozen(mapped: &Mapped, count: usize) -> Outcome {
    let arena = ArenaVm::create(ArenaVmOptions { reserve: 64 << 20, ..Default::default() })?;
    let heap = Heap::create(&arena, HeapOptions::default())?;
    // SAFETY: the mapping stays for the rest of the process, is read-only, and refers to nothing but itself: it is an
    // image.
    let segment = unsafe { heap.register_frozen(mapped.memory, mapped.image.header().objects()) }?;
    // SAFETY: the image has records of this format, which writes nothing that the scan does not change.
    let objects = unsafe { segment.check(&instruments::Records) }?;
    assert_eq!(objects, mapped.image.header().count());
    let mut found = core::ptr::null_mut::<u8>();
    let slot = NonNull::from(&mut found);
    // SAFETY: the slot outlives the root, and only this thread uses it.
    let _root = unsafe { heap.root_table(slot, 1, Tag::default()) }?;
    for number in 0..count {
        let (instrument, name) =
            instruments::look_up(&mapped.image, number).ok_or("an instrument is missing")?;
        assert_eq!(name, instruments::name_of(number).as_bytes());
        assert!(heap.is_in_frozen(instrument));
        if number % (count / 3 + 1) == 0 {
            // SAFETY: the slot is the variable above.
            unsafe { slot.write(instrument.cast_mut()) };
            // A collection while a root refers to a frozen object, in which it leaves no mark.
            let collected = heap.collect(Duration::MAX)?;
            assert_eq!(collected.kept, 0);
        }
    }
    assert!(!heap.is_in_frozen(slot.as_ptr().cast()));
    Ok(())
}
