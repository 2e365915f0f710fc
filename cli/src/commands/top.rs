//! `tripoint top` (design/cli.md `.top`).

mod fitted;
mod live;
mod screen;
mod switches;
mod terminal;

use core::time::Duration;
use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::thread;

use clap::Args;

use self::live::Live;
use self::screen::{After, Screen};
use self::switches::Switches;
use self::terminal::Terminal;
use crate::error::{Error, Outcome};
use crate::output::Output;
use crate::signals;
use crate::summary::Summary;
use crate::symbols::{DEBUG_FOLDER, Symbols};
use crate::tables;
use crate::target::Target;

/// How long to wait for a key before the next look.
const PAUSE: Duration = Duration::from_millis(50);

/// How often what is left is looked at again before it is given up.
const LOOKS: u32 = 100;

/// Watch what a running process records, in the terminal
///
/// The events are those since the process was attached to, and what it still had of earlier ones. The process is neither
/// stopped nor slowed, except by the switches that you change: they stay as they are when this ends.
#[derive(Debug, Args)]
#[command(after_help = "Keys:
  1 to 6, Tab     choose a page: contract, memory, points, sites, events, switches
  s, r            sort by the next column, the other way round
  Up, Down        choose a row, scroll
  Space           switch the chosen kind of events, sampling, or sites of samples (page 6)
  + and -         sample more often, more rarely: half or twice the mean (page 6)
  q, Esc, Ctrl-C  end

Examples:
  tripoint top 4711
  tripoint top /dev/shm/orders
  tripoint top 4711 --once")]
pub(crate) struct Top {
    /// The number of the process, or its telemetry file
    target: Target,

    /// Print the figures of one second as text, and end; with --json as JSON
    #[arg(long)]
    once: bool,

    /// Count all events, not only those of the steady state
    #[arg(long)]
    all: bool,

    /// Where debug information is kept apart from programs, as .build-id or by path; may be repeated
    #[arg(long, value_name = "FOLDER", default_value = DEBUG_FOLDER)]
    debug_folder: Vec<PathBuf>,
}

impl Top {
    pub(crate) fn run(&self, out: &mut Output) -> Result<Outcome, Error> {
        let (reader, mut faults) = self.target.reader()?;
        let objects = reader.objects().ok();
        let symbols = Symbols::new(objects, &self.debug_folder);
        let mut live = Live::new(&reader, &self.target, self.all, symbols);
        if self.once || out.is_json() {
            let _ = live.look(&mut faults);
            thread::sleep(Duration::from_secs(1));
            // A script has to see all, also on a busy machine.
            if (0..LOOKS).all(|_| live.look(&mut faults)) {
                faults
                    .push("it is written faster than it can be read: some events are not counted".to_owned());
            }
            live.count(&mut faults);
            if out.is_json() {
                out.write_json(&live.known())?;
            } else if let Some(summary) = live.known() {
                tables::write(summary, out)?;
                live.fills().write(out)?;
            }
        } else {
            self.watch(&mut live, &mut faults)?;
        }
        // Who watches has seen it; a script has not.
        let is_violated = self.once || out.is_json();
        let is_violated = is_violated && live.known().is_some_and(Summary::is_violated);
        match faults.is_empty() {
            true => Ok(Outcome::found(is_violated)),
            false => Err(Error::Partial { target: self.target.clone(), faults }),
        }
    }

    fn watch(&self, live: &mut Live<'_>, faults: &mut Vec<String>) -> Result<(), Error> {
        if !std::io::stdout().is_terminal() || !std::io::stdin().is_terminal() {
            return Err(Error::NoTerminal);
        }
        let stop = signals::stop()?;
        let mut screen = Screen::new(Switches::of(&self.target));
        let refused = |error| Error::Terminal { error };
        let mut terminal = Terminal::open().map_err(refused)?;
        let mut is_prepared = false;
        while !signals::is_set(&stop) {
            live.look(faults);
            terminal.draw(|frame| screen.draw(frame, live, faults)).map_err(refused)?;
            // With something on the screen already.
            if !is_prepared {
                live.prepare();
                is_prepared = true;
            }
            if let Some(key) = terminal.key(PAUSE).map_err(refused)?
                && screen.press(key) == After::End
            {
                break;
            }
        }
        drop(terminal);
        Ok(())
    }
}
