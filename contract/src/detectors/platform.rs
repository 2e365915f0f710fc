//! What the platform-independent part asks of thread-locals and of the system, if there are any.

#[cfg(feature = "std")]
use tripoint_stack::Site;

#[cfg(feature = "std")]
use crate::thread::current;
use crate::thread::slot::Slot;
use crate::words::detector_set::DetectorSet;

/// The detectors of this target: those of Linux with feature `linux`, else none.
#[cfg(tripoint_kernel)]
pub type NativeDetectors = crate::linux::detectors::ThreadDetectors;
/// The detectors of this target: those of Linux with feature `linux`, else none.
#[cfg(not(tripoint_kernel))]
pub type NativeDetectors = crate::thread::detectors::NoDetectors;

/// Makes the detectors of the calling thread.
#[cfg(tripoint_kernel)]
pub(crate) fn detectors(wanted: DetectorSet) -> NativeDetectors {
    crate::linux::detectors::ThreadDetectors::new(crate::linux::system_calls::LinuxKernel, wanted)
}

/// Makes the detectors of the calling thread.
#[cfg(not(tripoint_kernel))]
pub(crate) fn detectors(_wanted: DetectorSet) -> NativeDetectors {
    crate::thread::detectors::NoDetectors
}

/// What the first look at the system's settings found.
#[cfg(tripoint_kernel)]
pub(crate) type Runtime = std::sync::OnceLock<crate::linux::runtime::RuntimeReport>;

/// Makes C's allocator return its free memory. Returns false if it cannot.
pub(crate) fn trim_heap() -> bool {
    #[cfg(tripoint_kernel)]
    return crate::linux::kernel::Kernel::trim_heap(&crate::linux::system_calls::LinuxKernel);
    #[cfg(not(tripoint_kernel))]
    return false;
}

/// Locks the process's memory except these arenas. Returns false if some of it is not locked.
pub(crate) fn lock_memory(arenas: &[&dyn tripoint_core::Arena]) -> bool {
    #[cfg(tripoint_kernel)]
    return crate::linux::lock::lock_memory(arenas).is_whole();
    #[cfg(not(tripoint_kernel))]
    {
        let _ = arenas;
        false
    }
}

/// The number of this process: another one in a forked child. Zero if the system is not known, which then
/// does not fork.
pub(crate) fn process() -> u32 {
    #[cfg(tripoint_kernel)]
    return std::process::id();
    #[cfg(not(tripoint_kernel))]
    return 0;
}

/// Has children that are forked from now on count in memory of their own.
///
/// # Errors
/// `Error::Resource` if the system refuses.
pub(crate) fn prepare_children() -> tripoint_core::Result<()> {
    #[cfg(tripoint_kernel)]
    return crate::linux::kernel::Kernel::prepare_children(&crate::linux::system_calls::LinuxKernel)
        .map_err(|_| tripoint_core::Error::Resource);
    #[cfg(not(tripoint_kernel))]
    return Ok(());
}

/// Nanoseconds since the Unix epoch.
#[cfg(feature = "std")]
pub(crate) fn clock() -> u64 {
    current::time()
}

/// No clock: the thread brings its own.
#[cfg(not(feature = "std"))]
pub(crate) fn clock() -> u64 {
    0
}

/// Charges the calling thread's events to `slot` from here on. Returns the detectors that are
/// live by that.
#[cfg(feature = "std")]
pub(crate) fn attach(slot: &'static Slot, wanted: DetectorSet) -> DetectorSet {
    current::attach(slot, wanted)
}

/// Charges the calling thread's events to `slot` from here on.
#[cfg(not(feature = "std"))]
pub(crate) fn attach(_slot: &'static Slot, _wanted: DetectorSet) -> DetectorSet {
    DetectorSet::empty()
}

/// Writes where `site` is, as far as that is known without allocating, and a command that
/// turns it into lines.
#[cfg(tripoint_kernel)]
pub(crate) fn describe(site: &Site, out: &mut dyn core::fmt::Write) -> core::fmt::Result {
    crate::linux::program::describe(crate::linux::system_calls::LinuxKernel, site, out)
}

/// Writes that `site` is unknown: stacks are not walked on this platform.
#[cfg(all(feature = "std", not(tripoint_kernel)))]
pub(crate) fn describe(_site: &Site, _out: &mut dyn core::fmt::Write) -> core::fmt::Result {
    Ok(())
}

/// Writes to standard error, without allocation and without any lock.
#[cfg(tripoint_kernel)]
pub(crate) fn tell(text: &[u8]) {
    use crate::linux::kernel::Kernel;
    // If this fails, there is no way to report it either.
    let _ = crate::linux::system_calls::LinuxKernel.tell(text);
}

/// Writes to standard error, without allocation.
#[cfg(all(feature = "std", not(tripoint_kernel)))]
pub(crate) fn tell(text: &[u8]) {
    // If this fails, there is no way to report it either.
    let _ = std::io::Write::write_all(&mut std::io::stderr(), text);
}

/// Whether the calling thread is registered.
#[cfg(feature = "std")]
pub(crate) fn is_attached() -> bool {
    current::slot().is_some()
}

/// Without thread-locals this is not known.
#[cfg(not(feature = "std"))]
pub(crate) fn is_attached() -> bool {
    false
}

/// Stops charging the calling thread's events to `slot`.
#[cfg(feature = "std")]
pub(crate) fn detach(slot: &'static Slot) {
    current::detach(slot);
}

/// There is nothing to stop: no thread-local knows the slot.
#[cfg(not(feature = "std"))]
pub(crate) fn detach(_slot: &'static Slot) {}
