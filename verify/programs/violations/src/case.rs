//! A case: what it is, and what it truly does.

/// What a case does, seen from outside: facts of the kernel and of the libraries, decided before any tool is asked.
pub(crate) type Facts = u16;

/// Calls the program's global allocator.
pub(crate) const RUST_HEAP: Facts = 1 << 0;
/// Calls C's `malloc`, `free` or one of their kin, not by way of the global allocator.
pub(crate) const C_HEAP: Facts = 1 << 1;
/// Makes a system call that maps, unmaps, moves, protects, locks or advises memory, or makes some.
pub(crate) const MEMORY_CALL: Facts = 1 << 2;
/// Takes a page fault.
pub(crate) const FAULT: Facts = 1 << 3;
/// Asks an arena for more than it has.
pub(crate) const GROWTH: Facts = 1 << 4;
/// Makes a system call whose purpose is to wait: for a lock, a time, an event or a child, or until others have run.
pub(crate) const WAIT: Facts = 1 << 5;
/// Does what it does by calling a function of the system's library, and not by instructions alone.
pub(crate) const LIBRARY: Facts = 1 << 6;
/// Calls an allocator that is neither of the two.
pub(crate) const OTHER_HEAP: Facts = 1 << 7;
/// Takes a time without a bound in another way: makes another system call, or spins.
pub(crate) const UNBOUNDED: Facts = 1 << 8;

/// The names of all facts, in the order of their bits.
const NAMES: [&str; 9] =
    ["rust heap", "c heap", "memory call", "fault", "growth", "wait", "library", "other heap", "no bound"];

/// The names of the facts in a set.
pub(crate) fn names(facts: Facts) -> impl Iterator<Item = &'static str> {
    NAMES.into_iter().enumerate().filter(move |(bit, _)| facts & 1 << bit != 0).map(|(_, name)| name)
}

/// What is done in the steady part.
pub(crate) type Act = Box<dyn FnMut()>;

/// One way to break real time, or none.
pub(crate) struct Case {
    pub(crate) name: &'static str,
    /// What it surely does.
    pub(crate) does: Facts,
    /// What it may do besides: on some systems, or depending on what came before.
    pub(crate) may: Facts,
    /// Prepares it on the thread that will do it, before that is steady.
    pub(crate) prepare: fn() -> Act,
}

impl Case {
    pub(crate) const fn new(name: &'static str, does: Facts, prepare: fn() -> Act) -> Self {
        // An allocator may ask the kernel for more, and code may use memory of its library for the first time.
        let heap = if does & (RUST_HEAP | C_HEAP | OTHER_HEAP) != 0 { MEMORY_CALL | FAULT } else { 0 };
        let library = if does & (LIBRARY | MEMORY_CALL) != 0 { FAULT } else { 0 };
        Self { name, does, may: heap | library, prepare }
    }

    /// The same case, which may do this as well.
    pub(crate) const fn may(mut self, facts: Facts) -> Self {
        self.may |= facts;
        self
    }
}

/// Cases of one kind.
pub(crate) struct Group {
    pub(crate) name: &'static str,
    pub(crate) cases: &'static [Case],
}

/// Does it once, in the first turn.
pub(crate) fn once(work: impl FnOnce() + 'static) -> Act {
    let mut work = Some(work);
    Box::new(move || {
        if let Some(work) = work.take() {
            work();
        }
    })
}

/// Does all of them, one after the other.
pub(crate) fn all(mut acts: Vec<Act>) -> Act {
    Box::new(move || acts.iter_mut().for_each(|act| act()))
}

/// What the compiler must not leave out.
pub(crate) fn discard<T>(value: T) {
    drop(core::hint::black_box(value));
}

/// A value for as long as the program runs, so that nothing frees it in the steady part.
pub(crate) fn forever<T>(value: T) -> &'static T {
    Box::leak(Box::new(value))
}

/// Ends the process, because this system cannot do what the case is about.
pub(crate) fn cannot_run(why: &str) -> ! {
    println!("CANNOT {why}");
    std::process::exit(0)
}
