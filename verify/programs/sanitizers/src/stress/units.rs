//! Units that one thread allocates and the next one frees, in every way there is.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use tripoint::{ArenaVm, ArenaVmOptions, Check, CheckLevel, Mfs, MfsOptions, PoolBox, PoolClass, UnitOf};

use crate::random::Random;

const THREADS: usize = 4;
const ROUNDS: usize = 2000;
/// The most that one thread frees at once.
const FREES: usize = 200;

/// A size that divides an extent without remainder.
type Object = [u64; 8];
type Pool<'a> = Mfs<&'a ArenaVm, UnitOf<Object>>;
type Unit<'p, 'a> = PoolBox<'p, Object, Pool<'a>>;

fn exchange<'p, 'a>(
    pool: &'p Pool<'a>,
    sender: &Sender<Unit<'p, 'a>>,
    receiver: &Receiver<Unit<'p, 'a>>,
    mut random: Random,
) {
    let (cache, mut returns) = (pool.cache(), pool.returns());
    for round in 0..ROUNDS {
        let value = [round as u64; 8];
        let made = if random.below(4) > 0 { cache.pool_boxed(value) } else { PoolBox::new_in(value, pool) };
        // If the next thread has ended, the unit comes back and is freed.
        drop(sender.send(made.unwrap()));
        random.pause();
        let most = if random.below(8) == 0 { FREES } else { 1 };
        for received in receiver.try_iter().take(most) {
            assert!(received.iter().all(|&word| word == received[0]));
            match random.below(4) {
                0 => cache.free_box(received),
                1 => drop(received),
                _ => returns.free_box(received),
            }
        }
        match random.below(200) {
            0 => cache.flush(),
            1 => returns.flush(),
            _ => {}
        }
    }
}

pub(crate) fn race(random: &mut Random) -> u64 {
    let arena = ArenaVm::create(ArenaVmOptions { reserve: 64 << 20, ..ArenaVmOptions::default() }).unwrap();
    let options = MfsOptions { extend_by: 64 << 10, ..MfsOptions::default() };
    let pool = Mfs::create(&arena, UnitOf::new(), options).unwrap();
    thread::scope(|scope| {
        let (mut senders, receivers): (Vec<_>, Vec<_>) = (0..THREADS).map(|_| channel()).unzip();
        senders.rotate_left(1);
        for (sender, receiver) in senders.into_iter().zip(receivers) {
            let (pool, random) = (&pool, random.split());
            scope.spawn(move || exchange(pool, &sender, &receiver, random));
        }
    });
    pool.check(CheckLevel::Deep).unwrap();
    assert_eq!(pool.sizes().free, pool.sizes().total);
    (THREADS * ROUNDS) as u64
}
