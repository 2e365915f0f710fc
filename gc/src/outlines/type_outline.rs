//! Where the references of a typed value lie (design/inspection.md `.types`).

/// How a reader finds the references of a value.
#[derive(Clone, Copy, Debug)]
#[repr(usize)]
enum Form {
    /// It has none.
    Leaf = 0,
    /// It is one, by which the object is kept.
    Strong = 1,
    /// It is one that keeps nothing.
    Weak = 2,
    /// They are those of its parts, which are at the offsets of these.
    Parts = 3,
    /// They are those of its items. The one part is the first item, and its offset is the bytes of an item.
    Items = 4,
    /// Any word of it that leads to an object may be one: of an enum it is not known which variant it is.
    Words = 5,
}

/// What readers outside of the process know of a type whose values are in objects: its name, its size, and where
/// references lie. [`object_types!`](crate::object_types) makes one for each type at compile time.
#[derive(Debug)]
#[repr(C)]
pub struct TypeOutline {
    form: Form,
    /// The first byte of the name, and how many there are; none if the name is not known.
    name: Option<&'static u8>,
    name_size: usize,
    /// In bytes.
    size: usize,
    align: usize,
    /// The first part, and how many there are.
    parts: Option<&'static PartOutline>,
    part_count: usize,
}

/// A part of a value.
#[derive(Debug)]
#[repr(C)]
pub struct PartOutline {
    offset: usize,
    outline: &'static TypeOutline,
}

impl PartOutline {
    /// A part that begins `offset` bytes behind the beginning of the value.
    #[must_use]
    pub const fn new(offset: usize, outline: &'static TypeOutline) -> Self {
        Self { offset, outline }
    }
}

impl TypeOutline {
    const fn with<T>(name: &'static str, form: Form, parts: &'static [PartOutline]) -> Self {
        Self {
            form,
            name: head(name.as_bytes()),
            name_size: name.len(),
            size: size_of::<T>(),
            align: align_of::<T>(),
            parts: head(parts),
            part_count: parts.len(),
        }
    }

    /// A type without references.
    #[must_use]
    pub const fn leaf<T>(name: &'static str) -> Self {
        Self::with::<T>(name, Form::Leaf, &[])
    }

    /// A reference by which an object is kept.
    pub(crate) const fn strong<T>(name: &'static str) -> Self {
        Self::with::<T>(name, Form::Strong, &[])
    }

    /// A reference that keeps nothing.
    pub(crate) const fn weak<T>(name: &'static str) -> Self {
        Self::with::<T>(name, Form::Weak, &[])
    }

    /// A type whose references are those of its parts.
    #[must_use]
    pub const fn parts<T>(name: &'static str, parts: &'static [PartOutline]) -> Self {
        Self::with::<T>(name, Form::Parts, parts)
    }

    /// An array.
    pub(crate) const fn items<T>(item: &'static [PartOutline; 1]) -> Self {
        Self::with::<T>("", Form::Items, item)
    }

    /// A type of which only is known whether there are references in it. If one part is known, it is the value of an
    /// option.
    #[must_use]
    pub const fn words<T>(name: &'static str, has_references: bool, parts: &'static [PartOutline]) -> Self {
        let form = if has_references { Form::Words } else { Form::Leaf };
        Self::with::<T>(name, form, parts)
    }
}

/// The first of some items, from which readers find the others.
pub(crate) const fn head<T>(items: &'static [T]) -> Option<&'static T> {
    match items {
        [first, ..] => Some(first),
        [] => None,
    }
}
