//! Objects by their kinds: what the interpreter sees of them.

use super::object::{Kind, Object};
use super::value::{Constant, Value, is_reference};

/// A value by what it is.
#[derive(Clone, Copy, Debug)]
pub(crate) enum View<'s> {
    Number(i64),
    Constant(Constant),
    Pair(Pair<'s>),
    Symbol(Symbol<'s>),
    Function(Closure<'s>),
    Macro(Closure<'s>),
    Scope(Scope<'s>),
    Vector(Vector<'s>),
    Table(Table<'s>),
    Text(Text<'s>),
    /// A port, by its number.
    Port(usize),
    /// What programs never see: keys and their values.
    Hidden,
}

impl<'s> Value<'s> {
    pub(super) fn object(self) -> Option<Object<'s>> {
        let word = core::ptr::NonNull::new(self.word()).filter(|word| is_reference(word.as_ptr()))?;
        // SAFETY: a value that is a reference leads to an object of its store, which stays there during `'s`.
        Some(unsafe { Object::at(word) })
    }

    /// What it is.
    pub(crate) fn view(self) -> View<'s> {
        if let Some(number) = self.as_number() {
            return View::Number(number);
        }
        let Some(object) = self.object() else {
            return View::Constant(self.as_constant().unwrap_or(Constant::Unbound));
        };
        match object.header().kind() {
            Kind::Pair => View::Pair(Pair(object)),
            Kind::Symbol => View::Symbol(Symbol(object)),
            Kind::Function => View::Function(Closure(object)),
            Kind::Macro => View::Macro(Closure(object)),
            Kind::Scope => View::Scope(Scope(object)),
            Kind::Vector => View::Vector(Vector(object)),
            Kind::Table => View::Table(Table(object)),
            Kind::Text => View::Text(Text(object)),
            Kind::Port => View::Port(object.word(0).addr()),
            Kind::Keys | Kind::Values => View::Hidden,
        }
    }

    pub(crate) fn as_pair(self) -> Option<Pair<'s>> {
        if let View::Pair(pair) = self.view() { Some(pair) } else { None }
    }

    pub(crate) fn as_symbol(self) -> Option<Symbol<'s>> {
        if let View::Symbol(symbol) = self.view() { Some(symbol) } else { None }
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Pair<'s>(Object<'s>);

impl<'s> Pair<'s> {
    pub(crate) fn first(self) -> Value<'s> {
        self.0.value(0)
    }

    pub(crate) fn rest(self) -> Value<'s> {
        self.0.value(1)
    }

    pub(crate) fn set_first(self, value: Value<'_>) {
        self.0.set_value(0, value);
    }

    pub(crate) fn set_rest(self, value: Value<'_>) {
        self.0.set_value(1, value);
    }

    /// The line of the program that it was read from, or zero.
    pub(crate) fn line(self) -> usize {
        self.0.header().detail()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Symbol<'s>(Object<'s>);

impl<'s> Symbol<'s> {
    pub(crate) fn name(self) -> &'s str {
        if let View::Text(text) = self.0.value(0).view() { text.get() } else { "" }
    }

    /// Its value outside all functions, or [`Constant::Unbound`].
    pub(crate) fn value(self) -> Value<'s> {
        self.0.value(1)
    }

    pub(crate) fn set_value(self, value: Value<'_>) {
        self.0.set_value(1, value);
    }
}

/// A function or a macro of the program.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Closure<'s>(Object<'s>);

impl<'s> Closure<'s> {
    /// A list of symbols. It may end with a symbol instead of the empty list: that one has all other arguments.
    pub(crate) fn parameters(self) -> Value<'s> {
        self.0.value(0)
    }

    /// A list of expressions.
    pub(crate) fn body(self) -> Value<'s> {
        self.0.value(1)
    }

    /// Where it was made.
    pub(crate) fn scope(self) -> Value<'s> {
        self.0.value(2)
    }
}

/// The names of a call, and their values.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scope<'s>(Object<'s>);

/// Where the value of a name is.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Place<'s> {
    Argument(Scope<'s>, usize),
    /// The second part of this pair.
    Defined(Pair<'s>),
}

impl<'s> Scope<'s> {
    /// The fields in front of the values of arguments.
    pub(crate) const FRONT: usize = 3;

    pub(crate) fn outer(self) -> Value<'s> {
        self.0.value(0)
    }

    /// Pairs of symbols and values that were defined in the body.
    pub(crate) fn definitions(self) -> Value<'s> {
        self.0.value(2)
    }

    pub(crate) fn set_definitions(self, definitions: Value<'_>) {
        self.0.set_value(2, definitions);
    }

    /// Where the value of a symbol is, if this scope has it.
    pub(crate) fn find(self, symbol: Symbol<'_>) -> Option<Place<'s>> {
        let is_wanted = |name: Value<'s>| name.as_symbol() == Some(symbol);
        let mut definitions = self.definitions();
        while let Some(pair) = definitions.as_pair() {
            if let Some(definition) = pair.first().as_pair().filter(|found| is_wanted(found.first())) {
                return Some(Place::Defined(definition));
            }
            definitions = pair.rest();
        }
        let (mut names, mut field) = (self.0.value(1), Self::FRONT);
        while let Some(pair) = names.as_pair() {
            if is_wanted(pair.first()) {
                return Some(Place::Argument(self, field));
            }
            (names, field) = (pair.rest(), field + 1);
        }
        is_wanted(names).then_some(Place::Argument(self, field))
    }
}

impl<'s> Place<'s> {
    pub(crate) fn get(self) -> Value<'s> {
        match self {
            Self::Argument(scope, field) => scope.0.value(field),
            Self::Defined(pair) => pair.rest(),
        }
    }

    pub(crate) fn set(self, value: Value<'_>) {
        match self {
            Self::Argument(scope, field) => scope.0.set_value(field, value),
            Self::Defined(pair) => pair.set_rest(value),
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Vector<'s>(Object<'s>);

impl<'s> Vector<'s> {
    pub(crate) fn length(self) -> usize {
        self.0.header().detail()
    }

    pub(crate) fn get(self, index: usize) -> Option<Value<'s>> {
        (index < self.length()).then(|| self.0.value(index))
    }

    /// Changes an element. Returns false if there is none with this index.
    pub(crate) fn set(self, index: usize, value: Value<'_>) -> bool {
        let is_there = index < self.length();
        if is_there {
            self.0.set_value(index, value);
        }
        is_there
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Text<'s>(Object<'s>);

impl<'s> Text<'s> {
    pub(crate) fn get(self) -> &'s str {
        // It was made of a string, so this never replaces anything.
        core::str::from_utf8(self.0.bytes()).unwrap_or("")
    }
}

/// A table whose keys are weak.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Table<'s>(pub(super) Object<'s>);
