//! Programs that log all of their calls on a pool of packets.

use std::sync::mpsc;

use tripoint::packets::{PacketBox, PacketPool, PacketPoolOptions};
use tripoint::{ClientArena, Mvff, MvffOptions};
use tripoint_oracle::Random;

use super::programs::{self, Length, Log, Logged};
use super::{assert_same, replay};

/// The bytes of a unit.
const SIZE: usize = 512;

const OPTIONS: PacketPoolOptions = PacketPoolOptions { count: 200, headroom: 64, caches: 3, cache_size: 40 };

type Packet<'p> = PacketBox<'p, SIZE>;
type Pool<'a, 'm> = PacketPool<&'a ClientArena<'m>, SIZE>;

/// Runs a program with a pool of packets whose calls are logged.
fn log_of(program: impl FnOnce(&Pool<'_, '_>)) -> Logged {
    programs::logged_by(|log| {
        programs::run_in_arena(1 << 20, log, |arena, _| program(&create(arena, log)));
    })
}

fn create<'a, 'm>(arena: &'a ClientArena<'m>, log: &'static Log) -> Pool<'a, 'm> {
    PacketPool::create(arena, OPTIONS).unwrap().logged(log)
}

/// A packet of the program's, if it has one.
fn any<'p>(held: &mut Vec<Packet<'p>>, random: &mut Random) -> Option<Packet<'p>> {
    (!held.is_empty()).then(|| held.swap_remove(random.below(held.len())))
}

/// Makes any calls on two caches and two rings. What a device says is sometimes wrong.
pub(super) fn random_calls(seed: u64, steps: Length) -> Logged {
    log_of(|pool| {
        let mut random = Random::new(seed);
        let mut caches = [pool.cache().unwrap(), pool.cache().unwrap()];
        let mut rings = [pool.ring().unwrap(), pool.ring().unwrap()];
        // What the program has, and the offsets that the devices of the rings were given.
        let (mut held, mut given) = (Vec::new(), [Vec::new(), Vec::new()]);
        for _ in 0..steps.steps() {
            let (at, other) = (random.below(2), random.below(2));
            match random.below(16) {
                0 => held.extend(caches[at].take()),
                1 => held.extend(pool.take()),
                2 => any(&mut held, &mut random).into_iter().for_each(|packet| caches[at].give(packet)),
                3 => drop(any(&mut held, &mut random)),
                4 => {
                    let mut burst = pool.burst::<16>();
                    if let Some(packet) = any(&mut held, &mut random) {
                        burst.push(packet).unwrap();
                    }
                    assert_eq!(caches[at].take_burst(&mut burst), burst.len() == 16);
                    while let Some(packet) = burst.pop() {
                        held.push(packet);
                    }
                }
                5 => {
                    let mut burst = pool.burst::<8>();
                    while burst.len() < 8
                        && let Some(packet) = any(&mut held, &mut random)
                    {
                        burst.push(packet).unwrap();
                    }
                    if random.once_in(2) { caches[at].give_burst(&mut burst) } else { burst.clear() }
                }
                6 => {
                    let mut batch = pool.batch::<4>();
                    while batch.room() > 0
                        && let Some(packet) = any(&mut held, &mut random)
                    {
                        batch.push(packet).unwrap();
                    }
                    caches[at].give_batch(&mut batch);
                }
                7 => {
                    let count = random.below(12);
                    rings[at].fill(&mut caches[other], count, |unit| given[at].push(unit.offset));
                }
                8 | 9 => {
                    if let Some(mut packet) = any(&mut held, &mut random) {
                        packet.clear();
                        packet.append(random.below(200)).unwrap();
                        packet.prepend(random.below(60)).unwrap();
                        packet.trim_front(random.below(100));
                        given[at].push(rings[at].submit(packet).unwrap().offset);
                    }
                }
                10 | 11 if !given[at].is_empty() => {
                    let offset = given[at].swap_remove(random.below(given[at].len()));
                    held.push(rings[at].complete(offset, 1).unwrap());
                }
                12 if !given[at].is_empty() => {
                    let offset = given[at].swap_remove(random.below(given[at].len()));
                    rings[at].complete_into(&mut caches[other], offset).unwrap();
                }
                13 => {
                    assert!(
                        rings[at].complete(random.number() | (1 << 20), 60).is_err(),
                        "outside of the region"
                    );
                    assert!(rings[at].complete_number(3, SIZE as u32, 0).is_err(), "outside of the unit");
                    assert!(rings[at].complete(100, SIZE as u32).is_err(), "over the end of the unit");
                    if let Some(&offset) = given[at].first() {
                        assert!(rings[1 - at].complete(offset, 0).is_err(), "of another ring");
                    }
                }
                14 => match random.below(3) {
                    0 => pool.trip_caches(),
                    1 => caches[at].flush(),
                    _ => {
                        let third = pool.cache().unwrap();
                        assert!(pool.cache().is_err(), "there are three");
                        drop(third);
                    }
                },
                _ => {}
            }
        }
        // SAFETY: there is no device.
        let reclaimed = rings.iter_mut().map(|ring| unsafe { ring.reclaim() }).sum::<usize>();
        assert_eq!(reclaimed, given.iter().map(Vec::len).sum::<usize>());
    })
}

/// Two threads with a cache and a ring each pass packets on to one another.
fn threads(steps: Length) -> Logged {
    log_of(|pool| {
        let (senders, receivers): (Vec<_>, Vec<_>) = (0..2).map(|_| mpsc::channel::<Packet<'_>>()).unzip();
        std::thread::scope(|scope| {
            for (thread, received) in receivers.into_iter().enumerate() {
                let next = senders[1 - thread].clone();
                scope.spawn(move || {
                    let (mut cache, mut ring) = (pool.cache().unwrap(), pool.ring().unwrap());
                    for step in 0..steps.steps() / 2 {
                        if let Some(mut packet) = cache.take() {
                            packet.extend_from_slice(b"data").unwrap();
                            let offset = ring.submit(packet).unwrap().offset;
                            // Its receiver may be over, and the packet is dropped.
                            _ = next.send(ring.complete(offset, 4).unwrap());
                        }
                        for packet in received.try_iter().take(step % 3) {
                            cache.give(packet);
                        }
                    }
                });
            }
            drop(senders);
        });
    })
}

/// (design/point-log.md `.packets`, `.req.same`)
#[test]
fn packets_are_replayed() {
    let logged = random_calls(21, Length::SHORT);
    assert_same(&logged);
    for call in [
        "create cache",
        "drop cache",
        "create ring",
        "take",
        "give",
        "drop packets",
        "take burst",
        "give burst",
        "give batch",
        "fill",
        "submit",
        "complete",
        "complete number",
        "reclaim",
        "flush",
    ] {
        assert!(logged.texts().contains(call), "{call}: {:?}", logged.texts());
    }
    let json = replay(&["--until", &(logged.events / 2).to_string(), "--json"], &logged.log).json();
    let units = &json["state"]["pools"][0]["units"];
    let places = ["depot", "caches", "rings", "program"].map(|place| units[place].as_u64().unwrap());
    assert_eq!(places.iter().sum::<u64>(), u64::from(OPTIONS.count), "{units}");
    for error in ["Outside", "Overrun", "NotSubmitted", "Parameter", "Limit"] {
        assert!(logged.texts().contains(error), "{error}: {:?}", logged.texts());
    }
}

/// (design/point-log.md `.packets`, `.req.order`)
#[test]
fn packets_that_threads_hand_over_are_replayed_in_the_order_of_the_log() {
    assert_same(&threads(Length::SHORT));
}

/// What the program forgot is forgotten in the replay, too.
#[test]
fn packets_that_were_forgotten_are_not_dropped_by_the_replay() {
    assert_same(&log_of(|pool| {
        for _ in 0..20 {
            core::mem::forget(pool.take());
            let mut cache = pool.cache().unwrap();
            drop(cache.take());
        }
        core::mem::forget(pool.cache());
    }));
}

/// A pool of packets lies beside other pools.
#[test]
fn a_pool_of_packets_without_reports_has_no_calls() {
    assert_same(&programs::log_of(1 << 20, |arena, log| {
        let packets: Pool<'_, '_> = PacketPool::create(arena, OPTIONS).unwrap();
        let pool = programs::logged(Mvff::create(arena, MvffOptions::default()).unwrap(), log);
        let mut point = programs::point(&pool, log);
        for number in 0_u64..20 {
            drop((packets.take(), point.boxed(number).unwrap()));
        }
    }));
}
