//! Words that have names.

/// Defines a layout by the names of its words, in their order.
macro_rules! of_words {
    ($(#[$meta:meta])* $visibility:vis struct $of:ident { $($word:ident),+ $(,)? }) => {
        $(#[$meta])*
        $visibility struct $of {
            $($visibility $word: u64,)+
        }

        impl $of {
            /// How many words there are.
            $visibility const WORDS: usize = [$(stringify!($word)),+].len();

            /// `None` if there are fewer words.
            $visibility fn of_words(words: &[u64]) -> Option<Self> {
                let &[$($word),+] = words.first_chunk::<{ Self::WORDS }>()?;
                Some(Self { $($word),+ })
            }
        }
    };
}

pub(crate) use of_words;
