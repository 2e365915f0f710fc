//! Which source the hot thread has its datagrams from, and why it is not another.

use std::io;

use order_book::failure::Failure;

use crate::af_xdp::{AfXdp, FramePool, RING_ENTRIES};
use crate::cli::Receiver;
use crate::ends::{Ends, PORT};
use crate::hot_packets::WINDOW_MESSAGES;
use crate::packet_mmap::PacketMmap;
use crate::provided_buffers::ProvidedBuffers;
use crate::recvmmsg::Recvmmsg;
use crate::source::Source;

/// The frames that are not with the kernel: those that wait in the window, and those in caches and in the burst.
const OTHER_FRAMES: usize = WINDOW_MESSAGES + 1_024;

/// The frames of any receiver.
pub(crate) const FRAMES: usize = RING_ENTRIES as usize + OTHER_FRAMES;

/// What is done with a source.
pub(crate) trait WithSource {
    type Outcome;

    /// Does it, with the source, its name, and why it is not the one that comes first.
    fn run<R: Source>(self, name: &'static str, fallback: Option<String>, source: R) -> Self::Outcome;
}

/// Why there is no source.
pub(crate) enum NoSource {
    /// The system does not allow it.
    Refused(Failure),
    /// Something failed.
    Failed(Failure),
}

/// Opens the source that is `wanted`, or the first that the system allows, in the namespace of this thread, and does with it
/// what is to be done.
///
/// # Errors
/// [`NoSource`]
pub(crate) fn with_source<W: WithSource>(
    wanted: Option<Receiver>,
    ends: &Ends,
    frames: &FramePool<'_>,
    work: W,
) -> Result<W::Outcome, NoSource> {
    let mut fallback = None;
    if matches!(wanted, None | Some(Receiver::Xdp)) {
        match AfXdp::open(frames, PORT) {
            Ok(source) => return Ok(work.run("AF_XDP", None, source)),
            // Only what the system does not allow is a reason for another receiver. What fails, fails.
            Err(error) if error.is_refusal() && wanted.is_none() => {
                fallback = Some(sentence("AF_XDP", &error))
            }
            Err(error) if error.is_refusal() => {
                return Err(NoSource::Refused(Failure::new(sentence("AF_XDP", &error))));
            }
            Err(error) => return Err(NoSource::Failed(Failure::new(sentence("AF_XDP", &error)))),
        }
    }
    if matches!(wanted, None | Some(Receiver::Packet)) {
        let interface = ends.interface().unwrap_or(0);
        return match PacketMmap::open(frames, interface, PORT) {
            Ok(source) => Ok(work.run("PACKET_MMAP", fallback, source)),
            Err(error) => Err(without("PACKET_MMAP", "CAP_NET_RAW, as root has it", &error)),
        };
    }
    let socket = ends.receiver.try_clone().map_err(|error| NoSource::Failed(Failure::new(error)))?;
    if wanted == Some(Receiver::IoUring) {
        return match ProvidedBuffers::open(frames, socket) {
            Ok(source) => Ok(work.run("io_uring", None, source)),
            Err(error) => Err(without("io_uring", "a filter of system calls that lets it pass", &error)),
        };
    }
    let source = Recvmmsg::new(socket, FRAMES).map_err(|error| NoSource::Failed(Failure::new(error)))?;
    Ok(work.run("recvmmsg", None, source))
}

/// Why a receiver is not to be had: because the system does not allow it, or because something failed.
fn without(receiver: &str, privilege: &str, error: &io::Error) -> NoSource {
    let refused = |why: String| NoSource::Refused(Failure::new(why));
    let failed = |why: String| NoSource::Failed(Failure::new(why));
    match error.raw_os_error() {
        Some(libc::EPERM | libc::EACCES) => {
            refused(sentence(receiver, &format_args!("it needs {privilege}: {error}")))
        }
        Some(libc::ENOSYS | libc::EAFNOSUPPORT | libc::EOPNOTSUPP | libc::ENOPROTOOPT) => {
            refused(sentence(receiver, &format_args!("the kernel does not have it: {error}")))
        }
        Some(libc::EMFILE) => failed(sentence(
            receiver,
            &format_args!("the process has as many open files as it may: raise the limit (ulimit -n)"),
        )),
        Some(libc::ENOMEM | libc::ENOBUFS) => failed(sentence(
            receiver,
            &format_args!(
                "{error}: raise the limit of locked memory (ulimit -l), or run with CAP_IPC_LOCK, as root has it"
            ),
        )),
        _ => failed(sentence(receiver, error)),
    }
}

/// Why a receiver cannot be, and what can.
fn sentence(receiver: &str, why: &dyn core::fmt::Display) -> String {
    format!("{receiver} is not to be had: {why}; see --receiver")
}
