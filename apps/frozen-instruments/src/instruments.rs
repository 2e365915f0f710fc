//! Instruments, their names, and a directory of them by number: objects of automatic pools.
//!
//! ```text
//!   directory   kind  count  bucket ...              a bucket refers to the newest instrument in it
//!   instrument  kind  number  lot  name  next        the next instrument of its bucket
//!   name        kind  length  bytes ...              in a pool of leaves
//! ```

use core::alloc::Layout;
use core::ptr::{self, NonNull};

use tripoint::author::{Block, SymmetricFence};
use tripoint::gc::{Ams, Format, Heap, Image, Lo, Mutator, MutatorBuffer, Scan, SweptOptions, Tag};
use tripoint::{AllocationPoint, Arena, BufferKind, Result};

/// The fingerprint of images whose objects have this layout.
pub(crate) const FINGERPRINT: u64 = 0x1157_0003;

const WORD: usize = size_of::<usize>();
const DIRECTORY: usize = 2;
const INSTRUMENT: usize = 4;
const NAME: usize = 6;
/// The words of an instrument.
const INSTRUMENT_WORDS: usize = 5;
/// The words in front of buckets, and of the bytes of a name.
const FRONT: usize = 2;

/// The format of all three.
#[derive(Debug)]
pub(crate) struct Records;

/// The words of an object with `bytes` bytes behind its first two words.
fn words_for(bytes: usize) -> usize {
    FRONT + bytes.div_ceil(WORD)
}

// SAFETY: kind, count and length are written before an object is committed, and never changed. The only references are
// those of buckets, to names, and to the next instrument, and all are passed on.
unsafe impl Format for Records {
    unsafe fn skip(&self, object: NonNull<u8>) -> usize {
        let words = object.cast::<usize>();
        // SAFETY: the caller promises an object, which begins with two words.
        let [kind, count] = unsafe { words.cast::<[usize; 2]>().read() };
        WORD * match kind {
            DIRECTORY => FRONT + count,
            INSTRUMENT => INSTRUMENT_WORDS,
            _ => words_for(count),
        }
    }

    unsafe fn type_name(&self, object: NonNull<u8>) -> Option<&'static str> {
        // SAFETY: the caller promises an object, which begins with its kind.
        Some(match unsafe { object.cast::<usize>().read() } {
            DIRECTORY => "directory",
            INSTRUMENT => "instrument",
            _ => "name",
        })
    }

    unsafe fn scan(&self, objects: Block, scan: &mut Scan<'_>) {
        let mut at = 0;
        while at < objects.size() {
            // SAFETY: the caller promises whole objects in a row.
            let (object, size) = unsafe { (objects.base().add(at), self.skip(objects.base().add(at))) };
            // SAFETY: an object begins with its kind.
            let references = match unsafe { object.cast::<usize>().read() } {
                DIRECTORY => FRONT..size / WORD,
                INSTRUMENT => 3..INSTRUMENT_WORDS,
                _ => 0..0,
            };
            for word in references {
                // SAFETY: the word is in the object, and no thread uses it meanwhile.
                scan.fix(unsafe { object.cast::<*mut u8>().add(word).as_mut() });
            }
            at += size;
        }
    }
}

/// The name of an instrument.
pub(crate) fn name_of(number: usize) -> String {
    format!("Instrument {number:08}")
}

type Pools<'h, A> = (Ams<'h, A, SymmetricFence, Records>, Lo<'h, A, SymmetricFence, Records>);

/// Builds a directory of `count` instruments, and passes it to `use_it` while a root keeps it.
pub(crate) fn build<A: Arena + Clone, R>(
    heap: &Heap<'_, A>,
    count: usize,
    use_it: impl FnOnce(&mut Mutator<'_, A, SymmetricFence>, *const u8) -> R,
) -> Result<R> {
    let (records, names): Pools<'_, A> = (
        Ams::create(heap, Records, SweptOptions::default())?,
        Lo::create(heap, Records, SweptOptions::default())?,
    );
    let mut mutator = heap.register()?;
    // SAFETY: this thread has the mutator, and uses the points only while the mutator is running.
    let attend = |buffer: &MutatorBuffer| unsafe { buffer.attend(&mutator) };
    let mut record_point = AllocationPoint::create_in(&records, BufferKind::Mutator, (), attend)?;
    let mut name_point = AllocationPoint::create_in(&names, BufferKind::Mutator, (), attend)?;
    let mut slots = [ptr::null_mut::<u8>(); 2];
    let slots = NonNull::from(&mut slots).cast::<*mut u8>();
    // SAFETY: the slots outlive the root, and only this thread uses them.
    let _root = unsafe { heap.root_table(slots, 2, Tag::default()) }?;

    macro_rules! make {
        ($point:expr, $words:expr, $write:expr) => {
            loop {
                let words = $words;
                let reservation =
                    $point.reserve(Layout::array::<usize>(words).unwrap_or(Layout::new::<usize>()))?;
                let object = reservation.as_ptr().cast::<usize>();
                // SAFETY: `words` words were reserved.
                unsafe { object.write_bytes(0, words) };
                $write(object);
                // SAFETY: all of it was just written.
                if let Ok(object) = unsafe { reservation.commit() } {
                    break object.as_ptr();
                }
            }
        };
    }
    let directory = make!(record_point, FRONT + count, |object: NonNull<usize>| {
        // SAFETY: two words are reserved at least.
        unsafe { object.cast::<[usize; 2]>().write([DIRECTORY, count]) };
    });
    // SAFETY: this is the first of the slots, which outlive this function's use of them.
    unsafe { slots.write(directory) };
    for number in 0..count {
        let text = name_of(number);
        let name = make!(name_point, words_for(text.len()), |object: NonNull<usize>| {
            // SAFETY: two words are reserved at least.
            unsafe { object.cast::<[usize; 2]>().write([NAME, text.len()]) };
            // SAFETY: the bytes of the text are reserved behind these two words, in new memory.
            unsafe {
                object
                    .add(FRONT)
                    .cast::<u8>()
                    .copy_from_nonoverlapping(NonNull::from(text.as_bytes()).cast(), text.len())
            };
        });
        // SAFETY: this is the second of the slots. It keeps the name while the instrument is reserved.
        unsafe { slots.add(1).write(name) };
        // SAFETY: the bucket is in the directory, which the first slot keeps, and which does not move.
        let bucket = unsafe { directory.cast::<*mut u8>().add(FRONT + bucket_of(number, count)) };
        let instrument = make!(record_point, INSTRUMENT_WORDS, |object: NonNull<usize>| {
            // SAFETY: three words and two references are reserved.
            unsafe { object.cast::<[usize; 3]>().write([INSTRUMENT, number, 100]) };
            // SAFETY: the two references lie behind the three words, and the bucket is in the directory.
            unsafe { object.add(3).cast::<[*mut u8; 2]>().write([name, bucket.read()]) };
        });
        // SAFETY: the bucket is in the directory.
        unsafe { bucket.write(instrument) };
    }
    record_point.empty();
    name_point.empty();
    drop((record_point, name_point));
    Ok(use_it(&mut mutator, directory))
}

fn bucket_of(number: usize, count: usize) -> usize {
    number.wrapping_mul(0x9e37_79b9) % count
}

/// Looks up the instrument with this number in an image. Returns it, and its name.
pub(crate) fn look_up<'m>(image: &Image<'m>, number: usize) -> Option<(*const u8, &'m [u8])> {
    let directory = image.roots().next()?.ok()?;
    // SAFETY: an image of this program begins with a directory, and all of its objects are whole.
    let [_, count] = unsafe { directory.cast::<[usize; 2]>().read() };
    // SAFETY: the bucket is in the directory.
    let mut next = unsafe { directory.cast::<*const u8>().add(FRONT + bucket_of(number, count)).read() };
    loop {
        let instrument = image.pointer(next)?;
        // SAFETY: buckets and instruments refer to instruments.
        let [_, found, _] = unsafe { instrument.cast::<[usize; 3]>().read() };
        // SAFETY: the references are behind the numbers.
        let [name, after] = unsafe { instrument.cast::<*const u8>().add(3).cast::<[*const u8; 2]>().read() };
        if found == number {
            let name = image.pointer(name)?;
            // SAFETY: a name has its length, and that many bytes behind it. The image lives as long as 'm.
            let text = unsafe {
                core::slice::from_raw_parts(name.add(FRONT * WORD), name.cast::<usize>().add(1).read())
            };
            return Some((instrument, text));
        }
        next = after;
    }
}
