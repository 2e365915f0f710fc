//! The switches of another process ([design/telemetry.md `.switches`](crate::design::telemetry)).

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::format::{
    BYTE_ORDER, EventKind, HeaderWord, MAGIC, SWITCHES_MAGIC, SWITCHES_WORDS, SwitchWord, VERSION, WORD_BYTES,
};
use crate::reader::error::OpenError;
use crate::reader::file::Reader;
use crate::reader::open::{O_NONBLOCK, open_file};
use crate::reader::words::{FileWords, Words, word};
use crate::sample::Mean;

/// The switches of another process, to read and to change.
///
/// Only values that the process allows can be passed. The process follows switches of events and addresses at its
/// next event. It follows switches of sampling and its sites when it calls
/// [`Switches::apply_to`](crate::Switches::apply_to), and the log of a point follows in the point's next slow
/// path, if its [`PointLogger`](crate::PointLogger) asks [`Switches::point_log`](crate::Switches::point_log). A program
/// that does both looks at [`Switches::of_program`](crate::Switches::of_program) at intervals of its own.
/// Nothing here waits for that. If two programs change the same switch, the last change counts.
#[derive(Debug)]
pub struct SwitchesFile {
    words: FileWords,
    process: u64,
    identity: u64,
}

/// What the first words of a file of either kind say about its owner.
enum Owner {
    Data { process: u64, identity: u64 },
    Switches,
    Unknown,
}

impl SwitchesFile {
    /// Opens the switches that belong to the telemetry file at a path: `PATH.switches`. The path may also be that of
    /// the switches themselves, such as one of those that [`OpenError::Several`] names.
    ///
    /// # Errors
    /// [`OpenError::OtherSwitches`] if the data at the path belongs to other telemetry than the switches, and otherwise
    /// see [`OpenError`].
    pub fn open(telemetry: impl AsRef<Path>) -> Result<Self, OpenError> {
        let path = telemetry.as_ref();
        let owner = open_file(path).and_then(owner).unwrap_or(Owner::Unknown);
        if let Owner::Switches = owner {
            return Self::open_itself(path);
        }
        let mut path = OsString::from(path);
        path.push(".switches");
        let switches = Self::open_itself(&PathBuf::from(path))?;
        match owner {
            Owner::Data { process, identity } if !switches.are_of(process, identity) => {
                Err(OpenError::OtherSwitches { data: process, switches: switches.process })
            }
            _ => Ok(switches),
        }
    }

    pub(super) fn open_itself(path: &Path) -> Result<Self, OpenError> {
        let file = OpenOptions::new().read(true).write(true).custom_flags(O_NONBLOCK).open(path);
        let file = file.map_err(OpenError::system_at("open the file of switches to write", path))?;
        Self::from_file(file).map_err(|error| match error {
            OpenError::NotSwitches { bytes, .. } => OpenError::NotSwitches { path: Some(path.into()), bytes },
            error => error,
        })
    }

    /// Whether these are the switches of the telemetry that a reader reads. They are not if a file with a path was
    /// replaced before the switches were opened, or if the process has several telemetries and these are the switches
    /// of another.
    #[must_use]
    pub fn belong_to(&self, reader: &Reader) -> bool {
        let info = reader.info();
        self.are_of(info.process, info.identity)
    }

    /// Files of earlier versions have no identity.
    const fn are_of(&self, process: u64, identity: u64) -> bool {
        if self.identity == 0 || identity == 0 { self.process == process } else { self.identity == identity }
    }

    /// The switches in a file that is open for reading and writing.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn from_file(file: File) -> Result<Self, OpenError> {
        let words = FileWords { file, base: 0, bytes: None };
        let refused = OpenError::system("read the file of switches");
        let bytes = words.bytes().map_err(&refused)?;
        let expected = (SWITCHES_WORDS * WORD_BYTES) as u64;
        let read = |at: SwitchWord| word(&words, at as u64 * WORD_BYTES as u64).map_err(&refused);
        if bytes < WORD_BYTES as u64 || read(SwitchWord::Magic)? != u64::from_ne_bytes(SWITCHES_MAGIC) {
            return Err(OpenError::NotSwitches { path: None, bytes });
        }
        if bytes < expected {
            return Err(OpenError::Truncated { bytes, expected, readable: None });
        }
        let (process, identity) = (read(SwitchWord::Process)?, read(SwitchWord::Identity)?);
        match read(SwitchWord::ByteOrder)? {
            BYTE_ORDER => Ok(Self { words, process, identity }),
            order if order == BYTE_ORDER.swap_bytes() => {
                Err(OpenError::ForeignByteOrder { process: process.swap_bytes(), version: 1 })
            }
            _ => Err(OpenError::Damaged { what: "no machine has its byte order" }),
        }
    }

    /// The number of the process whose switches these are, as that process sees it.
    #[must_use]
    pub const fn process(&self) -> u64 {
        self.process
    }

    /// Whether events of a kind are written.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn is_on(&self, kind: EventKind) -> io::Result<bool> {
        Ok(self.get(SwitchWord::Events)? & kind.bit() != 0)
    }

    /// Has the process write events of these kinds, and of no others.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn set_events(&self, kinds: impl IntoIterator<Item = EventKind>) -> io::Result<()> {
        self.set(SwitchWord::Events, kinds.into_iter().fold(0, |bits, kind| bits | kind.bit()))
    }

    /// Has the process write events of one kind, or no longer; other kinds stay as they are.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn set_event(&self, kind: EventKind, on: bool) -> io::Result<()> {
        let others = self.get(SwitchWord::Events)? & !kind.bit();
        self.set(SwitchWord::Events, if on { others | kind.bit() } else { others })
    }

    /// Whether addresses are left out.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn are_addresses_left_out(&self) -> io::Result<bool> {
        Ok(self.get(SwitchWord::WithoutAddresses)? != 0)
    }

    /// Has the process leave addresses out, or no longer.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn leave_addresses_out(&self, leave_out: bool) -> io::Result<()> {
        self.set(SwitchWord::WithoutAddresses, u64::from(leave_out))
    }

    /// Whether the process should sample; `None` if that is left to the program.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn sampling(&self) -> io::Result<Option<bool>> {
        self.choice(SwitchWord::Sampling)
    }

    /// Switches sampling on or off, or leaves it to the program (`None`).
    ///
    /// # Errors
    /// If the system refuses.
    pub fn set_sampling(&self, on: Option<bool>) -> io::Result<()> {
        self.choose(SwitchWord::Sampling, on)
    }

    /// The mean of sampling; `None` if that is left to the program.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn mean(&self) -> io::Result<Option<Mean>> {
        Ok(u32::try_from(self.get(SwitchWord::Mean)?).ok().and_then(Mean::new))
    }

    /// Sets the mean of sampling, or leaves it to the program (`None`).
    ///
    /// # Errors
    /// If the system refuses.
    pub fn set_mean(&self, mean: Option<Mean>) -> io::Result<()> {
        self.set(SwitchWord::Mean, mean.map_or(0, |mean| u64::from(mean.bytes())))
    }

    /// Whether points that follow this switch report every reserve and commit.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn is_point_log_on(&self) -> io::Result<bool> {
        Ok(self.get(SwitchWord::PointLog)? == 1)
    }

    /// Has points that follow this switch report every reserve and commit, or no longer.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn set_point_log(&self, on: bool) -> io::Result<()> {
        self.set(SwitchWord::PointLog, u64::from(on))
    }

    /// Whether samplers walk stacks; `None` if that is left to the program.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn sites(&self) -> io::Result<Option<bool>> {
        self.choice(SwitchWord::Sites)
    }

    /// Has samplers walk stacks or not, or leaves it to the program (`None`).
    ///
    /// # Errors
    /// If the system refuses.
    pub fn set_sites(&self, sites: Option<bool>) -> io::Result<()> {
        self.choose(SwitchWord::Sites, sites)
    }

    /// What was chosen; `None` if that is left to the program.
    fn choice(&self, switch: SwitchWord) -> io::Result<Option<bool>> {
        Ok(match self.get(switch)? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        })
    }

    fn choose(&self, switch: SwitchWord, on: Option<bool>) -> io::Result<()> {
        self.set(switch, on.map_or(u64::MAX, u64::from))
    }

    fn get(&self, switch: SwitchWord) -> io::Result<u64> {
        word(&self.words, Self::byte(switch))
    }

    fn set(&self, switch: SwitchWord, value: u64) -> io::Result<()> {
        self.words.file.write_all_at(&value.to_ne_bytes(), Self::byte(switch))
    }

    fn byte(switch: SwitchWord) -> u64 {
        switch as u64 * WORD_BYTES as u64
    }
}

/// Finds out what a file is. Data in another byte order is unknown here.
fn owner(file: File) -> io::Result<Owner> {
    let words = FileWords { file, base: 0, bytes: None };
    let read = |at: HeaderWord| word(&words, at as u64 * WORD_BYTES as u64);
    match read(HeaderWord::Magic)?.to_ne_bytes() {
        SWITCHES_MAGIC => Ok(Owner::Switches),
        MAGIC if read(HeaderWord::ByteOrder)? == BYTE_ORDER => {
            // Of data of a later version, the word of the identity may be another.
            let is_known = read(HeaderWord::Version)? <= VERSION;
            let identity = if is_known { read(HeaderWord::Identity)? } else { 0 };
            Ok(Owner::Data { process: read(HeaderWord::Process)?, identity })
        }
        _ => Ok(Owner::Unknown),
    }
}
