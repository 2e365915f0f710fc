//! Events and gaps, in the form in which the reader of telemetry writes them as JSON.

use serde::{Deserialize, Deserializer};
use tripoint_telemetry::reader::Item;

/// An event, or a gap. What its kind does not have is zero or empty.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Event {
    /// The index of its thread's rings.
    pub(crate) ring: usize,
    /// Whether it is from the second of these rings, which has what lasts. A gap there says only that such events were missed.
    pub(crate) is_lasting: bool,
    /// Of a gap: how many events were missed. A gap has nothing more.
    pub(crate) missed: u64,
    /// The system's number of the thread.
    #[serde(rename = "tid")]
    pub(crate) thread: u32,
    /// In ns of the system's monotonic clock, if the recording has a clock.
    pub(crate) ns: Option<u64>,
    /// The name of its kind; empty for one that this reader does not know.
    pub(crate) event: String,
    pub(crate) arena: u64,
    pub(crate) pool: u64,
    #[serde(deserialize_with = "hexadecimal")]
    pub(crate) buffer: u64,
    /// An address; zero if addresses are left out.
    #[serde(deserialize_with = "hexadecimal")]
    pub(crate) base: u64,
    #[serde(deserialize_with = "hexadecimal")]
    pub(crate) heap: u64,
    /// Sizes of a pool that the program noted.
    pub(crate) total: u64,
    pub(crate) free: u64,
    pub(crate) largest_free: u64,
    /// Whether a step was the last of its collection: 1 if it was.
    pub(crate) done: u64,
    /// Zero if addresses are left out.
    #[serde(deserialize_with = "hexadecimal")]
    pub(crate) object: u64,
    pub(crate) size: u64,
    pub(crate) align: u64,
    /// Of an object that was to be resized: its new size, and where it is now; zero if it stays as it was.
    pub(crate) new_size: u64,
    #[serde(deserialize_with = "hexadecimal")]
    pub(crate) resized: u64,
    pub(crate) offset: u64,
    pub(crate) mean: u64,
    /// The contract's place of the thread.
    pub(crate) slot: u64,
    pub(crate) count: u64,
    pub(crate) bytes: u64,
    pub(crate) requests: u64,
    pub(crate) value: u64,
    pub(crate) examined: u64,
    pub(crate) kept: u64,
    pub(crate) freed: u64,
    pub(crate) copied: u64,
    pub(crate) allowed_ns: u64,
    pub(crate) taken_ns: u64,
    pub(crate) kind: String,
    pub(crate) class: String,
    pub(crate) type_name: String,
    pub(crate) from: String,
    pub(crate) to: String,
    pub(crate) name: String,
    pub(crate) reason: String,
    /// Code addresses, the innermost first.
    #[serde(deserialize_with = "hexadecimals")]
    pub(crate) site: Vec<u64>,
}

impl Event {
    /// An event or a gap that was read. The line is overwritten.
    ///
    /// # Errors
    /// What makes no sense.
    pub(crate) fn of_item(item: &Item, line: &mut String) -> Result<Self, String> {
        line.clear();
        item.write_json(line).map_err(|error| error.to_string())?;
        Self::from_json(line)
    }

    /// An event or a gap of one line of JSON.
    ///
    /// # Errors
    /// What makes no sense.
    pub(super) fn from_json(line: &str) -> Result<Self, String> {
        serde_json::from_str(line).map_err(|error| error.to_string())
    }
}

fn from_hexadecimal<E: serde::de::Error>(text: &str) -> Result<u64, E> {
    let digits = text.strip_prefix("0x").ok_or_else(|| E::custom("an address begins with 0x"))?;
    u64::from_str_radix(digits, 16).map_err(E::custom)
}

/// A number in hexadecimal text: numbers in JSON are exact only up to 2^53.
pub(super) fn hexadecimal<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    from_hexadecimal(&String::deserialize(deserializer)?)
}

fn hexadecimals<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u64>, D::Error> {
    let texts = Vec::<String>::deserialize(deserializer)?;
    texts.iter().map(|text| from_hexadecimal(text)).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, Value, json};
    use tripoint_telemetry::format::{EventKind, FieldForm};

    use super::*;

    /// If a field had a form other than these, events with it could not be read at all.
    #[test]
    fn events_of_every_kind_are_read() {
        let value = |form| match form {
            FieldForm::Text => json!("text"),
            FieldForm::Site => json!(["0x1"]),
            FieldForm::Address | FieldForm::Handle => json!("0x1"),
            _ => json!(1),
        };
        for kind in EventKind::ALL {
            let fields = kind.fields().iter().map(|field| (field.name.to_owned(), value(field.form)));
            let line = Value::Object(fields.collect::<Map<_, _>>()).to_string();
            if let Err(error) = Event::from_json(&line) {
                panic!("{} has a field of {kind:?} in another form: {error}", file!());
            }
        }
    }
}
