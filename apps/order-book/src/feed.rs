//! The feed: a file, or the built-in exchange.

use std::io::Read;

use indicatif::{ProgressBar, ProgressStyle};

use crate::failure::Failure;
use crate::generator::{self, Generator};
use crate::options::FeedOptions;
use crate::reader;

/// A bar on a terminal; nothing elsewhere.
pub fn progress_bar() -> ProgressBar {
    let style = ProgressStyle::with_template("{bar:40} {percent}% {elapsed} (left: {eta})");
    ProgressBar::no_length().with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}

/// Where records come from, or why they cannot.
pub type Input = Result<Box<dyn Read + Send>, Failure>;

/// Opens what the options ask for; `progress` shows how much was read.
pub fn open(options: &FeedOptions, progress: &ProgressBar) -> Input {
    match &options.input {
        Some(path) => reader::open(path, progress),
        None => Ok(Box::new(Generator::new(options.market, options.profile, options.messages, progress))),
    }
}

/// What the input is called.
pub fn name(options: &FeedOptions) -> String {
    match &options.input {
        Some(path) => path.display().to_string(),
        None => format!(
            "built-in exchange, {:?}, {:?}, seed {:#x}",
            options.market,
            options.profile,
            generator::SEED
        ),
    }
}
