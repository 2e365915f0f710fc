//! What must not happen: a collector that marks in the headers of objects, as many do, and does not know that some are
//! frozen.

use crate::mapping::{Linux, map};
use crate::{Options, instruments};

/// Marks one frozen object, which a root refers to. The memory is read-only, so this ends the process by a signal.
pub(crate) fn collect(options: &Options) -> Result<(), Box<dyn core::error::Error>> {
    let no_core = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the pointer is to a whole `rlimit`. The process is to end, and needs no core file.
    let _ = unsafe { libc::setrlimit(libc::RLIMIT_CORE, &raw const no_core) };
    let path = options.image.as_deref().ok_or("a twin needs an image")?;
    let mapped = map(&Linux, path)?;
    let (instrument, _) = instruments::look_up(&mapped.image, 0).ok_or("an instrument is missing")?;
    let header = instrument.cast_mut().cast::<usize>();
    println!("marking");
    // SAFETY: nothing makes this safe. The header is in read-only memory, so the system ends the process, which is what
    // this shows.
    unsafe { header.write_volatile(header.read_volatile() | 1) };
    Err("a mark was written into read-only memory".into())
}
