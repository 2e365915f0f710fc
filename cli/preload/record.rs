//! Where this process writes its operations: a ring of its own, made at its first operation, and again in each
//! child (design/cli-traces.md `.child`).

use core::cell::Cell;
use core::ffi::{CStr, c_int, c_void};
use core::ptr;
use core::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

use crate::ring::{Control, Entry, READY, Ring, SLOTS, code};
use crate::system;

/// What this process knows of its ring. A child finds it all zero.
#[repr(C)]
struct Own {
    /// [`NEW`], [`BEGINNING`], [`ON`] or [`OFF`].
    state: AtomicU32,
    ring: AtomicPtr<Ring>,
}

const NEW: u32 = 0;
const BEGINNING: u32 = 1;
const ON: u32 = 2;
const OFF: u32 = 3;

/// The page of `Own`, from the first operation on.
static OWN: AtomicPtr<Own> = AtomicPtr::new(ptr::null_mut());
/// Set when nothing can be recorded.
static NEVER: AtomicU32 = AtomicU32::new(0);
static CONTROL: AtomicPtr<Control> = AtomicPtr::new(ptr::null_mut());
/// The process that made the last ring: in a child, its parent.
static MAKER: AtomicU32 = AtomicU32::new(0);
/// Counted up for each ring, so that a thread notices that its number is of another one.
static EPOCH: AtomicU32 = AtomicU32::new(0);
/// The key whose destructor notices that a thread ends, plus one.
static KEY: AtomicU32 = AtomicU32::new(0);

/// Rounds of destructors in which other keys may still free memory.
const LAST_ROUND: usize = 4;
/// Waits for room, a tenth of a second each, after which the recorder is thought to be dead.
const PATIENCE: u32 = 100;

struct Folder([Cell<u8>; FOLDER]);
const FOLDER: usize = 1024;
// SAFETY: it is written once, by the one thread that has set `OWN`, before any ring exists, and only read later.
unsafe impl Sync for Folder {}
/// The folder of the rings, kept because the program may change its environment.
static PATH: Folder = Folder([const { Cell::new(0) }; FOLDER]);

std::thread_local! {
    /// The epoch of this thread's number, and the number.
    static NUMBER: Cell<(u32, u32)> = const { Cell::new((0, 0)) };
}

/// Records an operation, if this process is recorded. Keeps the error number.
#[inline]
pub(crate) fn record(code: u8, address: *const c_void, size: usize, align_log2: u8) {
    let Some(ring) = ring() else { return };
    let thread = match NUMBER.get() {
        (epoch, number) if epoch == EPOCH.load(Ordering::Relaxed) => number,
        _ => enter(ring),
    };
    let place = ring.take_place();
    if ring.is_full(place) && !wait_for_room(ring, place) {
        return;
    }
    ring.put(place, Entry { code, align_log2, thread, address: address.addr() as u64, size: size as u64 });
    if place % (SLOTS / 4) == 0 {
        wake_recorder();
    }
}

#[inline]
fn ring() -> Option<&'static Ring> {
    // SAFETY: once set, the page stays mapped.
    let own = unsafe { OWN.load(Ordering::Acquire).as_ref() };
    match own {
        Some(own) if own.state.load(Ordering::Acquire) == ON => {
            // SAFETY: the state says that the ring is mapped; it stays so.
            let ring = unsafe { own.ring.load(Ordering::Relaxed).as_ref() }?;
            (ring.off.load(Ordering::Relaxed) == 0).then_some(ring)
        }
        own => begin(own),
    }
}

/// Has [`process_ends`] called when the process ends by `exit`, or by the end of `main`.
#[used]
#[unsafe(link_section = ".fini_array")]
static END: extern "C" fn() = process_ends;

/// Notes how much memory the process had. The recorder may have had no time to look.
extern "C" fn process_ends() {
    // SAFETY: once set, the page stays mapped.
    let own = unsafe { OWN.load(Ordering::Acquire).as_ref() };
    if let Some(own) = own.filter(|own| own.state.load(Ordering::Acquire) == ON)
        // SAFETY: the state says that the ring is mapped; it stays so.
        && let Some(ring) = unsafe { own.ring.load(Ordering::Relaxed).as_ref() }
    {
        ring.peak_resident.store(system::peak_resident(), Ordering::Relaxed);
    }
}

/// Makes a ring, if that is not done and this process is recorded.
#[cold]
#[inline(never)]
fn begin(own: Option<&'static Own>) -> Option<&'static Ring> {
    if NEVER.load(Ordering::Relaxed) != 0 || !system::has_environment() {
        return None;
    }
    let error = system::errno();
    let own = match own {
        Some(own) => own,
        None => first_page()?,
    };
    let ring = if own.state.compare_exchange(NEW, BEGINNING, Ordering::Acquire, Ordering::Acquire).is_ok() {
        let ring = make_ring();
        let (ring, state) = match ring {
            Ok(Some(ring)) => (Some(ring), ON),
            Ok(None) => (None, OFF),
            Err(error) => {
                // SAFETY: once set, the control page stays mapped.
                if let Some(control) = unsafe { CONTROL.load(Ordering::Acquire).as_ref() } {
                    control.problem.store(error as u32, Ordering::Relaxed);
                }
                (None, OFF)
            }
        };
        own.ring
            .store(ring.map_or(ptr::null_mut(), |ring| ptr::from_ref(ring).cast_mut()), Ordering::Relaxed);
        own.state.store(state, Ordering::Release);
        ring
    } else {
        // Another thread makes it; what this one does meanwhile is not recorded.
        None
    };
    system::set_errno(error);
    ring
}

/// Maps the control page and the page of `Own`, once in a program.
fn first_page() -> Option<&'static Own> {
    static BEGUN: AtomicU32 = AtomicU32::new(0);
    if BEGUN.swap(1, Ordering::Relaxed) != 0 {
        return None;
    }
    let made = map_pages();
    if made.is_none() {
        NEVER.store(1, Ordering::Relaxed);
    }
    made
}

fn map_pages() -> Option<&'static Own> {
    let folder = system::variable(c"TRIPOINT_RECORD")?.to_bytes();
    // Room for a slash, a number and a zero.
    if folder.len() + 16 > FOLDER {
        return None;
    }
    folder.iter().zip(&PATH.0).for_each(|(byte, place)| place.set(*byte));
    let control =
        system::map_file(name_in_folder(&mut [0; FOLDER], b"control")?, size_of::<Control>(), false).ok()?;
    // SAFETY: the recorder made the file of this size, and its words may have any value.
    let shared = unsafe { control.cast::<Control>().as_ref() }?;
    if shared.ready.load(Ordering::Acquire) != READY {
        return None;
    }
    CONTROL.store(control.cast(), Ordering::Release);
    let mut key = 0;
    // SAFETY: a valid place, and a function that may be called with any value.
    if unsafe { system::pthread_key_create(&raw mut key, Some(thread_ends)) } == 0 {
        KEY.store(key + 1, Ordering::Relaxed);
    }
    match system::map_wiped(size_of::<Own>().next_multiple_of(4096)) {
        Ok(page) => {
            OWN.store(page.cast(), Ordering::Release);
            // SAFETY: a page of zeros, which are valid for these words; it stays mapped.
            unsafe { page.cast::<Own>().as_ref() }
        }
        Err(error) => {
            shared.problem.store(error as u32, Ordering::Relaxed);
            None
        }
    }
}

/// The path of a file in the folder of the rings.
fn name_in_folder<'a>(path: &'a mut [u8; FOLDER], name: &[u8]) -> Option<&'a CStr> {
    let mut length = 0;
    for (to, from) in path.iter_mut().zip(&PATH.0) {
        *to = from.get();
        if *to == 0 {
            break;
        }
        length += 1;
    }
    path.get_mut(length..)?
        .iter_mut()
        .zip(b"/".iter().chain(name).chain(&[0]))
        .for_each(|(to, from)| *to = *from);
    CStr::from_bytes_until_nul(path).ok()
}

/// A ring for this process; none if it is not to be recorded.
fn make_ring() -> Result<Option<&'static Ring>, c_int> {
    // SAFETY: once set, the control page stays mapped.
    let Some(control) = (unsafe { CONTROL.load(Ordering::Acquire).as_ref() }) else { return Ok(None) };
    // SAFETY: it has no conditions.
    let pid = unsafe { system::getpid() } as u32;
    let first = control
        .first
        .compare_exchange(0, pid, Ordering::Relaxed, Ordering::Relaxed)
        .unwrap_or_else(|first| first);
    let follows = control.follow.load(Ordering::Relaxed) != 0 || first == 0 || first == pid;
    if !follows || control.closed.load(Ordering::Relaxed) != 0 {
        return Ok(None);
    }
    let number = control.rings.fetch_add(1, Ordering::Relaxed);
    let mut digits = [0; 10];
    let mut path = [0; FOLDER];
    let Some(path) = name_in_folder(&mut path, decimal(number, &mut digits)) else { return Ok(None) };
    let mapped = system::map_file(path, size_of::<Ring>(), true)?;
    system::keep_from_children(mapped, size_of::<Ring>());
    // SAFETY: a mapping of that size, of zeros, which are valid for its words. It stays mapped.
    let Some(ring) = (unsafe { mapped.cast::<Ring>().as_ref() }) else { return Ok(None) };
    ring.pid.store(pid, Ordering::Relaxed);
    ring.set_name(system::program().to_bytes());
    ring.forked_by.store(MAKER.swap(pid, Ordering::Relaxed), Ordering::Relaxed);
    EPOCH.fetch_add(1, Ordering::Relaxed);
    ring.ready.store(READY, Ordering::Release);
    system::ring_bell(control);
    Ok(Some(ring))
}

fn decimal(mut number: u32, digits: &mut [u8; 10]) -> &[u8] {
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            return &digits[at..];
        }
    }
}

/// Numbers this thread.
#[cold]
#[inline(never)]
fn enter(ring: &Ring) -> u32 {
    let number = ring.threads.fetch_add(1, Ordering::Relaxed);
    // First: setting the key may allocate.
    NUMBER.set((EPOCH.load(Ordering::Relaxed), number));
    if let Some(key) = KEY.load(Ordering::Relaxed).checked_sub(1) {
        // SAFETY: a key that was created; the value is a number, which is never dereferenced.
        unsafe { system::pthread_setspecific(key, ptr::without_provenance(1)) };
    }
    number
}

/// The destructor of the key. Others may follow and free memory: only in the last round does the thread end.
unsafe extern "C" fn thread_ends(round: *mut c_void) {
    if let Some(key) = KEY.load(Ordering::Relaxed).checked_sub(1)
        && round.addr() < LAST_ROUND
    {
        // SAFETY: a key that was created; the value is a number, which is never dereferenced.
        unsafe { system::pthread_setspecific(key, ptr::without_provenance(round.addr() + 1)) };
    } else {
        record(code::END_THREAD, ptr::null(), 0, 0);
    }
}

/// Waits until the place has room. Returns whether it has: if not, the recorder is dead.
#[cold]
#[inline(never)]
fn wait_for_room(ring: &Ring, place: u64) -> bool {
    let error = system::errno();
    let (mut waits, mut tail) = (0, ring.tail());
    ring.waiting.fetch_add(1, Ordering::SeqCst);
    while ring.is_full(place) && ring.off.load(Ordering::Relaxed) == 0 {
        let word = ring.room.load(Ordering::SeqCst);
        if !ring.is_full(place) {
            break;
        }
        wake_recorder();
        system::wait(&ring.room, word);
        waits = if ring.tail() == tail { waits + 1 } else { 0 };
        tail = ring.tail();
        if waits == PATIENCE {
            ring.off.store(1, Ordering::Relaxed);
        }
    }
    ring.waiting.fetch_sub(1, Ordering::SeqCst);
    system::set_errno(error);
    !ring.is_full(place)
}

#[cold]
#[inline(never)]
fn wake_recorder() {
    let error = system::errno();
    // SAFETY: once set, the control page stays mapped.
    if let Some(control) = unsafe { CONTROL.load(Ordering::Acquire).as_ref() } {
        system::ring_bell(control);
    }
    system::set_errno(error);
}
