//! Page faults and memory calls of any program, as the kernel tells them (design/cli.md `.kernel`).

mod calls;
mod capture;
mod events;
mod threads;
mod tracefs;
mod unsafe_ioctls;

pub(crate) use self::capture::WatchedProcess;
