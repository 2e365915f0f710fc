//! Waiting in the operating system: `futex(2)`.

use core::time::Duration;

use tripoint_core::Parking;
use tripoint_core::internal::{AtomicU32, Ordering};

use crate::platform::futex;

/// Waits in the kernel, which lets other threads have the processor: for collectors and the threads that they stop, in hosted
/// programs ([design/arena-vm.md `.parking`](crate::design::arena_vm)).
///
/// Looks at the word for some microseconds first, because a thread that sleeps and is woken takes longer than most stops
/// take to begin. If the kernel refuses the call, a wait lets other threads run once.
///
/// ```
/// use core::sync::atomic::{AtomicU32, Ordering};
/// use core::time::Duration;
/// use tripoint_arena_vm::Futex;
/// use tripoint_core::Parking;
///
/// let word = AtomicU32::new(0);
/// std::thread::scope(|scope| {
///     scope.spawn(|| {
///         word.store(1, Ordering::Release);
///         Futex.wake(&word);
///     });
///     while word.load(Ordering::Acquire) == 0 {
///         Futex.wait(&word, 0, Duration::MAX);
///     }
/// });
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Futex;

/// How long a wait looks at the word before it sleeps: about as long as it takes to be woken.
const LOOKING: Duration = Duration::from_micros(10);
/// Looks at the word between two looks at the clock.
const LOOKS: usize = 16;

// SAFETY: the word is only loaded, also by the kernel, and nothing here unwinds.
unsafe impl Parking for Futex {
    fn wait(&self, word: &AtomicU32, value: u32, patience: Duration) -> Duration {
        let began = futex::now();
        while futex::now().saturating_sub(began) < LOOKING.min(patience) {
            for _ in 0..LOOKS {
                if word.load(Ordering::Relaxed) != value {
                    return futex::now().saturating_sub(began);
                }
                core::hint::spin_loop();
            }
        }
        futex::wait(word, value, (patience != Duration::MAX).then_some(patience));
        futex::now().saturating_sub(began)
    }

    fn wake(&self, word: &AtomicU32) {
        futex::wake(word);
    }
}
