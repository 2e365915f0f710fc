//! Hot threads in a scope that ends: the first that fails stops all, and its error is kept.

use core::error::Error;
use core::fmt;
use core::mem;
use core::panic::AssertUnwindSafe;
use std::boxed::Box;
use std::string::ToString;
use std::sync::Arc;
use std::thread::{self, Scope};
use std::vec::Vec;

use tripoint_core::internal::{AtomicBool, Ordering};
use tripoint_core::{Lock, Result};

use crate::detectors::platform::NativeDetectors;
use crate::phases::contract::Contract;
use crate::phases::driver::WarmupSummary;
use crate::phases::guard::Guard;
use crate::phases::hot_thread::HotThread;
use crate::phases::ledger::{AmnestyReason, NoReason};
use crate::phases::memory::SteadyMemory;
use crate::phases::route::Route;
use crate::phases::warmup::{Criterion, WarmupFailure, WarmupOptions};
use crate::words::name::Name;

/// Any error of a program.
type AnyError = Box<dyn Error + Send + Sync>;

/// What a run has come to.
struct Course {
    /// Whether all should stop.
    is_over: AtomicBool,
    /// The hot threads that were started and have not registered so far.
    missing: Lock<Vec<Name>>,
    /// The first hot thread that has ended.
    ended: Lock<Option<Name>>,
    /// The first hot thread that failed, and its error.
    failed: Lock<Option<(Name, AnyError)>>,
}

impl Course {
    fn stop(&self) {
        self.is_over.store(true, Ordering::Release);
    }

    fn goes_on(&self) -> bool {
        !self.is_over.load(Ordering::Acquire)
    }

    /// Notes that a thread with this name has registered, or was not started.
    fn forget(&self, thread: Name) {
        let mut missing = self.missing.lock();
        if let Some(index) = missing.iter().position(|name| *name == thread) {
            missing.swap_remove(index);
        }
    }

    /// Keeps how a hot thread ended; an error, or a panic, stops all others.
    fn end(&self, thread: Name, outcome: thread::Result<Result<(), AnyError>>) {
        let error = match outcome {
            Ok(Ok(())) => None,
            Ok(Err(error)) => Some(error),
            Err(panic) => {
                let text = text_of(&*panic);
                // To drop it may panic again, and then no thread would learn that this one has ended.
                mem::forget(panic);
                Some(text.into())
            }
        };
        // Before the others are stopped, so that this one is named.
        self.ended.lock().get_or_insert(thread);
        if let Some(error) = error {
            self.failed.lock().get_or_insert((thread, error));
            self.stop();
        }
    }
}

/// What a panic said.
fn text_of(panic: &(dyn core::any::Any + Send)) -> std::string::String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<std::string::String>().map(|text| &**text));
    text.map_or_else(|| "it panicked".to_string(), |text| std::format!("it panicked: {text}"))
}

/// The coordinator's side of [`Contract::run`]: starts hot threads, and warms them up.
pub struct Run<'scope, 'env, R: AmnestyReason = NoReason, const THREADS: usize = 8> {
    contract: &'static Contract<R, THREADS>,
    scope: &'scope Scope<'scope, 'env>,
    course: Arc<Course>,
}

impl<'scope, R: AmnestyReason, const THREADS: usize> Run<'scope, '_, R, THREADS> {
    /// Starts a thread that does `work`. That makes what the loop uses, then calls [`HotLoop::register`] once,
    /// and then runs its loop while [`HotLoop::goes_on`].
    ///
    /// If `work` returns an error or panics, [`HotLoop::goes_on`] returns false for all other hot threads of the run.
    ///
    /// # Errors
    /// That of the system, if it starts no thread.
    pub fn hot<F>(&self, thread: HotThread<'scope>, work: F) -> std::io::Result<()>
    where
        F: FnOnce(&HotLoop<'scope, R, THREADS>) -> Result<(), AnyError> + Send + 'scope,
    {
        let (name, course) = (Name::new(thread.name), Arc::clone(&self.course));
        let hot = HotLoop { contract: self.contract, thread, course: Arc::clone(&course) };
        let mut builder = thread::Builder::new();
        if !thread.name.contains('\0') {
            builder = builder.name(thread.name.to_string());
        }
        // Before it begins, so that it does not register first.
        self.course.missing.lock().push(name);
        let started = builder.spawn_scoped(self.scope, move || {
            // The panic becomes the run's error, and what `work` has borrowed is not used after it.
            course.end(name, std::panic::catch_unwind(AssertUnwindSafe(|| work(&hot))));
        });
        started.map(drop).inspect_err(|_| self.course.forget(name))
    }

    /// Brings the process into SteadyState as [`Contract::warm_up`] does, when all hot threads that this run has started
    /// so far have registered. It fails as soon as one of them has ended, registered or not.
    ///
    /// # Errors
    /// Those of [`Contract::warm_up`], and [`Criterion::Registered`] if a thread did not register.
    pub fn warm_up(
        &self,
        routes: &[Route],
        memory: &dyn SteadyMemory,
        options: WarmupOptions,
    ) -> Result<WarmupSummary, WarmupFailure> {
        let missing = || self.course.missing.lock().first().copied();
        let ended = || *self.course.ended.lock();
        self.contract.drive(routes, memory, options, missing, ended).map_err(|failure| {
            match failure.criterion {
                // Others may have followed it, and be found first.
                Criterion::Present => WarmupFailure { thread: ended().or(failure.thread), ..failure },
                _ => failure,
            }
        })
    }

    /// Whether no hot thread of the run has failed yet: for the coordinator's own loop.
    #[must_use]
    pub fn goes_on(&self) -> bool {
        self.course.goes_on()
    }
}

impl<R: AmnestyReason, const THREADS: usize> fmt::Debug for Run<'_, '_, R, THREADS> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Run").field("goes_on", &self.goes_on()).finish_non_exhaustive()
    }
}

/// A hot thread's side of [`Contract::run`].
pub struct HotLoop<'scope, R: AmnestyReason = NoReason, const THREADS: usize = 8> {
    contract: &'static Contract<R, THREADS>,
    thread: HotThread<'scope>,
    course: Arc<Course>,
}

impl<R: AmnestyReason, const THREADS: usize> HotLoop<'_, R, THREADS> {
    /// Registers the calling thread. Call it after what the loop uses is made, so that the guard is dropped
    /// first ([`Guard`]).
    ///
    /// # Errors
    /// Those of [`Contract::register`].
    pub fn register(&self) -> Result<Guard<R, NativeDetectors>> {
        let guard = self.contract.register(self.thread)?;
        self.course.forget(Name::new(self.thread.name));
        Ok(guard)
    }

    /// Whether the loop should do another turn: false once the coordinator has finished, or another hot thread has
    /// failed. It is one load.
    #[inline]
    #[must_use]
    pub fn goes_on(&self) -> bool {
        self.course.goes_on()
    }
}

impl<R: AmnestyReason, const THREADS: usize> fmt::Debug for HotLoop<'_, R, THREADS> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HotLoop").field("thread", &self.thread.name).finish_non_exhaustive()
    }
}

/// Why a run failed: the error of the hot thread that failed first, or else that of the coordinator.
pub struct RunFailure {
    /// The hot thread that failed; none if only the coordinator did.
    pub thread: Option<Name>,
    /// Its error. If it panicked, the message.
    pub error: AnyError,
    /// The error of the coordinator, if that failed, too: for instance because the thread had ended.
    pub coordinator: Option<AnyError>,
}

impl fmt::Display for RunFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.thread {
            Some(thread) => write!(f, "hot thread {thread} failed: {}", self.error)?,
            None => write!(f, "{}", self.error)?,
        }
        self.coordinator.as_ref().map_or(Ok(()), |error| write!(f, "\nthen the coordinator failed: {error}"))
    }
}

tripoint_core::debug_as_text!(RunFailure);

impl Error for RunFailure {}

/// Stops the hot threads of a run when the coordinator has finished, by a panic too.
struct StopAtEnd<'c>(&'c Course);

impl Drop for StopAtEnd<'_> {
    fn drop(&mut self) {
        self.0.stop();
    }
}

impl<R: AmnestyReason, const THREADS: usize> Contract<R, THREADS> {
    /// Runs hot threads beside `coordinate`, which starts them, warms them up and does the steady part. When it
    /// returns, and when a hot thread fails, [`HotLoop::goes_on`] returns false; this returns when all hot threads have
    /// ended. So an error of either side ends the run.
    ///
    /// ```
    /// # #[cfg(all(feature = "linux", not(miri)))]
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use tripoint_contract::{Contract, ContractAllocator, HotThread, Report, Route, WarmupOptions};
    ///
    /// #[global_allocator]
    /// static ALLOCATOR: ContractAllocator = ContractAllocator::system();
    /// static CONTRACT: Contract = Contract::new();
    /// static ROUTES: [Route; 1] = [Route::with_minimum("packet", 1_000)];
    ///
    /// CONTRACT.begin_init()?;
    /// CONTRACT.run(|run| {
    ///     run.hot(HotThread::new("packets"), |hot| {
    ///         let mut packet = Vec::with_capacity(64); // before the guard, so that it outlives it
    ///         let guard = hot.register()?;
    ///         while hot.goes_on() {
    ///             packet.clear();
    ///             packet.extend_from_slice(b"one turn");
    ///             ROUTES[0].pass();
    ///             guard.check();
    ///         }
    ///         Ok(())
    ///     })?;
    ///     run.warm_up(&ROUTES, &(), WarmupOptions::default())?; // (): there are no arenas
    ///     // … the steady part …
    ///     Ok(())
    /// })?;
    /// let mut records = Vec::new();
    /// println!("{}", Report::drained(&CONTRACT, &mut records));
    /// # Ok(())
    /// # }
    /// # #[cfg(not(all(feature = "linux", not(miri))))]
    /// # fn main() {}
    /// ```
    ///
    /// # Errors
    /// The error, or the panic, of the hot thread that failed first, with the thread's name; if none failed, the error
    /// of `coordinate`.
    pub fn run<'env, T>(
        &'static self,
        coordinate: impl for<'scope> FnOnce(&Run<'scope, 'env, R, THREADS>) -> Result<T, AnyError>,
    ) -> Result<T, RunFailure> {
        let course = Arc::new(Course {
            is_over: AtomicBool::new(false),
            missing: Lock::new(Vec::new()),
            ended: Lock::new(None),
            failed: Lock::new(None),
        });
        let outcome = thread::scope(|scope| {
            let _stop = StopAtEnd(&course);
            coordinate(&Run { contract: self, scope, course: Arc::clone(&course) })
        });
        let failed = course.failed.lock().take();
        match (failed, outcome) {
            (None, outcome) => outcome.map_err(|error| RunFailure { thread: None, error, coordinator: None }),
            (Some((thread, error)), outcome) => {
                Err(RunFailure { thread: Some(thread), error, coordinator: outcome.err() })
            }
        }
    }
}
