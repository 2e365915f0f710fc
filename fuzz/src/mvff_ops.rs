//! A pool of class MVFF, in a client arena, against a naive account.

use core::alloc::Layout;
use core::mem::MaybeUninit;

use tripoint::core::{Check, CheckLevel, ClientArena, ClientArenaOptions, ManualPool, PoolClass};
use tripoint::pools::{Mvff, MvffOptions};
use tripoint::prelude::AllocationPoint;

use crate::account::Account;
use crate::choices::Choices;

const ARENA_SIZE: usize = 256 << 10;
const ALIGN_LOG_MAX: u32 = 12;

/// Allocates and frees as the bytes say, directly and through an allocation
/// point; whatever is handed out is apart, aligned and kept, the free memory adds up, and
/// nothing is refused that fits.
///
/// # Panics
/// Where any of that does not hold.
pub fn mvff_ops(data: &[u8]) {
    let mut choices = Choices::new(data);
    let Some(options) = draw_options(&mut choices) else { return };
    let mut memory = vec![MaybeUninit::uninit(); ARENA_SIZE];
    let arena_options = ClientArenaOptions { grain: Some(4096), event_hook: None };
    let arena = ClientArena::create(&mut memory, arena_options).unwrap();
    let pool = Mvff::create(&arena, options).unwrap();
    let mut account = Account::default();
    let mut point = AllocationPoint::create(&pool).unwrap();
    while let Some(()) = step(&mut choices, &pool, &mut point, &mut account) {
        let in_buffer = point.room();
        assert_eq!(pool.sizes().free + in_buffer + account.size(), pool.sizes().total, "memory adds up");
    }
    drop(point);
    pool.check(CheckLevel::Deep).unwrap();
    while let Some((object, layout)) = account.take(0) {
        // SAFETY: allocated in this pool with this layout, and taken out.
        unsafe { pool.free(object, layout) };
    }
    pool.check(CheckLevel::Deep).unwrap();
    assert_eq!(pool.sizes().free, pool.sizes().total, "all is free at the end");
}

fn draw_options(choices: &mut Choices<'_>) -> Option<MvffOptions> {
    let spare = if choices.byte()? & 1 == 0 { usize::MAX } else { choices.below(32 << 10)? };
    Some(MvffOptions { extend_by: choices.below(32 << 10)?, fill_size: choices.below(8 << 10)?, spare })
}

type Pool<'a, 'm> = Mvff<&'a ClientArena<'m>>;

fn step<'p, 'a, 'm>(
    choices: &mut Choices<'_>,
    pool: &'p Pool<'a, 'm>,
    point: &mut AllocationPoint<'p, Pool<'a, 'm>>,
    account: &mut Account,
) -> Option<()> {
    match choices.byte()? % 8 {
        0..=2 => alloc(choices.layout(16 << 10, ALIGN_LOG_MAX)?, pool, account),
        3 => reserve(choices.layout(2 << 10, ALIGN_LOG_MAX)?, point, account),
        4..=5 => {
            if let Some((object, layout)) = account.take(choices.below(1 << 16)?) {
                // SAFETY: allocated in this pool with this layout, and taken out.
                unsafe { pool.free(object, layout) };
            }
        }
        6 => point.empty(),
        _ => pool.check(CheckLevel::Deep).unwrap(),
    }
    Some(())
}

fn alloc(layout: Layout, pool: &Pool<'_, '_>, account: &mut Account) {
    let size = pool.reserve_size(layout).unwrap();
    match pool.alloc(layout) {
        // SAFETY: the pool gave these bytes out just now.
        Ok(object) => unsafe { account.add(object, size, layout) },
        Err(_) => {
            // Any block so large holds the object, wherever it is aligned.
            let surely_fits = size + layout.align() - 1;
            assert!(pool.sizes().largest_free < surely_fits, "what fits is not refused");
        }
    }
}

fn reserve<'p, 'a, 'm>(layout: Layout, point: &mut AllocationPoint<'p, Pool<'a, 'm>>, account: &mut Account) {
    let Ok(reservation) = point.reserve(layout) else { return };
    let (object, size) = (reservation.as_ptr(), reservation.size());
    // SAFETY: reserved bytes, committed below and freed only when taken out.
    unsafe { account.add(object, size, layout) };
    // SAFETY: the account initialised the object.
    assert!(unsafe { reservation.commit() }.is_ok(), "commits in manual pools stand");
}
