//! The records and alarms of one thread: made by two writers, taken by one reader in the
//! order in which they were made (design/contract.md `.ring`, `.alarm`).

use tripoint_core::internal::{AtomicUsize, Ordering};

use crate::thread::account::Account;
use crate::thread::ring::{RING_RECORDS, Ring};
use crate::words::atomics::const_fn;
use crate::words::class::ViolationClass;
use crate::words::record::{Record, RecordKind};

/// Which of the two writers makes a record. Each has a ring of its own.
#[derive(Clone, Copy)]
pub(crate) enum Writer {
    /// The thread itself, or one of its signal handlers.
    Thread,
    /// The supervisor of its system calls.
    Supervisor,
}

/// Which part has the oldest record.
#[derive(Clone, Copy)]
enum Source {
    Ring(Writer),
    Alarm(ViolationClass),
}

/// All that is kept of a thread's events for a cold thread.
#[derive(Debug)]
pub(crate) struct Records {
    accounts: [Account; ViolationClass::COUNT],
    /// The number of records so far, from all writers.
    serial: AtomicUsize,
    own: Ring<RING_RECORDS>,
    supervised: Ring<RING_RECORDS>,
}

impl Records {
    /// Where accounts, own and supervised ring are, for debuggers.
    #[cfg(not(tripoint_loom))]
    pub(crate) const OFFSETS: [usize; 3] = [
        core::mem::offset_of!(Self, accounts),
        core::mem::offset_of!(Self, own),
        core::mem::offset_of!(Self, supervised),
    ];

    #[cfg(not(tripoint_loom))]
    pub(crate) const fn new() -> Self {
        Self::with_accounts([const { Account::new() }; ViolationClass::COUNT])
    }

    #[cfg(tripoint_loom)]
    pub(crate) fn new() -> Self {
        Self::with_accounts(core::array::from_fn(|_| Account::new()))
    }

    const_fn! {
        fn with_accounts(accounts: [Account; ViolationClass::COUNT]) -> Self {
            Self { accounts, serial: AtomicUsize::new(0), own: Ring::new(), supervised: Ring::new() }
        }
    }

    /// Writes every page of what is empty, and forgets what the accounts hold. Called before
    /// anything uses it.
    pub(crate) fn prefault(&self) {
        self.own.prefault();
        self.supervised.prefault();
        self.accounts.iter().for_each(Account::reset);
    }

    const fn ring(&self, writer: Writer) -> &Ring<RING_RECORDS> {
        match writer {
            Writer::Thread => &self.own,
            Writer::Supervisor => &self.supervised,
        }
    }

    const fn account(&self, class: ViolationClass) -> &Account {
        &self.accounts[class.index()]
    }

    /// The number of the next record.
    pub(crate) fn next_serial(&self) -> usize {
        self.serial.fetch_add(1, Ordering::Relaxed)
    }

    /// Begins a turn: each class may make its records again. Called only on the thread, while
    /// no supervisor is at a call of it.
    pub(crate) fn begin_turn(&self) {
        self.accounts.iter().for_each(Account::begin_turn);
    }

    /// Whether a record would be kept, if it were made now.
    #[cfg(tripoint_kernel)]
    pub(crate) fn would_keep(&self, kind: RecordKind, class: ViolationClass, writer: Writer) -> bool {
        let account = self.account(class);
        account.is_first(kind) || Self::room(account, self.ring(writer)).is_some()
    }

    /// Makes a record, if it is the turn's first violation or there is room for it, and returns
    /// it. Only then is `make` called, which walks the stack.
    pub(crate) fn keep(
        &self,
        kind: RecordKind,
        class: ViolationClass,
        writer: Writer,
        make: impl FnOnce() -> Record,
    ) -> Option<Record> {
        let (account, ring) = (self.account(class), self.ring(writer));
        let is_first = account.is_first(kind);
        let room = Self::room(account, ring);
        let record = (is_first || room.is_some()).then(make);
        if let Some(record) = &record {
            if is_first {
                account.begin(record);
            }
            if let Some(place) = room {
                account.count();
                ring.write(place, record);
                ring.publish(place);
            }
        }
        // The next rehearsal makes its records again.
        if room.is_none() && kind != RecordKind::Rehearsed {
            ring.lose();
        }
        record
    }

    fn room(account: &Account, ring: &Ring<RING_RECORDS>) -> Option<usize> {
        if account.has_room() { ring.room() } else { None }
    }

    /// The turn's first violation of a class; the next violation is the first of another turn.
    pub(crate) fn end_turn_of(&self, class: ViolationClass) -> Record {
        self.account(class).end()
    }

    /// Keeps an alarm until it is taken.
    pub(crate) fn raise(&self, alarm: &Record) {
        self.account(alarm.class).alarm.raise(alarm);
    }

    /// The number of records that were lost.
    pub(crate) fn lost(&self) -> usize {
        self.own.lost().wrapping_add(self.supervised.lost())
    }

    /// Whether no record and no alarm waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.oldest().is_none()
    }

    /// Takes the oldest record or alarm. Only one thread at a time may call this.
    pub(crate) fn pop(&self) -> Option<Record> {
        self.oldest()?;
        // A second look finds what was made before the one found first.
        match self.oldest()? {
            Source::Ring(writer) => self.ring(writer).pop(),
            Source::Alarm(class) => self.account(class).alarm.take(),
        }
    }

    fn oldest(&self) -> Option<Source> {
        let records = [Writer::Thread, Writer::Supervisor]
            .into_iter()
            .filter_map(|writer| Some((Source::Ring(writer), self.ring(writer).peek()?.serial)));
        let alarms = ViolationClass::ALL
            .into_iter()
            .filter_map(|class| Some((Source::Alarm(class), self.account(class).alarm.peek()?)));
        alarms.chain(records).min_by_key(|&(_, serial)| serial).map(|(source, _)| source)
    }
}
