//! The switches of the process that is watched (design/telemetry.md `.switches`).

use std::io;

use tripoint_telemetry::Mean;
use tripoint_telemetry::format::EventKind;
use tripoint_telemetry::reader::SwitchesFile;

use crate::target::Target;

/// Rows before the kinds of events.
const OTHERS: usize = 2;

/// The mean from which `+` and `-` go on if the program has chosen it.
const MEAN: u32 = 1 << 19;

/// The switches, or why there are none.
pub(super) struct Switches(Result<SwitchesFile, String>);

impl Switches {
    pub(super) fn of(target: &Target) -> Self {
        let opened = match target {
            Target::Process(process) => SwitchesFile::attach(*process),
            Target::File(path) => SwitchesFile::open(path),
        };
        Self(opened.map_err(|error| error.to_string()))
    }

    /// How many can be chosen.
    pub(super) fn count(&self) -> usize {
        if self.0.is_ok() { OTHERS + EventKind::ALL.len() } else { 0 }
    }

    /// A line for each, and one for the mean; or why there are none.
    pub(super) fn lines(&self) -> Vec<String> {
        match &self.0 {
            Ok(file) => {
                lines(file).unwrap_or_else(|error| vec![format!("cannot read the switches: {error}")])
            }
            Err(error) => vec![format!("no switches: {error}")],
        }
    }

    /// Turns a switch.
    pub(super) fn turn(&self, index: usize) -> io::Result<()> {
        let Ok(file) = &self.0 else { return Ok(()) };
        match index {
            0 => file.set_sampling(Some(file.sampling()? != Some(true))),
            1 => file.set_sites(Some(file.sites()? != Some(true))),
            _ => match EventKind::ALL.get(index - OTHERS) {
                Some(kind) => file.set_event(*kind, !file.is_on(*kind)?),
                None => Ok(()),
            },
        }
    }

    /// Has the process sample twice as often, or half as often.
    pub(super) fn sample(&self, more_often: bool) -> io::Result<()> {
        let Ok(file) = &self.0 else { return Ok(()) };
        let bytes = file.mean()?.map_or(MEAN, Mean::bytes);
        let bytes = if more_often { (bytes / 2).max(1) } else { bytes.saturating_mul(2) };
        file.set_mean(Mean::new(bytes))
    }
}

fn lines(file: &SwitchesFile) -> io::Result<Vec<String>> {
    let choice = |on: Option<bool>| on.map_or("as the program has it", |on| if on { "on" } else { "off" });
    let mean =
        file.mean()?.map_or("as the program has it".to_owned(), |mean| format!("{} bytes", mean.bytes()));
    let mut lines = vec![
        format!("sampling: {}, mean {mean}", choice(file.sampling()?)),
        format!("sites of samples: {}", choice(file.sites()?)),
    ];
    for kind in EventKind::ALL {
        lines.push(format!("[{}] {}", if file.is_on(*kind)? { 'x' } else { ' ' }, kind.name()));
    }
    Ok(lines)
}
