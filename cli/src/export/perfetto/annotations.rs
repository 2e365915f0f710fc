//! What a viewer shows beside an event: the fields that it has.

use crate::export::perfetto::packet::{Annotation, Value};
use crate::source::Event;

/// The fields of an event that are not zero or empty.
pub(super) fn annotations(event: &Event) -> Vec<Annotation> {
    let handles = [("buffer", event.buffer), ("heap", event.heap)];
    let numbers = [
        ("arena", event.arena),
        ("pool", event.pool),
        ("size", event.size),
        ("requests", event.requests),
        ("value", event.value),
        ("examined", event.examined),
        ("kept", event.kept),
        ("freed", event.freed),
        ("copied", event.copied),
        ("allowed_ns", event.allowed_ns),
        ("taken_ns", event.taken_ns),
    ];
    let texts = [
        ("kind", &event.kind),
        ("class", &event.class),
        ("type", &event.type_name),
        ("reason", &event.reason),
    ];
    // The greatest number stands for none: a step without a clock.
    let is_there = |(_, value): &(_, u64)| *value != 0 && *value != u64::MAX;
    let handles = handles.into_iter().filter(is_there).map(|(name, value)| (name, Value::Handle(value)));
    let numbers = numbers.into_iter().filter(is_there).map(|(name, value)| (name, Value::Number(value)));
    let texts = texts.into_iter().filter(|(_, text)| !text.is_empty());
    let texts = texts.map(|(name, text)| (name, Value::Text(text.clone())));
    handles.chain(numbers).chain(texts).map(|(name, value)| annotation(name, value)).collect()
}

pub(super) fn annotation(name: &str, value: Value) -> Annotation {
    Annotation { name: name.to_owned(), value: Some(value) }
}
