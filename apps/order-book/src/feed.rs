//! The feed: files, or the built-in exchange.

use indicatif::{ProgressBar, ProgressStyle};

use crate::failure::Failure;
use crate::generator::Generator;
use crate::options::FeedOptions;
use crate::reader::{self, Input};

/// A bar on a terminal; nothing elsewhere.
pub fn progress_bar() -> ProgressBar {
    let style = ProgressStyle::with_template("{bar:40} {percent}% {elapsed} (left: {eta})");
    ProgressBar::no_length().with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}

/// Opens the inputs that the options ask for; `progress` shows how much was read.
pub fn open_all(options: &FeedOptions, progress: &ProgressBar) -> Vec<Input> {
    if options.input.is_empty() {
        return vec![Ok(Box::new(Generator::new(
            options.market,
            options.profile,
            options.messages,
            options.play,
            progress,
        )))];
    }
    progress.set_length(0);
    options.input.iter().map(|path| reader::open(path, progress)).collect()
}

/// Opens the only input that the options ask for.
pub fn open(options: &FeedOptions, progress: &ProgressBar) -> Input {
    let mut inputs = open_all(options, progress);
    match (inputs.pop(), inputs.is_empty()) {
        (Some(input), true) => input,
        _ => Err(Failure::new("here one --input is all that can be read")),
    }
}

/// What the inputs are called.
pub fn names(options: &FeedOptions) -> Vec<String> {
    if options.input.is_empty() {
        return vec![format!(
            "built-in exchange, {:?}, {:?}, seed {}",
            options.market, options.profile, options.play.seed
        )];
    }
    options.input.iter().map(|path| path.display().to_string()).collect()
}

/// What they are called together.
pub fn name(options: &FeedOptions) -> String {
    names(options).join(", ")
}
