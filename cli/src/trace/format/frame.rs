//! The parts of a file: a header, blocks of steps, and an end
//! ([design/cli-traces.md `.file`](crate::design::cli_traces)).

use std::path::Path;

use serde::{Deserialize, Serialize};

/// Counted up when an older program could not read the file any more.
pub(crate) const VERSION: u16 = 1;

/// Bytes of steps, before compression, after which a block is written.
pub(crate) const BLOCK: usize = 64 << 10;
/// The most bytes of a part before compression. A file that claims more is damaged, and no memory is taken for it.
pub(crate) const MAX_PART: usize = 1 << 20;

/// What a part has in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PartKind {
    Header = 1,
    Steps = 2,
    End = 3,
}

/// What comes before the bytes of each part, little-endian.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PartHead {
    pub(crate) kind: PartKind,
    /// Bytes before compression.
    pub(crate) size: u32,
    /// Bytes in the file.
    pub(crate) stored: u32,
    /// The number of steps.
    pub(crate) steps: u32,
    /// The number of the next object at its begin.
    pub(crate) next: u64,
}

impl PartHead {
    /// With the checksum of all that, and of the stored bytes.
    pub(crate) const SIZE: usize = 28;

    pub(crate) fn to_bytes(self, stored: &[u8]) -> [u8; Self::SIZE] {
        let mut bytes = [0; Self::SIZE];
        bytes[..4].copy_from_slice(&(self.kind as u32).to_le_bytes());
        bytes[4..8].copy_from_slice(&self.size.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.stored.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.steps.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.next.to_le_bytes());
        let sum = checksum(&bytes[..24], stored);
        bytes[24..].copy_from_slice(&sum.to_le_bytes());
        bytes
    }

    /// The head, or what is wrong with it. The sizes are within bounds, but not yet proven by the checksum.
    pub(crate) fn from_bytes(bytes: &[u8; Self::SIZE]) -> Result<Self, &'static str> {
        let word = |at: usize| u32::from_le_bytes(core::array::from_fn(|index| bytes[at + index]));
        let kind = match word(0) {
            1 => PartKind::Header,
            2 => PartKind::Steps,
            3 => PartKind::End,
            _ => return Err("unknown kind of block"),
        };
        let next = u64::from_le_bytes(core::array::from_fn(|index| bytes[16 + index]));
        let head = Self { kind, size: word(4), stored: word(8), steps: word(12), next };
        // A compressed part is never much larger than what it was made from.
        let most = lz4_flex::block::get_maximum_output_size(MAX_PART);
        if head.size as usize > MAX_PART || head.stored as usize > most || head.steps > head.size {
            return Err("a size is out of bounds");
        }
        Ok(head)
    }

    /// Whether the checksum at the end of a head is that of its other bytes and the stored ones.
    pub(crate) fn is_whole(bytes: &[u8; Self::SIZE], stored: &[u8]) -> bool {
        bytes[24..] == checksum(&bytes[..24], stored).to_le_bytes()
    }
}

fn checksum(head: &[u8], stored: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(head);
    hasher.update(stored);
    hasher.finalize()
}

/// What a trace says of itself at its begin, in JSON.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Header {
    /// The command and its arguments, or how the trace was synthesized.
    pub(crate) command: Vec<String>,
    /// The process, or zero if there was none.
    pub(crate) pid: u32,
    /// The process that forked it, if that was recorded too.
    pub(crate) forked_by: Option<u32>,
    /// Bytes of a pointer.
    pub(crate) pointer_size: u8,
    /// When the recording began, in seconds since 1970; none of a trace that was synthesized.
    pub(crate) made: Option<u64>,
}

impl Header {
    /// The name of the program, without its folder; none if there was no process, or its command is not known.
    pub(crate) fn program(&self) -> Option<String> {
        let name = Path::new(self.command.first().filter(|_| self.pid != 0)?).file_name()?;
        Some(name.to_string_lossy().into_owned())
    }
}

/// What a trace says of itself at its end, in JSON.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Summary {
    pub(crate) steps: u64,
    pub(crate) objects: u64,
    pub(crate) threads: u32,
    /// Frees and reallocs of what was allocated before the recording began, or inherited from a parent.
    /// They are not in the trace.
    pub(crate) unknown: u64,
    /// Objects whose address was allocated again without a free: they were freed by a function that is not recorded.
    pub(crate) replaced: u64,
    /// Operations that the process began to write and did not finish.
    pub(crate) torn: u64,
    /// Events of telemetry that were overwritten before they were read. What they said is not in the trace.
    pub(crate) missed: u64,
    /// The most memory that the process had resident at once, in bytes, as far as the recorder saw it.
    pub(crate) peak_resident: Option<u64>,
    /// How the process ended.
    pub(crate) ended: String,
}
