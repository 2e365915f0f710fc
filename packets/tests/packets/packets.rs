//! What a program does with a packet.

use tripoint_packets::PacketError;

use super::{SIZE, with_pool};

/// (design/packets.md `.box`)
#[test]
fn data_grow_at_both_ends_and_shrink() {
    with_pool(|pool| {
        let mut packet = pool.take().unwrap();
        assert_eq!((packet.len(), packet.headroom(), packet.tailroom()), (0, 64, SIZE - 64));
        packet.extend_from_slice(b"payload").unwrap();
        packet.prepend(3).unwrap().copy_from_slice(b"hd:");
        assert_eq!((&packet[..], packet.headroom(), packet.tailroom()), (&b"hd:payload"[..], 61, SIZE - 71));
        assert_eq!(packet.offset() as usize, packet.number() as usize * SIZE + 61);
        packet.trim_front(3);
        packet.truncate(3);
        assert_eq!(&packet[..], b"pay");
        packet.truncate(100);
        assert_eq!(packet.len(), 3, "a truncation makes nothing longer");
        packet[0] = b'P';
        assert_eq!(packet.as_ref(), b"Pay");
        assert_eq!(packet.as_mut().len(), 3);
        packet.trim_front(100);
        assert_eq!((packet.len(), packet.headroom()), (0, 67), "no more than the data");
        packet.clear();
        assert_eq!((packet.len(), packet.headroom()), (0, 64));
    });
}

#[test]
fn what_does_not_fit_is_refused_and_changes_nothing() {
    with_pool(|pool| {
        let mut packet = pool.take().unwrap();
        packet.extend_from_slice(b"abc").unwrap();
        assert_eq!(packet.prepend(65).err(), Some(PacketError::NoRoom { needed: 65, room: 64 }));
        assert_eq!(packet.append(190).err(), Some(PacketError::NoRoom { needed: 190, room: 189 }));
        assert_eq!(
            packet.append(usize::MAX).err(),
            Some(PacketError::NoRoom { needed: usize::MAX, room: 189 })
        );
        assert!(packet.prepend(usize::MAX).is_err() && packet.extend_from_slice(&[0; SIZE]).is_err());
        assert_eq!((&packet[..], packet.headroom()), (&b"abc"[..], 64));
        assert_eq!((packet.prepend(64).unwrap().len(), packet.append(189).unwrap().len()), (64, 189));
        assert_eq!((packet.len(), packet.headroom(), packet.tailroom()), (SIZE, 0, 0));
    });
}

#[test]
fn packets_are_freed_on_any_thread() {
    with_pool(|pool| {
        let mut packet = pool.take().unwrap();
        packet.extend_from_slice(b"sent").unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| assert_eq!(&packet[..], b"sent"));
        });
        std::thread::scope(|scope| {
            scope.spawn(move || drop(packet));
        });
    });
}

/// With the feature `poison`, what was in a packet is gone when it is given back.
#[test]
fn freed_units_are_poisoned_if_asked_for() {
    with_pool(|pool| {
        let mut cache = pool.cache().unwrap();
        let mut packet = cache.take().unwrap();
        packet.append(8).unwrap().fill(7);
        let number = packet.number();
        cache.give(packet);
        let mut again = cache.take().unwrap();
        assert_eq!(again.number(), number, "the unit given back last is taken first");
        let expected = if cfg!(feature = "poison") { 0xdd } else { 7 };
        assert!(again.append(8).unwrap().iter().all(|&byte| byte == expected));
    });
}

#[test]
fn errors_say_what_to_do() {
    let errors = [
        (PacketError::Outside { offset: 9, size: 8 }, "given this region"),
        (PacketError::Unaligned { offset: 9, unit: 64 }, "first byte of a unit"),
        (PacketError::Overrun { offset: 9, length: 60, room: 55 }, "check the unit size"),
        (PacketError::NotSubmitted { number: 3 }, "reset the device"),
        (PacketError::NoRoom { needed: 9, room: 8 }, "make the headroom"),
    ];
    for (error, advice) in errors {
        let text = error.to_string();
        assert!(text.contains(advice) && text.chars().any(|char| char.is_ascii_digit()), "{text}");
    }
}
