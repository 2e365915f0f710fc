//! A system that does not let the contract have a hand on forks. That is asked for once in a process, so this process
//! has no other test.
#![cfg(tripoint_kernel)]

use core::ffi::c_int;
use core::sync::atomic::{AtomicUsize, Ordering};

use tripoint_contract::{Contract, NoReason};
use tripoint_core::internal::AtomicUsize as Word;
use tripoint_core::{ContractWords, Error, Event, EventHook, Result};

type AtFork = Option<unsafe extern "C" fn()>;

/// Takes the place of the one of C's library.
#[unsafe(no_mangle)]
extern "C" fn pthread_atfork(_prepare: AtFork, _parent: AtFork, _child: AtFork) -> c_int {
    libc::ENOMEM
}

/// Counts how often it is asked for its words, which it would give once.
struct Hook(AtomicUsize);

impl EventHook for Hook {
    fn event(&self, _: Event) {}

    fn words_for(&self, _: &ContractWords<'_>) -> Result<Option<&'static [Word]>> {
        static WORDS: [Word; 512] = [const { Word::new(0) }; 512];
        self.0.fetch_add(1, Ordering::Relaxed);
        Ok(Some(&WORDS))
    }
}

/// So another contract may still have the hook's words.
#[test]
fn without_a_hand_on_forks_a_hook_keeps_its_words() {
    static HOOK: Hook = Hook(AtomicUsize::new(0));
    static CONTRACT: Contract<NoReason, 1> = Contract::new();
    assert_eq!(CONTRACT.observe_with(&HOOK), Err(Error::Resource));
    assert_eq!(HOOK.0.load(Ordering::Relaxed), 0);
}
