//! Network namespaces without a name: the kernel removes them with the last descriptor and socket, so also if the process is
//! killed (design/packet-path.md `.namespace`).

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::thread;

use nix::sched::{CloneFlags, setns, unshare};

/// A network namespace of this process.
#[derive(Debug)]
pub struct Namespace(OwnedFd);

impl Namespace {
    /// Creates a namespace, which has no interface but its own loopback.
    ///
    /// # Errors
    /// The operating system's: without the privilege, [`io::ErrorKind::PermissionDenied`].
    pub fn create() -> io::Result<Self> {
        on_a_thread(|| {
            unshare(CloneFlags::CLONE_NEWNET)?;
            Ok(Self(File::open("/proc/thread-self/ns/net")?.into()))
        })
    }

    /// Moves the calling thread into the namespace. Its sockets are made there from now on.
    ///
    /// # Errors
    /// The operating system's.
    pub fn enter(&self) -> io::Result<()> {
        Ok(setns(self.0.as_fd(), CloneFlags::CLONE_NEWNET)?)
    }

    /// Does `work` in the namespace.
    ///
    /// # Errors
    /// The work's, or the operating system's.
    pub fn within<T: Send>(&self, work: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
        on_a_thread(|| {
            self.enter()?;
            work()
        })
    }
}

impl AsRawFd for Namespace {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

/// Does `work` on a thread of its own, which may then be in any namespace.
fn on_a_thread<T: Send>(work: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
    thread::scope(|scope| {
        let thread = thread::Builder::new().name("namespace".to_owned()).spawn_scoped(scope, work)?;
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}
