//! A document tree as from a JSON parser: built, changed, written out.

use core::fmt::Write;
use std::collections::BTreeMap;

use tripoint_adaptors::PoolAllocator;
use tripoint_core::ManualPool;

use super::{Numbers, PoolVec};

enum Value<'p, P: ManualPool> {
    Null,
    Number(u64),
    Text(PoolVec<'p, u8, P>),
    List(PoolVec<'p, Value<'p, P>, P>),
    /// Members sorted by name.
    Object(PoolVec<'p, (PoolVec<'p, u8, P>, Value<'p, P>), P>),
}

enum Expected {
    Null,
    Number(u64),
    Text(String),
    List(Vec<Expected>),
    Object(BTreeMap<String, Expected>),
}

fn text<'p, P: ManualPool>(memory: PoolAllocator<'p, P>, text: &str) -> PoolVec<'p, u8, P> {
    let mut bytes = PoolVec::new_in(memory);
    bytes.extend_from_slice(text.as_bytes());
    bytes
}

/// Makes the same value twice.
fn make<'p, P: ManualPool>(
    memory: PoolAllocator<'p, P>,
    numbers: &mut Numbers,
    depth: u32,
) -> (Value<'p, P>, Expected) {
    let kind = if depth == 0 { numbers.below(3) } else { 3 + numbers.below(2) };
    match kind {
        0 => (Value::Null, Expected::Null),
        1 => {
            let number = numbers.below(1 << 30);
            (Value::Number(number), Expected::Number(number))
        }
        2 => {
            let letters = "x".repeat(numbers.below(40) as usize);
            (Value::Text(text(memory, &letters)), Expected::Text(letters))
        }
        3 => {
            let (mut list, mut expected) = (PoolVec::new_in(memory), Vec::new());
            for _ in 0..numbers.below(7) {
                let (value, same) = make(memory, numbers, depth - 1);
                list.push(value);
                expected.push(same);
            }
            (Value::List(list), Expected::List(expected))
        }
        _ => {
            let (mut members, mut expected) = (PoolVec::new_in(memory), BTreeMap::new());
            for _ in 0..numbers.below(7) {
                let name = format!("member {}", numbers.below(9));
                let (value, same) = make(memory, numbers, depth - 1);
                set(&mut members, text(memory, &name), value);
                expected.insert(name, same);
            }
            (Value::Object(members), Expected::Object(expected))
        }
    }
}

type Members<'p, P> = PoolVec<'p, (PoolVec<'p, u8, P>, Value<'p, P>), P>;

fn set<'p, P: ManualPool>(members: &mut Members<'p, P>, name: PoolVec<'p, u8, P>, value: Value<'p, P>) {
    match members.binary_search_by(|(known, _)| known.as_slice().cmp(&name)) {
        Ok(at) => members[at].1 = value,
        Err(at) => members.insert(at, (name, value)),
    }
}

fn write_list<T>(
    out: &mut String,
    ends: [char; 2],
    items: impl Iterator<Item = T>,
    mut write: impl FnMut(&mut String, T),
) {
    out.push(ends[0]);
    for (index, item) in items.enumerate() {
        if index > 0 {
            out.push(',');
        }
        write(out, item);
    }
    out.push(ends[1]);
}

fn write_value<P: ManualPool>(out: &mut String, value: &Value<'_, P>) {
    let str = |bytes| core::str::from_utf8(bytes).unwrap();
    match value {
        Value::Null => out.push_str("null"),
        Value::Number(number) => write!(out, "{number}").unwrap(),
        Value::Text(text) => write!(out, "{:?}", str(text)).unwrap(),
        Value::List(list) => write_list(out, ['[', ']'], list.iter(), write_value),
        Value::Object(members) => write_list(out, ['{', '}'], members.iter(), |out, (name, value)| {
            write!(out, "{:?}:", str(name)).unwrap();
            write_value(out, value);
        }),
    }
}

fn write_expected(out: &mut String, value: &Expected) {
    match value {
        Expected::Null => out.push_str("null"),
        Expected::Number(number) => write!(out, "{number}").unwrap(),
        Expected::Text(text) => write!(out, "{text:?}").unwrap(),
        Expected::List(list) => write_list(out, ['[', ']'], list.iter(), write_expected),
        Expected::Object(members) => write_list(out, ['{', '}'], members.iter(), |out, (name, value)| {
            write!(out, "{name:?}:").unwrap();
            write_expected(out, value);
        }),
    }
}

pub(crate) fn run<P: ManualPool>(pool: &P) {
    let memory = PoolAllocator::new(pool);
    let mut numbers = Numbers::new(11);
    let mut longest = 0;
    let (trees, depth) = if cfg!(miri) { (3, 2) } else { (12, 4) };
    for _ in 0..trees {
        let (value, expected) = make(memory, &mut numbers, depth);
        let (mut found, mut same) = (String::new(), String::new());
        write_value(&mut found, &value);
        write_expected(&mut same, &expected);
        assert_eq!(found, same);
        longest = longest.max(found.len());
    }
    assert!(longest > if cfg!(miri) { 100 } else { 1000 });
}
