//! Symbols by their names. The table of all symbols is weak: a symbol that nothing else refers to, and that has no value,
//! is freed.

use super::object::Kind;
use super::stack::Register;
use super::store::Store;
use super::value::{Constant, Value};
use crate::failure::Outcome;

/// The slots of the first table.
const LEAST: usize = 256;

/// A hash of a name: Fowler, Noll and Vo's.
fn hash_of(name: &str) -> usize {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    let hash = name.as_bytes().iter().fold(0xcbf2_9ce4_8422_2325, step);
    (hash ^ hash >> 32) as usize
}

impl Store<'_, '_> {
    /// Makes a table without symbols.
    pub(crate) fn begin_symbols(&mut self) -> Outcome {
        self.make_keys(LEAST, false)?;
        self.pop_to(Register::Symbols);
        Ok(())
    }

    /// Puts the symbol of a name on the stack.
    pub(crate) fn intern(&mut self, name: &str) -> Outcome {
        let symbols = self.keys_in(Register::Symbols);
        let is_wanted = |symbol: Value<'_>| symbol.as_symbol().is_some_and(|symbol| symbol.name() == name);
        if let Some(slot) = symbols.find(hash_of(name), is_wanted) {
            return self.push(symbols.key(slot));
        }
        self.make_text(name)?;
        self.push(Value::constant(Constant::Unbound))?;
        self.make(Kind::Symbol, 0)?;
        self.make_room_for_symbol()?;
        self.keys_in(Register::Symbols).enter(hash_of(name), self.top());
        Ok(())
    }

    fn make_room_for_symbol(&mut self) -> Outcome {
        let symbols = self.keys_in(Register::Symbols);
        if symbols.has_room() {
            return Ok(());
        }
        let slots = (2 * symbols.live().count()).next_power_of_two().max(LEAST);
        self.make_keys(slots, false)?;
        // Counted before the allocation, after which there may be fewer.
        let (old, new) = (self.keys_in(Register::Symbols), self.keys_at(self.depth() - 1));
        for slot in old.live() {
            let symbol = old.key(slot);
            if let Some(name) = symbol.as_symbol().map(|symbol| symbol.name()) {
                new.enter(hash_of(name), symbol);
            }
        }
        self.pop_to(Register::Symbols);
        Ok(())
    }

    /// How many symbols there are.
    pub(crate) fn symbol_count(&self) -> usize {
        self.keys_in(Register::Symbols).live().count()
    }
}
