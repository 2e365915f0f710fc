//! A profile of pprof: `profile.proto`, compressed with gzip
//! (<https://github.com/google/pprof/blob/main/proto/profile.proto>).

use std::collections::HashMap;
use std::io::{self, Write as _};

use flate2::Compression;
use flate2::write::GzEncoder;
use prost::Message;

use crate::summary::Summary;
use crate::symbols::{Named, Symbols};

#[derive(Clone, PartialEq, Message)]
struct Profile {
    #[prost(message, repeated, tag = "1")]
    sample_type: Vec<ValueType>,
    #[prost(message, repeated, tag = "2")]
    sample: Vec<Sample>,
    #[prost(message, repeated, tag = "3")]
    mapping: Vec<Mapping>,
    #[prost(message, repeated, tag = "4")]
    location: Vec<Location>,
    #[prost(message, repeated, tag = "5")]
    function: Vec<Function>,
    /// The first is empty.
    #[prost(string, repeated, tag = "6")]
    string_table: Vec<String>,
    #[prost(int64, tag = "9")]
    time_nanos: i64,
    #[prost(int64, tag = "10")]
    duration_nanos: i64,
    #[prost(message, optional, tag = "11")]
    period_type: Option<ValueType>,
    #[prost(int64, tag = "12")]
    period: i64,
    /// The index of a string: which of the sample types is shown if none is asked for.
    #[prost(int64, tag = "14")]
    default_sample_type: i64,
}

/// Both are indices of strings.
#[derive(Clone, Copy, PartialEq, Message)]
struct ValueType {
    #[prost(int64, tag = "1")]
    kind: i64,
    #[prost(int64, tag = "2")]
    unit: i64,
}

#[derive(Clone, PartialEq, Message)]
struct Sample {
    /// The innermost first.
    #[prost(uint64, repeated, tag = "1")]
    location_id: Vec<u64>,
    #[prost(int64, repeated, tag = "2")]
    value: Vec<i64>,
    #[prost(message, repeated, tag = "3")]
    label: Vec<Label>,
}

#[derive(Clone, Copy, PartialEq, Message)]
struct Label {
    #[prost(int64, tag = "1")]
    key: i64,
    #[prost(int64, tag = "2")]
    str: i64,
}

#[derive(Clone, Copy, PartialEq, Message)]
struct Mapping {
    #[prost(uint64, tag = "1")]
    id: u64,
    #[prost(uint64, tag = "2")]
    memory_start: u64,
    #[prost(uint64, tag = "3")]
    memory_limit: u64,
    #[prost(int64, tag = "5")]
    filename: i64,
    #[prost(int64, tag = "6")]
    build_id: i64,
    #[prost(bool, tag = "7")]
    has_functions: bool,
    #[prost(bool, tag = "8")]
    has_filenames: bool,
    #[prost(bool, tag = "9")]
    has_line_numbers: bool,
    #[prost(bool, tag = "10")]
    has_inline_frames: bool,
}

#[derive(Clone, PartialEq, Message)]
struct Location {
    #[prost(uint64, tag = "1")]
    id: u64,
    /// Zero for none.
    #[prost(uint64, tag = "2")]
    mapping_id: u64,
    #[prost(uint64, tag = "3")]
    address: u64,
    /// The innermost first, of functions that were inlined.
    #[prost(message, repeated, tag = "4")]
    line: Vec<Line>,
}

#[derive(Clone, Copy, PartialEq, Message)]
struct Line {
    #[prost(uint64, tag = "1")]
    function_id: u64,
    #[prost(int64, tag = "2")]
    line: i64,
}

#[derive(Clone, Copy, PartialEq, Message)]
struct Function {
    #[prost(uint64, tag = "1")]
    id: u64,
    #[prost(int64, tag = "2")]
    name: i64,
    #[prost(int64, tag = "3")]
    system_name: i64,
    #[prost(int64, tag = "4")]
    filename: i64,
}

/// A profile, and the indices of what it has.
#[derive(Default)]
struct Builder {
    profile: Profile,
    strings: HashMap<String, i64>,
    functions: HashMap<(i64, i64), u64>,
    /// By the address, and how many functions are shown of it: not all of one within the sampler.
    locations: HashMap<(u64, usize), u64>,
}

impl Builder {
    fn string(&mut self, text: &str) -> i64 {
        if let Some(index) = self.strings.get(text) {
            return *index;
        }
        // A table in memory has fewer entries than that.
        let index = self.profile.string_table.len() as i64;
        self.profile.string_table.push(text.to_owned());
        self.strings.insert(text.to_owned(), index);
        index
    }

    fn value_type(&mut self, kind: &str, unit: &str) -> ValueType {
        ValueType { kind: self.string(kind), unit: self.string(unit) }
    }

    fn line(&mut self, named: &Named, symbols: &Symbols) -> Line {
        let (file, line) = named.file_and_line().unwrap_or_default();
        let (name, filename) = (self.string(&named.function), self.string(file));
        // `pprof` takes a name for one that it has to demangle if both are the same, and takes away what is in `<>`.
        let system_name = self.string(symbols.system_name(&named.function));
        let functions = &mut self.profile.function;
        let function_id = *self.functions.entry((name, filename)).or_insert_with(|| {
            let id = functions.len() as u64 + 1;
            functions.push(Function { id, name, system_name, filename });
            id
        });
        Line { function_id, line: line.into() }
    }

    fn location(&mut self, address: u64, functions: &[Named], symbols: &Symbols) -> u64 {
        let key = (address, functions.len());
        if let Some(id) = self.locations.get(&key) {
            return *id;
        }
        let id = self.profile.location.len() as u64 + 1;
        let mapping_id = symbols.object_of(address).map_or(0, |index| index as u64 + 1);
        let line = functions.iter().map(|named| self.line(named, symbols)).collect();
        // The address of the call: the site has the address to which it returns.
        let address_of_call = address.saturating_sub(1);
        self.profile.location.push(Location { id, mapping_id, address: address_of_call, line });
        self.locations.insert(key, id);
        id
    }
}

/// The stacks of a summary by objects and by bytes.
pub(crate) fn gzipped(summary: &Summary, symbols: &Symbols) -> io::Result<Vec<u8>> {
    let mut builder = Builder::default();
    builder.string("");
    let types = [builder.value_type("alloc_objects", "count"), builder.value_type("alloc_space", "bytes")];
    builder.profile.sample_type = types.to_vec();
    builder.profile.default_sample_type = builder.string("alloc_space");
    let seconds = summary.about.made.and_then(|made| i64::try_from(made).ok());
    builder.profile.time_nanos = seconds.map_or(0, |seconds| seconds.saturating_mul(1_000_000_000));
    // The cast saturates.
    builder.profile.duration_nanos = (summary.seconds * 1e9) as i64;
    builder.profile.period_type = Some(builder.value_type("space", "bytes"));
    builder.profile.period = i64::try_from(summary.mean).unwrap_or(i64::MAX);
    for (index, object) in symbols.objects().iter().enumerate() {
        let mapping = Mapping {
            id: index as u64 + 1,
            memory_start: object.start,
            memory_limit: object.end,
            filename: builder.string(&object.path.to_string_lossy()),
            build_id: builder.string(&object.build_id_text().to_string()),
            has_functions: true,
            has_filenames: true,
            has_line_numbers: true,
            has_inline_frames: true,
        };
        builder.profile.mapping.push(mapping);
    }
    for stack in &summary.stacks {
        let location_id = stack.calls.iter();
        let location_id =
            location_id.map(|call| builder.location(call.address, &call.functions, symbols)).collect();
        let labels = [("thread", &stack.thread), ("type", &stack.type_name)];
        let labels = labels.into_iter().filter(|(_, text)| !text.is_empty());
        let label =
            labels.map(|(key, text)| Label { key: builder.string(key), str: builder.string(text) }).collect();
        // These casts saturate.
        let value = vec![stack.objects.round() as i64, stack.bytes.round() as i64];
        builder.profile.sample.push(Sample { location_id, value, label });
    }
    let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
    gzip.write_all(&builder.profile.encode_to_vec())?;
    gzip.finish()
}
