//! Batches: packets with their data, in their order (design/packets.md `.batch`).

use tripoint_packets::PacketBatch;

use super::{OPTIONS, Pool, SIZE, with_arena, with_pool};

/// The first byte of each packet.
fn first_bytes<const N: usize>(batch: &PacketBatch<'_, SIZE, N>) -> Vec<u8> {
    batch.iter().map(|data| data[0]).collect()
}

/// Any pushes and pops, beside a queue.
#[test]
fn a_batch_is_a_queue_of_packets_with_their_data() {
    with_pool(|pool| {
        let mut batch = pool.batch::<4>();
        let mut expected = std::collections::VecDeque::new();
        for step in 0..200_u8 {
            assert_eq!((batch.len(), batch.room()), (expected.len(), 4 - expected.len()));
            assert_eq!(batch.is_empty(), expected.is_empty());
            if step % 7 < 4 {
                let mut packet = pool.take().unwrap();
                packet.extend_from_slice(&[step; 9]).unwrap();
                packet.trim_front(usize::from(step % 3));
                match batch.push(packet) {
                    Ok(()) => expected
                        .push_back((64 + usize::from(step % 3), vec![step; 9 - usize::from(step % 3)])),
                    Err(packet) => assert_eq!((expected.len(), packet[0]), (4, step)),
                }
            } else {
                let popped = batch.pop().map(|packet| (packet.headroom(), packet.to_vec()));
                assert_eq!(popped, expected.pop_front());
            }
            assert!(batch.iter().eq(expected.iter().map(|(_, data)| &data[..])));
        }
        batch.iter_mut().for_each(|data| data.fill(0xff));
        while let Some(packet) = batch.pop() {
            assert!(packet.iter().all(|byte| *byte == 0xff));
        }
    });
}

/// What comes out of a ring goes into the next with the same data, and in the same order.
#[test]
fn a_batch_goes_from_ring_to_ring() {
    with_pool(|pool| {
        let (mut cache, mut receive, mut transmit) =
            (pool.cache().unwrap(), pool.ring().unwrap(), pool.ring().unwrap());
        let (mut filled, mut batch) = (Vec::new(), pool.batch::<4>());
        assert_eq!(receive.fill(&mut cache, 6, |unit| filled.push(unit)), 6);
        let said: Vec<_> = filled.iter().zip(1..).map(|(unit, length)| (unit.offset + 3, length)).collect();
        // A completion that was never submitted is counted, and leaves a place in the batch.
        let lies = [(19 * SIZE as u64, 1)];
        assert_eq!(receive.complete_batch(&mut batch, lies.into_iter().chain(said[..2].iter().copied())), 2);
        assert_eq!((receive.counts().refused, batch.len()), (1, 2));
        assert_eq!(receive.complete_batch(&mut batch, said[2..].iter().copied()), 2, "it has room for two");
        assert_eq!(receive.complete_batch(&mut batch, [(u64::MAX, 0)]), 0, "and looks at no more then");
        assert_eq!((receive.counts().refused, receive.counts().completed), (1, 4));
        assert_eq!(batch.iter().map(<[u8]>::len).collect::<Vec<_>>(), [1, 2, 3, 4]);

        let mut sent = Vec::new();
        assert_eq!(
            transmit.submit_batch(&mut batch, 3, |packet| sent.push((packet.offset, packet.length))),
            3
        );
        assert_eq!((batch.len(), &sent[..]), (1, &said[..3]));
        assert_eq!(
            transmit.submit_batch(&mut batch, 3, |packet| sent.push((packet.offset, packet.length))),
            1
        );
        assert_eq!(sent, said[..4]);
        let twice = sent.iter().chain(&sent[..1]).map(|(offset, _)| *offset);
        assert_eq!(transmit.complete_all_into(&mut cache, twice), 4);
        assert_eq!((transmit.counts().outstanding(), transmit.counts().refused), (0, 1));
        assert_eq!(receive.complete_all_into(&mut cache, said[4..].iter().map(|(offset, _)| *offset)), 2);
    });
}

#[test]
fn a_batch_that_is_dropped_or_given_loses_no_unit() {
    with_pool(|pool| {
        let (mut cache, mut batch) = (pool.cache().unwrap(), pool.batch::<8>());
        (0..8).for_each(|_| batch.push(cache.take().unwrap()).unwrap());
        drop(batch.pop());
        cache.give_batch(&mut batch);
        assert!(batch.is_empty());
        assert_eq!(cache.len() + pool.counts().depot, 20);
        (0..5).for_each(|_| batch.push(cache.take().unwrap()).unwrap());
        batch.clear();
        assert_eq!((batch.len(), cache.len() + pool.counts().depot), (0, 20));
        (0..5).for_each(|_| batch.push(cache.take().unwrap()).unwrap());
        assert_eq!(format!("{batch:?}"), "PacketBatch(5 of 8 packets)");
    });
}

#[test]
fn a_batch_is_of_one_pool() {
    with_arena(|arena| {
        let (pool, stranger) = (Pool::create(arena, OPTIONS).unwrap(), Pool::create(arena, OPTIONS).unwrap());
        let (mut ring, mut cache) = (pool.ring().unwrap(), pool.cache().unwrap());
        let mut batch = stranger.batch::<4>();
        let mut own = pool.take().unwrap();
        own.append(1).unwrap()[0] = 7;
        assert_eq!(batch.push(own).map_err(|packet| packet[0]), Err(7));
        let mut packet = stranger.take().unwrap();
        packet.append(1).unwrap()[0] = 9;
        batch.push(packet).unwrap();
        assert_eq!(ring.submit_batch(&mut batch, 4, |_| panic!("nothing is written")), 0);
        let mut filled = None;
        ring.fill(&mut cache, 1, |unit| filled = Some(unit.offset));
        assert_eq!(ring.complete_batch(&mut batch, [(filled.unwrap(), 1)]), 0);
        assert_eq!((first_bytes(&batch), ring.counts().outstanding()), (vec![9], 1));
        cache.give_batch(&mut batch);
        assert_eq!((batch.len(), stranger.counts().depot), (0, 20), "the unit went to its own pool");
        ring.complete_into(&mut cache, filled.unwrap()).unwrap();
    });
}
