//! Captured packets: a file of pcap or pcapng (design/packet-path.md `.pcap`).

use core::time::Duration;
use std::collections::BTreeMap;
use std::io::{Cursor, Read};

use order_book::failure::Failure;
use pcap_parser::pcapng::{Block, UnknownBlock};
use pcap_parser::traits::{PcapNGPacketBlock as _, PcapReaderIterator};
use pcap_parser::{Linktype, PcapBlockOwned, PcapError, create_reader};

/// The bytes of the file that are looked at at once, at first.
const BUFFER: usize = 1 << 16;

/// The longest block of the file: more than any capture has.
const BLOCK_MAX: usize = 1 << 24;

const NANOSECONDS: u128 = 1_000_000_000;

/// A packet as it was captured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Packet<'a> {
    /// When, from a moment that all packets of the file have in common; none if the file does not say.
    pub(crate) time: Option<Duration>,
    /// What was kept of it. Nothing in it is looked at.
    pub(crate) bytes: &'a [u8],
    /// Whether it had more.
    pub(crate) is_cut: bool,
}

/// How packets of an interface were captured.
#[derive(Clone, Copy, Debug)]
struct Interface {
    link: Linktype,
    /// Ticks of its clock in a second.
    ticks: u64,
    /// Seconds that are added to it.
    offset: i64,
}

/// A part of the file, which has interfaces of its own; one of pcap has one of each.
#[derive(Debug, Default)]
struct Section {
    interfaces: Vec<Interface>,
    is_big_endian: bool,
}

impl Section {
    /// The type of a block that the parser does not know. It reads it as if the section were little-endian.
    const fn kind_of(&self, block: &UnknownBlock<'_>) -> u32 {
        if self.is_big_endian { block.block_type.swap_bytes() } else { block.block_type }
    }
}

/// A file that is read.
pub(crate) struct Capture {
    reader: Box<dyn PcapReaderIterator + Send>,
    /// The bytes that it has room for.
    buffer: usize,
    section: Section,
    /// How many packets came over each type of link, by its name.
    pub(crate) links: BTreeMap<String, u64>,
}

impl Capture {
    /// A capture whose first bytes are read.
    ///
    /// # Errors
    /// If it is none.
    pub(crate) fn open(mut input: impl Read + Send + 'static) -> Result<Self, Failure> {
        // The parser takes what the first read returns for all of the first block.
        let mut begin = Vec::new();
        let read = input.by_ref().take(BUFFER as u64).read_to_end(&mut begin);
        read.map_err(Failure::new)?;
        let none = |error: PcapError<&[u8]>| match error {
            PcapError::Eof => Failure::new("an empty file is no capture"),
            PcapError::Incomplete(_) => Failure::new("the capture is cut off in its first block"),
            _ => Failure::new("this is neither a file of pcap nor one of pcapng"),
        };
        let reader = create_reader(BUFFER, Cursor::new(begin).chain(input)).map_err(none)?;
        Ok(Self { reader, buffer: BUFFER, section: Section::default(), links: BTreeMap::new() })
    }

    /// Passes on packets until `each` returns false or there are no more.
    ///
    /// # Errors
    /// If the file cannot be read on; what came before was passed on.
    pub(crate) fn read(&mut self, mut each: impl FnMut(Packet<'_>) -> bool) -> Result<(), Failure> {
        loop {
            let Self { reader, section, links, .. } = self;
            let used = match reader.next() {
                Ok((size, block)) => match pass(&block, section, links, &mut each)? {
                    true => Some(size),
                    false => return Ok(()),
                },
                Err(PcapError::Eof) => return Ok(()),
                Err(PcapError::Incomplete(_) | PcapError::UnexpectedEof) => None,
                Err(PcapError::BufferTooSmall) => {
                    self.grow()?;
                    continue;
                }
                Err(_) => return Err(Failure::new("what comes next in the capture makes no sense")),
            };
            match used {
                Some(used) => reader.consume(used),
                None if reader.reader_exhausted() => {
                    return Err(Failure::new("the capture is cut off in the middle of a packet"));
                }
                None => {
                    let unread = |_| Failure::new("the capture cannot be read on");
                    reader.refill().map_err(unread)?;
                }
            }
        }
    }

    /// Makes room for a longer block.
    fn grow(&mut self) -> Result<(), Failure> {
        self.buffer *= 2;
        match self.buffer <= BLOCK_MAX && self.reader.grow(self.buffer) {
            true => Ok(()),
            false => {
                Err(Failure::new(format_args!("a block of the capture has more than {BLOCK_MAX} bytes")))
            }
        }
    }
}

/// Passes on the packet of a block, if it is one. Returns whether there may be another.
fn pass(
    block: &PcapBlockOwned<'_>,
    section: &mut Section,
    links: &mut BTreeMap<String, u64>,
    each: &mut impl FnMut(Packet<'_>) -> bool,
) -> Result<bool, Failure> {
    let (index, ticks, packet) = match block {
        PcapBlockOwned::LegacyHeader(header) => {
            let ticks = if header.is_nanosecond_precision() { 1_000_000_000 } else { 1_000_000 };
            section.interfaces = vec![Interface { link: header.network, ticks, offset: 0 }];
            return Ok(true);
        }
        PcapBlockOwned::NG(Block::SectionHeader(header)) => {
            *section = Section { interfaces: Vec::new(), is_big_endian: header.big_endian() };
            return Ok(true);
        }
        PcapBlockOwned::NG(Block::InterfaceDescription(description)) => {
            let ticks = ticks_of(description.if_tsresol)
                .ok_or_else(|| Failure::new("an interface of the capture has no clock that can be"))?;
            let (link, offset) = (description.linktype, description.ts_offset());
            section.interfaces.push(Interface { link, ticks, offset });
            return Ok(true);
        }
        PcapBlockOwned::Legacy(packet) => {
            let interface = section.interfaces.first();
            let per_second = interface.map_or(1, |interface| interface.ticks);
            let ticks = u64::from(packet.ts_sec) * per_second + u64::from(packet.ts_usec);
            let bytes = packet.data.get(..packet.caplen as usize).unwrap_or(packet.data);
            (0, Some(ticks), Packet { time: None, bytes, is_cut: packet.origlen > packet.caplen })
        }
        PcapBlockOwned::NG(Block::EnhancedPacket(packet)) => {
            let ticks = u64::from(packet.ts_high) << 32 | u64::from(packet.ts_low);
            let (bytes, is_cut) = (packet.packet_data(), packet.origlen > packet.caplen);
            (packet.if_id as usize, Some(ticks), Packet { time: None, bytes, is_cut })
        }
        PcapBlockOwned::NG(Block::SimplePacket(packet)) => {
            let bytes = packet.packet_data();
            (0, None, Packet { time: None, bytes, is_cut: packet.origlen as usize > bytes.len() })
        }
        PcapBlockOwned::NG(Block::Unknown(block)) if section.kind_of(block) == PACKET_BLOCK => {
            old_packet(block, section.is_big_endian)
                .ok_or_else(|| Failure::new("a packet block of the capture ends too soon"))?
        }
        // Statistics, names, and what others added.
        PcapBlockOwned::NG(_) => return Ok(true),
    };
    let interface = section.interfaces.get(index).ok_or_else(|| {
        Failure::new(format_args!("a packet of the capture is of interface {index}, which is not described"))
    })?;
    *links.entry(interface.link.to_string()).or_default() += 1;
    let time = ticks.and_then(|ticks| interface.time(ticks));
    Ok(each(Packet { time, ..packet }))
}

/// The block for packets that programs wrote before there was the enhanced one. The parser leaves it to its caller.
const PACKET_BLOCK: u32 = 2;

/// The interface, the ticks of its clock, and the packet of such a block; `None` if it is too short.
fn old_packet<'a>(block: &UnknownBlock<'a>, is_big_endian: bool) -> Option<(usize, Option<u64>, Packet<'a>)> {
    let (head, rest) = block.data.split_first_chunk::<20>()?;
    // The first word has the interface in two bytes, and how many packets were dropped.
    let interface = [head[0], head[1]];
    let interface = if is_big_endian { u16::from_be_bytes(interface) } else { u16::from_le_bytes(interface) };
    let word = |index: usize| {
        let word = [0, 1, 2, 3].map(|byte| head[4 * index + byte]);
        if is_big_endian { u32::from_be_bytes(word) } else { u32::from_le_bytes(word) }
    };
    let ticks = u64::from(word(1)) << 32 | u64::from(word(2));
    let (kept, whole) = (word(3), word(4));
    let bytes = rest.get(..kept as usize)?;
    Some((usize::from(interface), Some(ticks), Packet { time: None, bytes, is_cut: whole > kept }))
}

/// The ticks of a clock in a second, of which the capture has the exponent: of 2 if the top bit is set, else of 10. `None` if a
/// `u64` does not count them.
fn ticks_of(exponent: u8) -> Option<u64> {
    match exponent & 0x80 {
        0 => 10_u64.checked_pow(exponent.into()),
        _ => 2_u64.checked_pow((exponent & 0x7f).into()),
    }
}

impl Interface {
    /// The time after that many ticks; none if no clock can show it.
    fn time(&self, ticks: u64) -> Option<Duration> {
        let ns = u128::from(ticks) * NANOSECONDS / u128::from(self.ticks);
        let time = Duration::new(u64::try_from(ns / NANOSECONDS).ok()?, (ns % NANOSECONDS) as u32);
        let offset = Duration::from_secs(self.offset.unsigned_abs());
        if self.offset < 0 { time.checked_sub(offset) } else { time.checked_add(offset) }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The time, the bytes, and whether it had more.
    type Kept = (Option<Duration>, Vec<u8>, bool);

    /// What is read of these bytes, the types of link, and why not more is read.
    fn read(bytes: Vec<u8>) -> (Vec<Kept>, Vec<String>, Option<String>) {
        let mut packets = Vec::new();
        // A source may return as few bytes as it likes.
        let (first, rest) = bytes.split_at(bytes.len().min(2));
        let input = Cursor::new(first.to_vec()).chain(Cursor::new(rest.to_vec()));
        let mut capture = match Capture::open(input) {
            Ok(capture) => capture,
            Err(failure) => return (packets, Vec::new(), Some(failure.to_string())),
        };
        let outcome = capture.read(|packet| {
            packets.push((packet.time, packet.bytes.to_vec(), packet.is_cut));
            true
        });
        (packets, capture.links.into_keys().collect(), outcome.err().map(|failure| failure.to_string()))
    }

    fn words(words: &[u32]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    /// A file of pcap with a clock of microseconds.
    fn pcap(link: u32, packets: &[(u32, u32, &[u8], u32)]) -> Vec<u8> {
        let mut file = words(&[0xa1b2_c3d4, 0x0004_0002, 0, 0, 262_144, link]);
        for (seconds, micros, bytes, whole) in packets {
            file.extend(words(&[*seconds, *micros, bytes.len() as u32, *whole]));
            file.extend_from_slice(bytes);
        }
        file
    }

    /// The words of a file in the other order of bytes.
    fn swapped(file: &[u8]) -> Vec<u8> {
        file.chunks_exact(4).flat_map(|word| [word[3], word[2], word[1], word[0]]).collect()
    }

    /// A block of pcapng.
    fn block(kind: u32, body: &[u8]) -> Vec<u8> {
        let padded = body.len().next_multiple_of(4);
        let size = padded as u32 + 12;
        let mut block = words(&[kind, size]);
        block.extend_from_slice(body);
        block.resize(8 + padded, 0);
        block.extend(words(&[size]));
        block
    }

    fn pcapng() -> Vec<u8> {
        // A section; Ethernet with microseconds; raw IP with nanoseconds (option 9, one byte); a packet of each; a simple one.
        let nanoseconds = [words(&[101, 0]), vec![9, 0, 1, 0, 9, 0, 0, 0], words(&[0])].concat();
        [
            block(0x0a0d_0d0a, &words(&[0x1a2b_3c4d, 0x0000_0001, u32::MAX, u32::MAX])),
            block(1, &words(&[1, 0])),
            block(1, &nanoseconds),
            block(6, &[words(&[0, 0, 1_500_000, 3, 3]), b"one".to_vec()].concat()),
            block(6, &[words(&[1, 0, 1_500_000, 3, 9]), b"two".to_vec()].concat()),
            block(3, &[words(&[5]), b"three".to_vec()].concat()),
        ]
        .concat()
    }

    #[test]
    fn packets_of_pcap_are_read_as_they_were_captured() {
        let long = vec![7; 200_000];
        let (packets, links, why) =
            read(pcap(1, &[(1, 500_000, b"one", 3), (2, 0, b"", 60), (3, 1, &long, 200_000)]));
        assert_eq!((links, why), (vec!["ETHERNET".to_owned()], None));
        let time = |seconds, micros: u32| Some(Duration::new(seconds, micros * 1_000));
        assert_eq!(packets[0], (time(1, 500_000), b"one".to_vec(), false));
        assert_eq!(packets[1], (time(2, 0), Vec::new(), true));
        assert_eq!(packets[2], (time(3, 1), long, false));
    }

    #[test]
    fn packets_of_pcapng_are_read_with_the_clocks_of_their_interfaces() {
        let (packets, links, why) = read(pcapng());
        assert_eq!(why, None);
        assert_eq!(links, ["ETHERNET", "RAW"]);
        assert_eq!(packets[0], (Some(Duration::from_micros(1_500_000)), b"one".to_vec(), false));
        assert_eq!(packets[1], (Some(Duration::from_nanos(1_500_000)), b"two".to_vec(), true));
        assert_eq!(packets[2], (None, b"three".to_vec(), false));
    }

    /// A clock may count in powers of two, and packets may be in the blocks of old.
    #[test]
    fn other_clocks_and_old_packet_blocks_are_read() {
        // 1024 ticks a second (option 9, one byte).
        let clock = [words(&[1, 0]), vec![9, 0, 1, 0, 0x8a, 0, 0, 0], words(&[0])].concat();
        let little = words(&[0x1a2b_3c4d, 0x0000_0001, u32::MAX, u32::MAX]);
        let old = [words(&[0, 0, 1536, 4, 9]), b"onea".to_vec()].concat();
        let file = [block(0x0a0d_0d0a, &little), block(1, &clock), block(2, &old)].concat();
        let expected = (Some(Duration::from_millis(1500)), b"onea".to_vec(), true);
        let found = (vec![expected], vec!["ETHERNET".to_owned()], None);
        assert_eq!(read(file), found);

        // The same in the other order: words of two 16-bit numbers are these the other way round.
        let section = [0x1a2b_3c4d, 0x0001_0000, u32::MAX, u32::MAX];
        let clock = [0x0001_0000, 0, 0x0009_0001, 0x8a00_0000, 0];
        let words_of = |body: &[u32], kind| swapped(&block(kind, &words(body)));
        let a_packet = u32::from_be_bytes(*b"onea");
        let file = [
            words_of(&section, 0x0a0d_0d0a),
            words_of(&clock, 1),
            words_of(&[0, 0, 1536, 4, 9, a_packet], 2),
        ];
        assert_eq!(read(file.concat()), found);

        // An interface that is not the first, and a packet that is longer than its block.
        let interfaces = [1, 101].map(|link| block(1, &words(&[link, 0]))).concat();
        let begin = [block(0x0a0d_0d0a, &little), interfaces].concat();
        let second = [words(&[1, 0, 3_000_000, 3, 3]), b"two".to_vec()].concat();
        let (packets, links, why) = read([&begin[..], &block(2, &second)].concat());
        assert_eq!(packets, [(Some(Duration::from_secs(3)), b"two".to_vec(), false)]);
        assert_eq!((links, why), (vec!["RAW".to_owned()], None));
        let (packets, _, why) = read([&begin[..], &block(2, &words(&[0, 0, 0, 5, 5, 0]))].concat());
        assert_eq!((packets.len(), why.as_deref()), (0, Some("a packet block of the capture ends too soon")));
    }

    #[test]
    fn clocks_that_no_number_counts_are_refused() {
        assert_eq!([0, 6, 19, 0x80, 0x8a, 0xbf].map(ticks_of).map(|ticks| ticks.is_some()), [true; 6]);
        assert_eq!([20, 0x7f, 0xc0, 0xff].map(ticks_of), [None; 4]);
    }

    #[test]
    fn what_was_readable_of_a_file_that_is_cut_is_passed_on() {
        let whole = pcap(1, &[(1, 0, b"one", 3), (2, 0, b"two", 3)]);
        let (packets, _, why) = read(whole[..whole.len() - 1].to_vec());
        assert_eq!(
            (packets.len(), why.as_deref()),
            (1, Some("the capture is cut off in the middle of a packet"))
        );
        let whole = pcapng();
        let (packets, _, why) = read(whole[..whole.len() - 1].to_vec());
        assert_eq!((packets.len(), why.is_some()), (2, true));
    }

    #[test]
    fn what_is_no_capture_is_told() {
        for (bytes, expected) in [
            (Vec::new(), "an empty file is no capture"),
            (pcap(1, &[])[..9].to_vec(), "cut off in its first block"),
            (b"1 {\"stream\"".to_vec(), "neither a file of pcap nor one of pcapng"),
        ] {
            let (packets, _, why) = read(bytes);
            assert!(packets.is_empty() && why.unwrap().contains(expected), "{expected}");
        }
        // A length that no packet has.
        let mut long = pcap(1, &[(1, 0, b"one", 3)]);
        long.extend(words(&[2, 0, u32::MAX, u32::MAX]));
        let (packets, _, why) = read(long);
        assert_eq!((packets.len(), why.unwrap().contains("more than 16777216 bytes")), (1, true));
        // A packet of an interface that no block describes.
        let stray = [
            block(0x0a0d_0d0a, &words(&[0x1a2b_3c4d, 0x0000_0001, u32::MAX, u32::MAX])),
            block(6, &[words(&[0, 0, 0, 1, 1]), vec![1]].concat()),
        ];
        let (packets, _, why) = read(stray.concat());
        assert!(packets.is_empty() && why.unwrap().contains("interface 0, which is not described"));
    }

    proptest! {
        /// Whatever a file has, it ends, and nothing panics.
        #[test]
        fn any_bytes_are_read(mut bytes in prop::collection::vec(any::<u8>(), 0..2_000), place in any::<prop::sample::Index>(), as_ng: bool) {
            let mut file = if as_ng { pcapng() } else { pcap(1, &[(1, 0, b"one", 3)]) };
            let _ = read(bytes.clone());
            let place = place.index(file.len());
            file.truncate(place);
            file.append(&mut bytes);
            let _ = read(file);
        }
    }
}
