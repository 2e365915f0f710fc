//! Locks, sleeps and files. Waits in the kernel are an optional class of the contract; the others are what a real-time
//! sanitizer is for.

use core::ffi::c_int;
use core::hint::{black_box, spin_loop};
use core::ptr;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst};
use std::fs::File;
use std::io::Write;
use std::os::fd::AsRawFd;
use std::sync::{Barrier, Condvar, Mutex, RwLock, mpsc};
use std::thread;
use std::time::Duration;

use crate::case::{
    Act, C_HEAP, Case, Facts, Group, LIBRARY, MEMORY_CALL, RUST_HEAP, UNBOUNDED, WAIT, discard, forever, once,
};
use crate::cases::system_calls::by_instruction;
use crate::helper::{go, helper, helper_to_join, pipe};

const WAITS: Facts = WAIT | LIBRARY;
const OTHERS: Facts = UNBOUNDED | LIBRARY;

/// As long as a case sleeps.
const SHORT: Duration = Duration::from_millis(1);

/// What a sleep of C takes: the same.
static SHORT_FOR_C: libc::timespec = libc::timespec { tv_sec: 0, tv_nsec: 1_000_000 };

/// The null device, to write to.
fn null() -> c_int {
    let file = File::options().write(true).open("/dev/null").expect("there is a null device");
    forever(file).as_raw_fd()
}

/// A lock of C, which another thread holds until this one waits for it.
fn lock_of_c() -> usize {
    let lock: *mut libc::pthread_mutex_t = Box::leak(Box::new(libc::PTHREAD_MUTEX_INITIALIZER));
    lock.expose_provenance()
}

/// A receiver that waits until another thread sends. It allocates what it waits with when it first does, which may be
/// before.
fn empty_channel(waited: bool) -> Act {
    let (sender, receiver) = mpsc::sync_channel(4);
    let receiver = Box::leak(Box::new(receiver));
    if waited {
        discard(receiver.recv_timeout(SHORT));
    }
    let goes = helper(move |helped| {
        helped.ready();
        helped.wait_until_asleep();
        sender.send(7).expect("the receiver waits");
        forever(sender);
    });
    once(move || {
        go(goes);
        discard(receiver.recv());
    })
}

pub(crate) const GROUP: Group = Group {
    name: "waits, and other system calls",
    cases: &[
        Case::new("a Mutex that is held", WAITS, || {
            let lock = forever(Mutex::new(7));
            let goes = helper(|helped| {
                let held = lock.lock();
                helped.ready();
                helped.wait_until_asleep();
                drop(held);
            });
            once(move || {
                go(goes);
                discard(lock.lock());
            })
        }),
        Case::new("a pthread_mutex that is held", WAITS, || {
            let address = lock_of_c();
            let lock = move || ptr::with_exposed_provenance_mut(address);
            let goes = helper(move |helped| {
                // SAFETY: a lock that lives on, locked and unlocked by this thread.
                unsafe {
                    libc::pthread_mutex_lock(lock());
                    helped.ready();
                    helped.wait_until_asleep();
                    libc::pthread_mutex_unlock(lock());
                }
            });
            once(move || {
                go(goes);
                // SAFETY: a lock that lives on, locked and unlocked by this thread.
                unsafe {
                    libc::pthread_mutex_lock(lock());
                    libc::pthread_mutex_unlock(lock());
                }
            })
        }),
        Case::new("an RwLock that is held", WAITS, || {
            let lock = forever(RwLock::new(7));
            let goes = helper(|helped| {
                let held = lock.write();
                helped.ready();
                helped.wait_until_asleep();
                drop(held);
            });
            once(move || {
                go(goes);
                discard(lock.read());
            })
        }),
        Case::new("a condition that comes later", WAITS, || {
            let pair = forever((Mutex::new(false), Condvar::new()));
            let goes = helper(|helped| {
                helped.ready();
                helped.wait_until_asleep();
                *pair.0.lock().expect("no thread panics") = true;
                pair.1.notify_one();
            });
            once(move || {
                go(goes);
                discard(pair.1.wait_while(pair.0.lock().expect("no thread panics"), |there| !*there));
            })
        }),
        Case::new("a condition that does not come in time", WAITS, || {
            let pair = forever((Mutex::new(()), Condvar::new()));
            once(|| discard(pair.1.wait_timeout(pair.0.lock().expect("no thread panics"), SHORT)))
        }),
        Case::new("a condition for which no thread waits is notified", OTHERS, || {
            let condition = forever(Condvar::new());
            once(|| condition.notify_one())
        }),
        Case::new("a barrier", WAITS, || {
            let barrier = forever(Barrier::new(2));
            let goes = helper(|helped| {
                helped.ready();
                helped.wait_until_asleep();
                barrier.wait();
            });
            once(move || {
                go(goes);
                discard(barrier.wait());
            })
        }),
        Case::new("a channel that is empty, for the first time", WAITS | RUST_HEAP, || empty_channel(false))
            .may(C_HEAP | MEMORY_CALL), // what it waits with
        Case::new("a channel that is empty, again", WAITS, || empty_channel(true)),
        Case::new("a channel that is full, for the first time", WAITS | RUST_HEAP, || {
            let (sender, receiver) = mpsc::sync_channel(1);
            sender.send(7).expect("there is room for one");
            let goes = helper(move |helped| {
                helped.ready();
                helped.wait_until_asleep();
                discard(receiver.recv());
                forever(receiver);
            });
            let sender = forever(sender);
            once(move || {
                go(goes);
                discard(sender.send(7));
            })
        })
        .may(C_HEAP | MEMORY_CALL), // the same
        Case::new("a thread is joined", WAITS | RUST_HEAP, || {
            let (goes, thread) = helper_to_join(|helped| {
                helped.ready();
                helped.wait_until_asleep();
            });
            once(move || {
                go(goes);
                discard(thread.join());
            })
        })
        .may(C_HEAP | MEMORY_CALL), // what the thread leaves is freed
        Case::new("a thread parks", WAITS, || once(|| thread::park_timeout(SHORT))),
        Case::new("thread::sleep", WAITS, || once(|| thread::sleep(SHORT))),
        Case::new("thread::yield_now", WAITS, || once(thread::yield_now)),
        Case::new("nanosleep", WAITS, || {
            // SAFETY: a time to read; what is left is not wanted.
            once(|| discard(unsafe { libc::nanosleep(&SHORT_FOR_C, ptr::null_mut()) }))
        }),
        // SAFETY: a number.
        Case::new("usleep", WAITS, || once(|| discard(unsafe { libc::usleep(1_000) }))),
        Case::new("clock_nanosleep", WAITS, || {
            once(|| {
                let clock = libc::CLOCK_MONOTONIC;
                // SAFETY: a clock that is there, a time to read; what is left is not wanted.
                discard(unsafe { libc::clock_nanosleep(clock, 0, &SHORT_FOR_C, ptr::null_mut()) });
            })
        }),
        Case::new("futex by C's `syscall`", WAITS, || {
            let word = forever(AtomicU32::new(7));
            let time: *const libc::timespec = &raw const SHORT_FOR_C;
            once(move || {
                // SAFETY: a word that lives on, and a time to read.
                discard(unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAIT, 7, time) });
            })
        }),
        Case::new("futex by the instruction", WAIT, || {
            let word = forever(AtomicU32::new(7)).as_ptr().expose_provenance();
            let time = (&raw const SHORT_FOR_C).expose_provenance();
            once(move || {
                // SAFETY: a word that lives on, and a time to read.
                discard(unsafe {
                    by_instruction(libc::SYS_futex, [word, libc::FUTEX_WAIT as usize, 7, time])
                });
            })
        }),
        Case::new("a flag that another thread sets, spinning", UNBOUNDED, || {
            let set = forever(AtomicBool::new(false));
            let goes = helper(|helped| {
                helped.ready();
                while !helped.goes() {
                    thread::yield_now();
                }
                thread::sleep(SHORT);
                set.store(true, SeqCst);
            });
            once(move || {
                go(goes);
                while !set.load(SeqCst) {
                    spin_loop();
                }
            })
        }),
        Case::new("a pipe is read that is empty", OTHERS, || {
            let [input, output] = pipe();
            let goes = helper(move |helped| {
                helped.ready();
                helped.wait_until_asleep();
                // SAFETY: one byte.
                unsafe { libc::write(output, [7_u8].as_ptr().cast(), 1) };
            });
            once(move || {
                let mut byte = 0_u8;
                go(goes);
                // SAFETY: one byte, valid to write.
                discard(unsafe { libc::read(input, (&raw mut byte).cast(), 1) });
            })
        }),
        Case::new("poll", WAITS, || {
            let [input, _] = pipe();
            once(move || {
                let mut one = libc::pollfd { fd: input, events: libc::POLLIN, revents: 0 };
                // SAFETY: one descriptor, valid to read and write.
                discard(unsafe { libc::poll(&raw mut one, 1, 1) });
            })
        }),
        Case::new("epoll_wait", WAITS, || {
            // SAFETY: a number.
            let set = unsafe { libc::epoll_create1(0) };
            once(move || {
                let mut event = libc::epoll_event { events: 0, u64: 0 };
                // SAFETY: one event, valid to write.
                discard(unsafe { libc::epoll_wait(set, &raw mut event, 1, 1) });
            })
        }),
        Case::new("a file is opened and closed", OTHERS, || {
            once(|| {
                // SAFETY: a path that ends with zero, and what was opened.
                unsafe { libc::close(libc::open(c"/dev/null".as_ptr(), libc::O_RDONLY)) };
            })
        }),
        Case::new("a file is written to", OTHERS, || {
            let file = null();
            // SAFETY: as many bytes as the text has.
            once(move || discard(unsafe { libc::write(file, b"order".as_ptr().cast(), 5) }))
        }),
        Case::new("a file is written to, by the instruction", UNBOUNDED, || {
            let file = null() as usize;
            let text = b"order".as_ptr().expose_provenance();
            // SAFETY: as many bytes as the text has.
            once(move || discard(unsafe { by_instruction(libc::SYS_write, [file, text, 5, 0]) }))
        }),
        Case::new("println", OTHERS, || {
            println!("warm");
            once(|| println!("order {}", black_box(7)))
        }),
        Case::new("the standard error is written to", OTHERS, || {
            once(|| discard(std::io::stderr().write(b"\n")))
        }),
        Case::new("fsync", OTHERS, || {
            let name = format!("violations-sync-{}", std::process::id());
            let path = std::env::current_exe().expect("the program has a path").with_file_name(name);
            let mut file = File::create(&path).expect("the folder takes files");
            std::fs::remove_file(path).expect("it was just made");
            file.write_all(b"order").expect("the disk takes it");
            let file = forever(file).as_raw_fd();
            // SAFETY: a descriptor that stays open.
            once(move || discard(unsafe { libc::fsync(file) }))
        }),
        Case::new("stat", OTHERS, || {
            once(|| {
                // SAFETY: zeros are a value of this type, which is plain data.
                let mut status: libc::stat = unsafe { core::mem::zeroed() };
                // SAFETY: a path that ends with zero, and a status, valid to write.
                discard(unsafe { libc::stat(c"/".as_ptr(), &raw mut status) });
            })
        }),
        Case::new("getrandom by C's `syscall`", OTHERS, || {
            once(|| {
                let mut bytes = [0_u8; 16];
                // SAFETY: as many bytes, valid to write.
                discard(unsafe { libc::syscall(libc::SYS_getrandom, bytes.as_mut_ptr(), bytes.len(), 0) });
            })
        }),
        Case::new("ftruncate of a memory file", OTHERS, || {
            // SAFETY: a name that ends with zero.
            let file = unsafe { libc::memfd_create(c"orders".as_ptr(), 0) };
            // SAFETY: a descriptor that stays open.
            once(move || discard(unsafe { libc::ftruncate(file, 1 << 20) }))
        }),
        Case::new("send and recv", OTHERS, || {
            let mut ends = [0; 2];
            // SAFETY: two numbers, valid to write.
            let made = unsafe { libc::socketpair(libc::AF_UNIX, libc::SOCK_STREAM, 0, ends.as_mut_ptr()) };
            assert_eq!(made, 0);
            once(move || {
                let mut byte = 7_u8;
                // SAFETY: one byte, valid to read and to write.
                unsafe {
                    libc::send(ends[0], (&raw const byte).cast(), 1, 0);
                    libc::recv(ends[1], (&raw mut byte).cast(), 1, 0);
                }
            })
        }),
        Case::new("the thread is moved to other processors", OTHERS, || {
            // SAFETY: zeros are a set without processors.
            let mut set: libc::cpu_set_t = unsafe { core::mem::zeroed() };
            let size = size_of::<libc::cpu_set_t>();
            // SAFETY: a set of this size, valid to write.
            assert_eq!(unsafe { libc::sched_getaffinity(0, size, &raw mut set) }, 0);
            // SAFETY: a set of this size, of processors on which the thread is already.
            once(move || discard(unsafe { libc::sched_setaffinity(0, size, &raw const set) }))
        }),
    ],
};
