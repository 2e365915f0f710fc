//! The command line.

use std::path::PathBuf;

use clap::builder::RangedU64ValueParser;
use clap::{Args, Parser, Subcommand, ValueEnum};
use exchange::book::Plan;
use exchange::compare::{CompareOptions, Entrant, Phase, all};
use exchange::day::{BURST, DayOptions};
use exchange::engine_run::EngineOptions;
use exchange::feed::{Flaw, FlawKind};
use exchange::frames::Form;
use exchange::inject::Injection;
use exchange::notes::Outputs;
use exchange::places::Home;
use exchange::run::RunOptions;

/// The most orders that may be asked for.
const LIVE_MAX: u64 = 50_000_000;

/// Keeps the books of an exchange, order by order, with every order in a pool.
///
/// Without a command: a generated day of four million messages under the steady-state contract, and then a brief
/// comparison with other homes of orders.
///
/// Exit status: 0 if all went well, 1 if something failed, 2 for an option that cannot be.
#[derive(Debug, Parser)]
#[command(name = "exchange", version)]
pub(crate) struct Options {
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Writes a day of ITCH 5.0 that is drawn from a seed.
    Day(DayCommand),
    /// Keeps all books of a day under the steady-state contract, and reports.
    Run(RunCommand),
    /// Replays one day with orders in all homes, which take turns, and compares times.
    Compare(CompareCommand),
    /// Matches orders, publishes a feed, and compares the books that another thread keeps from it.
    Engine(EngineCommand),
    /// Compares the books with naive ones, on small days, whole and damaged.
    Check(CheckCommand),
}

/// What a generated day is drawn from.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct DayArguments {
    /// Messages of a generated day between its opening and its closing.
    #[arg(long, value_name = "N", default_value_t = 4_000_000, value_parser = RangedU64ValueParser::<u64>::new().range(1..=4_000_000_000))]
    pub(crate) messages: u64,

    /// Orders that are live at once in a generated day.
    #[arg(long, value_name = "N", default_value_t = 100_000, value_parser = live)]
    pub(crate) live: usize,

    /// What a generated day is drawn from.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,

    /// Stocks of a generated day.
    #[arg(long, value_name = "N", default_value_t = 8_000, value_parser = clap::value_parser!(u16).range(1..=60_000))]
    pub(crate) symbols: u16,
}

impl DayArguments {
    pub(crate) const fn options(self) -> DayOptions {
        DayOptions { seed: self.seed, messages: self.messages, live: self.live, symbols: self.symbols }
    }
}

#[derive(Args, Debug)]
pub(crate) struct DayCommand {
    #[command(flatten)]
    pub(crate) day: DayArguments,

    /// Where to write it, `-` for the standard output.
    #[arg(long, value_name = "FILE", default_value = "-")]
    pub(crate) output: PathBuf,

    /// How messages are framed.
    #[arg(long, value_enum, default_value_t = FormName::File)]
    pub(crate) form: FormName,
}

/// How messages are framed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum FormName {
    /// Each message with its length in front: two bytes, big-endian.
    File,
    /// Packets of MoldUDP64, each with its length in front.
    Packets,
}

impl From<FormName> for Form {
    fn from(name: FormName) -> Self {
        match name {
            FormName::File => Self::File,
            FormName::Packets => Self::Packets,
        }
    }
}

/// How messages are framed in an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum InputForm {
    /// ITCH, each message with its length in front: two bytes, big-endian.
    File,
    /// ITCH in packets of MoldUDP64, each with its length in front.
    Packets,
    /// Lines of LOBSTER.
    Lobster,
}

impl From<InputForm> for Form {
    fn from(form: InputForm) -> Self {
        match form {
            InputForm::File => Self::File,
            InputForm::Packets => Self::Packets,
            InputForm::Lobster => Self::Lobster,
        }
    }
}

#[derive(Args, Debug)]
pub(crate) struct RunCommand {
    /// A day of ITCH 5.0 (a file as Nasdaq publishes it, or a capture of MoldUDP64), or a message file of LOBSTER; plain,
    /// gzip or zstd, `-` for the standard input. Several are read one after the other: of ITCH as one day, of LOBSTER as a
    /// book each. Without one a day is generated.
    #[arg(long, value_name = "FILE", num_args = 1..)]
    pub(crate) input: Vec<PathBuf>,

    /// How messages are framed, if their beginning does not say it.
    #[arg(long, value_enum, requires = "input")]
    pub(crate) form: Option<InputForm>,

    /// LOBSTER's orderbook file of each input: after each message its levels have to be the book's.
    #[arg(long, value_name = "FILE", num_args = 1.., requires = "input")]
    pub(crate) orderbook: Vec<PathBuf>,

    /// Where to write all levels of each book at the end, one line a level: stock, bid or ask, price, shares, orders; the
    /// best come first.
    #[arg(long, value_name = "FILE")]
    pub(crate) book: Option<PathBuf>,

    /// Where to write the best prices of each book as they change, one line a change: nanoseconds since midnight, stock, bid
    /// and ask; `-` for none.
    #[arg(long, value_name = "FILE")]
    pub(crate) tops: Option<PathBuf>,

    /// Where to write trades, one line a trade: nanoseconds since midnight, stock, price, shares, the exchange's number, and
    /// E or C for an order of the book, N for C that is not to be printed, P for a hidden order, Q for a cross, B if the trade
    /// of that number is void.
    #[arg(long, value_name = "FILE")]
    pub(crate) trades: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) day: DayArguments,

    /// Where orders and levels live. Homes whose memory is not taken beforehand grow and fault in the steady part, which the
    /// contract says.
    #[arg(long, value_enum, default_value_t = Home::Pools)]
    pub(crate) orders: Home,

    /// A generated day has ten times --live orders live from a third of its messages to two thirds: under the same contract.
    #[arg(long, conflicts_with = "input")]
    pub(crate) burst: bool,

    /// In the steady part messages come as they were recorded, or that many times as fast: the hot thread waits in between,
    /// without sleeping. The time of a message begins when it is due.
    #[arg(long, value_name = "SPEED", num_args = 0..=1, default_missing_value = "1", value_parser = speed)]
    pub(crate) as_recorded: Option<f64>,

    /// Orders to have memory for; a message that would need more ends the run. By default twice --live (ten
    /// times more with --burst) and 100,000 more, or two million for files.
    #[arg(long, value_name = "N", value_parser = live)]
    pub(crate) room: Option<usize>,

    /// Levels to have memory for; by default as many as orders.
    #[arg(long, value_name = "N", value_parser = live)]
    pub(crate) levels: Option<usize>,

    /// Messages of the warm-up, before the arena is frozen.
    #[arg(long, value_name = "N", default_value_t = 500_000)]
    pub(crate) warmup: u64,

    /// A deliberate violation, once, in the steady part.
    #[arg(long, value_enum, value_name = "WHAT")]
    pub(crate) inject: Option<Injection>,

    /// Where to write the report as JSON.
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) log: LogArguments,
}

/// Whether calls are logged.
#[derive(Args, Debug)]
pub(crate) struct LogArguments {
    /// Logs every call on the pools and their points to this file, which `tripoint replay` replays: for --orders point. All
    /// of them take longer then, also in the steady part.
    #[arg(long, value_name = "FILE")]
    pub(crate) point_log: Option<PathBuf>,
}

impl LogArguments {
    /// Begins the log, if one is asked for.
    ///
    /// # Errors
    /// If orders live where calls are not logged, or if the file cannot be written.
    pub(crate) fn begin(&self, orders: Home) -> Result<(), String> {
        let Some(path) = &self.point_log else { return Ok(()) };
        if orders != Home::Point {
            return Err(format!(
                "of orders in {orders} no calls are logged: with --point-log use --orders point"
            ));
        }
        point_log::begin(path).map_err(|error| format!("{}: {error}", path.display()))
    }

    /// Ends the log, if there is one. Returns what failed.
    pub(crate) fn end(&self) -> Option<String> {
        let path = self.point_log.as_deref()?;
        point_log::end().err().map(|error| format!("{}: {error}", path.display()))
    }
}

impl RunCommand {
    pub(crate) fn options(&self) -> RunOptions {
        RunOptions {
            inputs: self.input.clone(),
            orderbooks: self.orderbook.clone(),
            form: self.form.map(Into::into),
            day: self.day.options(),
            burst: self.burst,
            pace: self.as_recorded,
            home: self.orders,
            plan: self.plan(),
            warmup: self.warmup,
            inject: self.inject,
            outputs: Outputs {
                book: self.book.clone(),
                tops: self.tops.clone(),
                trades: self.trades.clone(),
            },
        }
    }

    fn plan(&self) -> Plan {
        let live = self.day.live * if self.burst { BURST } else { 1 };
        let default = if self.input.is_empty() { 2 * live + 100_000 } else { 2_000_000 };
        let orders = self.room.unwrap_or(default);
        Plan { orders, levels: self.levels.unwrap_or(orders) }
    }
}

#[derive(Args, Debug)]
pub(crate) struct EngineCommand {
    #[command(flatten)]
    pub(crate) day: DayArguments,

    /// Where the orders and levels of both live.
    #[arg(long, value_enum, default_value_t = Home::Pools)]
    pub(crate) orders: Home,

    /// Requests of the warm-up, before the arena is frozen.
    #[arg(long, value_name = "N", default_value_t = 500_000)]
    pub(crate) warmup: u64,

    /// Orders are allocated by a thread of their own, and freed by the engine's: for orders in pools or system.
    #[arg(long)]
    pub(crate) gateway: bool,

    /// Publishes something wrong, once, in message N or the first one behind that can have it; the run then fails.
    #[arg(long, value_name = "N")]
    pub(crate) flaw: Option<u64>,

    /// What is wrong with it.
    #[arg(long, value_enum, requires = "flaw", default_value = "shares")]
    pub(crate) flaw_kind: FlawKind,

    #[command(flatten)]
    pub(crate) log: LogArguments,
}

impl EngineCommand {
    pub(crate) fn options(&self) -> EngineOptions {
        EngineOptions {
            day: self.day.options(),
            home: self.orders,
            plan: Plan::of_live(2 * self.day.live + 100_000),
            warmup: self.warmup,
            gateway: self.gateway,
            flaw: self.flaw.map(|from| Flaw { kind: self.flaw_kind, from }),
        }
    }
}

#[derive(Args, Debug)]
pub(crate) struct CompareCommand {
    /// Orders that are live at once: 1e5, 1e6 and 5e6 are written so, too.
    #[arg(long, value_name = "N", default_value = "100000", value_parser = live)]
    pub(crate) live: usize,

    /// What the day is drawn from.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,

    /// Stocks of the day.
    #[arg(long, value_name = "N", default_value_t = 8_000, value_parser = clap::value_parser!(u16).range(1..=60_000))]
    pub(crate) symbols: u16,

    /// The homes that take part; by default all.
    #[arg(long, value_enum, value_name = "HOME", value_delimiter = ',')]
    pub(crate) homes: Vec<Entrant>,

    /// Messages that a home has before it is the turn of the next.
    #[arg(long, value_name = "N", default_value_t = 500_000, value_parser = RangedU64ValueParser::<usize>::new().range(1_000..=10_000_000))]
    pub(crate) chunk: usize,

    /// Chunks of each steady phase; in every second one the clock is read for each message.
    #[arg(long, value_name = "N", default_value_t = 12, value_parser = RangedU64ValueParser::<usize>::new().range(2..=10_000))]
    pub(crate) chunks: usize,

    /// Only the opening and the first steady phase.
    #[arg(long)]
    pub(crate) brief: bool,

    /// Processes that compare one after the other; what is printed are medians, with the least and the greatest ratio.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=100), overrides_with = "processes")]
    pub(crate) processes: u64,

    /// What the order of the homes is drawn from.
    #[arg(long, value_name = "N", default_value_t = 1, overrides_with = "draw")]
    pub(crate) draw: u64,

    /// What one process of several says to the first.
    #[arg(long, hide = true)]
    pub(crate) rows: bool,

    /// Where to write the comparison as JSON.
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,

    /// Compares homes of orders that one thread allocates and another frees, and nothing else.
    #[arg(long, conflicts_with_all = ["homes", "brief", "processes", "json", "picture"])]
    pub(crate) gateway: bool,

    /// Where to draw the comparison, as SVG; the home `hand` has to take part.
    #[arg(long, value_name = "FILE")]
    pub(crate) picture: Option<PathBuf>,
}

impl CompareCommand {
    pub(crate) fn options(&self) -> CompareOptions {
        let phases = if self.brief { &Phase::BRIEF[..] } else { &Phase::ALL };
        CompareOptions {
            day: DayOptions { seed: self.seed, messages: 0, live: self.live, symbols: self.symbols },
            draw: self.draw,
            phases: phases.to_vec(),
            entrants: if self.homes.is_empty() { all().to_vec() } else { self.homes.clone() },
            chunk: self.chunk,
            chunks: self.chunks,
        }
    }
}

#[derive(Args, Debug)]
pub(crate) struct CheckCommand {
    /// Small days to compare.
    #[arg(long, value_name = "N", default_value_t = 1_000, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) days: u64,

    /// The seed of the first; each other has the next.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
}

/// Parses a speed.
fn speed(text: &str) -> Result<f64, String> {
    let speed: f64 = text.parse().map_err(|error| format!("{error}"))?;
    if speed.is_finite() && speed > 0.0 { Ok(speed) } else { Err("more than 0, 1 for as recorded".into()) }
}

/// Parses a number of orders that memory can be had for.
fn live(text: &str) -> Result<usize, String> {
    let digits = text.split_once('e').and_then(|(digits, zeros)| {
        let zeros: usize = zeros.parse().ok().filter(|zeros| *zeros < 9)?;
        Some(digits.to_owned() + &"0".repeat(zeros))
    });
    let count: u64 = digits.as_deref().unwrap_or(text).parse().map_err(|error| format!("{error}"))?;
    if count == 0 || count > LIVE_MAX {
        return Err(format!("from 1 to {LIVE_MAX}"));
    }
    usize::try_from(count).map_err(|error| error.to_string())
}
