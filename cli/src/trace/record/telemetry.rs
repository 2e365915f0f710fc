//! A trace of objects in a program's own pools, from its telemetry ([design/cli-traces.md `.pools`](crate::design::cli_traces)).

use std::fs::File;
use std::io::{self, BufWriter};
use std::path::Path;

use super::converter::Converter;
use super::file::TraceFile;
use super::process::Recorded;
use super::ring::{Entry, code};
use crate::error::Error;
use crate::source::{Event, Recording};
use crate::target::Target;
use crate::trace::format::{Header, Writer};

/// The largest alignment that `malloc` promises.
const MALLOC_ALIGN: u64 = 16;

/// Writes a trace of the objects that events of a recording name. What cannot be read is returned with the trace.
pub(crate) fn import(target: &Target, output: &Path) -> Result<(Recorded, Result<(), Error>), Error> {
    let mut recording = Recording::open(target)?;
    let pid = recording.process() as u32;
    let command = vec![format!("telemetry of {target}")];
    let header = Header { command, pid, forked_by: None, pointer_size: 8, made: recording.made() };
    let file = TraceFile::create(output).map_err(Error::system("write", output))?;
    let mut import = Import { header, file, converter: None, missed: 0, failure: None };
    recording.read(|event| import.take(event));
    let recorded = import.finish(target, output)?;
    Ok((recorded, recording.check_whole()))
}

/// A trace that begins with the first object.
struct Import {
    header: Header,
    file: TraceFile,
    converter: Option<Converter<BufWriter<File>>>,
    missed: u64,
    failure: Option<io::Error>,
}

impl Import {
    fn take(&mut self, event: &Event) {
        self.missed = self.missed.saturating_add(event.missed);
        for entry in entries_of(event).into_iter().flatten() {
            if self.failure.is_none() {
                self.failure = self.convert(entry).err();
            }
        }
    }

    fn convert(&mut self, entry: Entry) -> io::Result<()> {
        let converter = match &mut self.converter {
            Some(converter) => converter,
            // Nothing to end.
            None if entry.code == code::END_THREAD => return Ok(()),
            none => {
                self.file.empty()?;
                let writer = Writer::begin(BufWriter::new(self.file.file.try_clone()?), &self.header)?;
                none.insert(Converter::new(writer))
            }
        };
        converter.convert(entry)
    }

    fn finish(self, target: &Target, output: &Path) -> Result<Recorded, Error> {
        let refused = Error::system("write", output);
        if let Some(error) = self.failure {
            return Err(refused(error));
        }
        let Some(mut converter) = self.converter else {
            self.file.give_up();
            return Err(Error::NoObjects { target: target.clone() });
        };
        converter.note_missed(self.missed);
        let peak_live = converter.peak_live();
        let summary = converter.finish("its telemetry was read up to here").map_err(refused)?;
        let (pid, program) = (self.header.pid, self.header.program());
        Ok(Recorded { pid, program, path: output.to_owned(), peak_live, summary, cut: None })
    }
}

/// What an event says of an object, as if it had been recorded; nothing if it names no object.
fn entries_of(event: &Event) -> [Option<Entry>; 2] {
    let entry = |code, address, size| Entry { code, align_log2: 0, thread: event.thread, address, size };
    match &*event.event {
        "resize" if event.object == 0 || event.resized == 0 => [None, None],
        "resize" => {
            let resized = entry(code::REALLOCATED, event.resized, event.new_size);
            [Some(entry(code::REALLOC, event.object, event.size)), Some(resized)]
        }
        _ => [entry_of(event), None],
    }
}

/// The same of an event that is one entry.
fn entry_of(event: &Event) -> Option<Entry> {
    let is_aligned = event.align > MALLOC_ALIGN;
    let code = match &*event.event {
        "alloc" | "commit" if is_aligned => code::ALIGNED,
        "alloc" | "commit" => code::PLAIN,
        "free" | "free at point" => code::FREE,
        "thread detach" => code::END_THREAD,
        _ => return None,
    };
    // Zero if addresses are left out.
    if event.object == 0 && code != code::END_THREAD {
        return None;
    }
    let align_log2 = event.align.max(1).trailing_zeros() as u8;
    Some(Entry { code, align_log2, thread: event.thread, address: event.object, size: event.size })
}
