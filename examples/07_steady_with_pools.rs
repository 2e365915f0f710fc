//! For a program whose hot thread has its memory from pools: the contract holds the arena,
//! too. At the end of the warm-up the driver freezes it, prefaults it, and rehearses; from
//! then on growth is a violation just as a page fault or a call of `malloc` is.
//!
//! ```sh
//! cargo run --example 07_steady_with_pools
//! ```

use core::error::Error;
use core::sync::atomic::{AtomicBool, Ordering::Relaxed};
use core::time::Duration;
use std::thread;

use tripoint::contract::{
    Arenas, Contract, ContractAllocator, HotThread, PoolEvents, Report, Route, WarmupOptions,
};
use tripoint::{Arena, ArenaVm, ArenaVmOptions, Mfs, MfsOptions, UnitOf};

#[global_allocator]
static ALLOCATOR: ContractAllocator = ContractAllocator::system();
static CONTRACT: Contract = Contract::new();
/// Charges growth of the arena to the thread that caused it.
static EVENTS: PoolEvents = PoolEvents;
static ROUTES: [Route; 2] = [Route::with_minimum("new order", 1_000), Route::with_minimum("full book", 10)];
static STOP: AtomicBool = AtomicBool::new(false);

/// Orders that rest at once.
const BOOK: usize = 4_096;

struct Order {
    price: u64,
    quantity: u64,
}

/// Keeps a book of boxes, the oldest of which each new order replaces.
fn hot_loop(pool: &Mfs<&ArenaVm, UnitOf<Order>>) -> u64 {
    let cache = pool.cache();
    let mut book: Vec<_> = (0..BOOK).map(|_| None).collect();
    let guard = CONTRACT.register(HotThread::new("book")).expect("the contract has room");
    let mut notional = 0_u64;
    for turn in 0_usize.. {
        let order = cache.boxed(Order { price: 61_659, quantity: turn as u64 % 7 }).expect("a warm pool");
        notional = notional.wrapping_add(order.price * order.quantity);
        book[turn % BOOK] = Some(order);
        ROUTES[0].pass();
        if turn % BOOK == BOOK - 1 {
            ROUTES[1].pass(); // the largest the book ever is
        }
        guard.check(); // one load and one compare, unless the driver wants something
        if STOP.load(Relaxed) {
            break;
        }
    }
    notional
}

fn main() -> Result<(), Box<dyn Error>> {
    let arena = ArenaVm::create(ArenaVmOptions { event_hook: Some(&EVENTS), ..ArenaVmOptions::default() })?;
    let pool = Mfs::create(&arena, UnitOf::<Order>::new(), MfsOptions::default())?;
    CONTRACT.begin_init()?;

    thread::scope(|scope| {
        let hot = scope.spawn(|| hot_loop(&pool));
        let arenas: [&dyn Arena; 1] = [&arena];
        let memory = Arenas::new(&arenas); // what the driver freezes
        let options = WarmupOptions { quiet_window: 50_000_000, ..WarmupOptions::default() }; // ns
        let warm = CONTRACT.warm_up(&ROUTES, &memory, options);
        thread::sleep(Duration::from_millis(100)); // the steady part: the program's real work
        STOP.store(true, Relaxed);
        let notional = hot.join().expect("the loop does not panic");
        println!("{}", warm?);

        let mut records = Vec::new();
        let report = Report { routes: &ROUTES, ..Report::drained(&CONTRACT, &mut records) };
        println!("{report}\nnotional {notional}");
        assert!(report.was_armed() && arena.is_frozen());
        assert_eq!(report.alarms(), 0);
        assert_eq!(arena.counts().growth_refused.get(), 0);
        Ok(())
    })
}
