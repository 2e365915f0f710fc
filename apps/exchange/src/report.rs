//! What a run has to say: a summary to read, and the same as JSON.

use core::fmt::{self, Write};

use crate::book::Depth;
use crate::notes::Price;
use crate::run::{Outcome, Top};

/// A line of the summary.
pub fn line(f: &mut fmt::Formatter<'_>, name: &str, value: fmt::Arguments<'_>) -> fmt::Result {
    writeln!(f, "{name:<22}{value}")
}

/// What messages of a type are called.
const fn name_of(kind: u8) -> &'static str {
    match kind {
        b'A' => "add",
        b'F' => "add, attributed",
        b'E' => "execute",
        b'C' => "execute at price",
        b'X' => "cancel",
        b'D' => "delete",
        b'U' => "replace",
        b'P' => "trade",
        b'Q' => "cross",
        b'B' => "broken trade",
        b'S' => "system event",
        b'R' => "directory",
        _ => "skipped",
    }
}

/// A count with commas.
pub struct Commas(pub u64);

impl fmt::Display for Commas {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = self.0.to_string();
        let mut text = String::with_capacity(digits.len() * 4 / 3);
        for (at, digit) in digits.chars().enumerate() {
            if at > 0 && (digits.len() - at).is_multiple_of(3) {
                text.push(',');
            }
            text.push(digit);
        }
        f.pad(&text)
    }
}

/// A size in MiB.
pub struct Mebibytes(pub u64);

impl fmt::Display for Mebibytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.1} MiB", self.0 as f64 / f64::from(1 << 20))
    }
}

/// A count that the kernel may not tell.
pub fn known(count: Option<u64>) -> String {
    count.map_or_else(|| "not known".to_owned(), |count| Commas(count).to_string())
}

struct Best(Option<Depth>);

impl fmt::Display for Best {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            None => f.write_str("none"),
            Some(Depth { price, shares, orders }) => {
                write!(f, "{} x {shares} ({orders} orders)", Price(price))
            }
        }
    }
}

/// The summary. Figures of what did not take place are left out.
impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        line(f, "messages", format_args!("{}", Commas(self.messages)))?;
        for (kind, count) in &self.by_type {
            let share = 100.0 * *count as f64 / self.messages.max(1) as f64;
            let name = format!("  {} {}", char::from(*kind), name_of(*kind));
            line(f, &name, format_args!("{:>14} {share:6.2} %", Commas(*count)))?;
        }
        line(
            f,
            "live orders",
            format_args!("{}, at most {}", Commas(self.orders as u64), Commas(self.most.0 as u64)),
        )?;
        line(
            f,
            "levels",
            format_args!("{}, at most {}", Commas(self.levels as u64), Commas(self.most.1 as u64)),
        )?;
        for Top { locate, stock, messages, buy, sell } in &self.tops {
            let name = format!("  {} ({locate})", String::from_utf8_lossy(stock).trim_end());
            line(f, &name, format_args!("{} | {}, {} messages", Best(*buy), Best(*sell), Commas(*messages)))?;
        }
        if self.crossed > 0 {
            line(f, "crossed books", format_args!("{}", self.crossed))?;
        }
        self.write_lobster(f)?;
        line(f, "hash of all books", format_args!("{:016x}", self.checksum))?;
        writeln!(f)?;
        line(f, "warm-up", format_args!("{} messages", Commas(self.warmup)))?;
        if self.steady_messages == 0 {
            line(f, "steady part", format_args!("none: the input ended within the warm-up (see --warmup)"))?;
        } else {
            self.write_steady(f)?;
        }
        line(f, "arena", format_args!("{} committed", Mebibytes(self.arena_bytes as u64)))?;
        line(f, "tables", format_args!("{}", Mebibytes(self.table_bytes as u64)))?;
        if let Some((now, most)) = self.resident {
            line(f, "process", format_args!("{} resident, at most {}", Mebibytes(now), Mebibytes(most)))?;
        }
        writeln!(f)?;
        self.write_contract(f)
    }
}

impl Outcome {
    /// What the contract saw, and by which detectors.
    pub fn write_contract(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = if self.is_armed { "armed" } else { "not armed" };
        line(f, "contract", format_args!("{state}, {} alarms", self.alarms))?;
        line(f, "  live detectors", format_args!("{}", self.detectors.join(" ")))?;
        if !self.missing.is_empty() {
            line(f, "  missing detectors", format_args!("{}", self.missing.join(" ")))?;
        }
        self.violations.iter().try_for_each(|text| line(f, "", format_args!("{text}")))?;
        self.warnings.iter().try_for_each(|text| line(f, "  warning", format_args!("{text}")))
    }

    /// What is said of files of LOBSTER alone.
    fn write_lobster(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(first) = &self.first_unknown {
            let messages = Commas(self.unknown);
            let what = "messages about orders from before the file, first at";
            line(f, "unknown orders", format_args!("{messages} {what} {first}"))?;
        }
        let compared = &self.compared;
        if compared.lines == 0 {
            return Ok(());
        }
        let (lines, came) = (Commas(compared.lines), Commas(compared.came));
        let differ = Commas(compared.mismatches);
        line(
            f,
            "orderbook file",
            format_args!("{lines} lines, {differ} levels differ, {came} came into sight"),
        )
    }

    fn write_steady(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let steady = &self.steady;
        line(
            f,
            "steady part",
            format_args!("{} messages, of the hot thread:", Commas(self.steady_messages)),
        )?;
        if let Some((speed, waited)) = self.pace {
            line(f, "  pace", format_args!("{speed} times as recorded, {} messages waited", Commas(waited)))?;
        }
        line(f, "  arena growth", format_args!("{} bytes", Commas(steady.arena_growth)))?;
        line(f, "  global allocator", format_args!("{} calls", Commas(steady.allocator_calls)))?;
        line(f, "  memory calls", format_args!("{} to the kernel", Commas(steady.memory_calls)))?;
        let (minor, major) = (known(steady.minor_faults), known(steady.major_faults));
        line(f, "  page faults", format_args!("{minor} minor, {major} major"))?;
        let load = self.load.map_or_else(|| "not known".to_owned(), |load| format!("{load:.1}"));
        let interruptions = known(steady.interruptions);
        line(f, "  interrupted", format_args!("{interruptions} times by other work, load {load}"))?;
        line(f, "  buffer fills", format_args!("{}", Commas(steady.fills)))?;
        let mut times = String::new();
        for (name, value) in self.latency.named() {
            let _ = write!(times, "{}{name} {}", if times.is_empty() { "" } else { ", " }, Commas(value));
        }
        line(f, "  ns a message, clock", format_args!("{times}"))?;
        let rate = self.steady_messages as f64 / self.busy.as_secs_f64().max(1e-9);
        line(
            f,
            "  throughput",
            format_args!(
                "{} messages a second, {:.0} ns each, with the clock",
                Commas(rate as u64),
                self.latency.mean
            ),
        )
    }

    /// The report as JSON.
    pub fn json(&self) -> String {
        let mut json = Json::new();
        json.number("messages", self.messages);
        json.object("by_type", |json| {
            for (kind, count) in &self.by_type {
                json.number(&char::from(*kind).to_string(), *count);
            }
        });
        json.number("live_orders", self.orders as u64);
        json.number("most_live_orders", self.most.0 as u64);
        json.number("levels", self.levels as u64);
        json.number("most_levels", self.most.1 as u64);
        json.number("crossed_books", self.crossed as u64);
        json.number("unknown_orders", self.unknown);
        json.object("orderbook", |json| {
            json.number("lines", self.compared.lines);
            json.number("levels_different", self.compared.mismatches);
            json.number("levels_come_into_sight", self.compared.came);
        });
        json.text("sum", &format!("{:016x}", self.checksum));
        json.list("tops", &self.tops, |json, top| {
            json.text("stock", String::from_utf8_lossy(&top.stock).trim_end());
            json.number("locate", u64::from(top.locate));
            json.number("messages", top.messages);
            for (name, depth) in [("buy", top.buy), ("sell", top.sell)] {
                if let Some(Depth { price, shares, orders }) = depth {
                    json.object(name, |json| {
                        json.text("price", &Price(price).to_string());
                        json.number("shares", shares);
                        json.number("orders", u64::from(orders));
                    });
                }
            }
        });
        json.number("warmup_messages", self.warmup);
        json.number("steady_messages", self.steady_messages);
        json.object("steady", |json| {
            json.number("arena_growth_bytes", self.steady.arena_growth);
            json.number("allocator_calls", self.steady.allocator_calls);
            json.number("memory_calls", self.steady.memory_calls);
            json.optional("minor_page_faults", self.steady.minor_faults);
            json.optional("major_page_faults", self.steady.major_faults);
            json.optional("interruptions", self.steady.interruptions);
            json.number("fills", self.steady.fills);
        });
        json.object("latency_ns", |json| {
            for (name, value) in self.latency.named() {
                json.number(name, value);
            }
        });
        json.number("busy_ns", u64::try_from(self.busy.as_nanos()).unwrap_or(u64::MAX));
        json.number("arena_bytes", self.arena_bytes as u64);
        json.number("table_bytes", self.table_bytes as u64);
        json.optional("resident_bytes", self.resident.map(|(now, _)| now));
        json.object("contract", |json| {
            json.raw("armed", if self.is_armed { "true" } else { "false" });
            json.number("alarms", self.alarms as u64);
            json.texts("live_detectors", &self.detectors);
            json.texts("missing_detectors", &self.missing);
            json.texts("violations", &self.violations);
            json.texts("warnings", &self.warnings);
        });
        json.texts("failures", &self.failures);
        json.finish()
    }
}

/// Writes an object of JSON.
pub struct Json {
    out: String,
    is_first: bool,
}

impl Json {
    /// An object that is open.
    pub fn new() -> Self {
        Self { out: "{".to_owned(), is_first: true }
    }

    fn key(&mut self, name: &str) {
        if !core::mem::take(&mut self.is_first) {
            self.out.push(',');
        }
        self.quote(name);
        self.out.push(':');
    }

    fn quote(&mut self, text: &str) {
        self.out.push('"');
        for c in text.chars() {
            match c {
                '"' | '\\' => self.out.extend(['\\', c]),
                c if u32::from(c) < 0x20 => {
                    let _ = write!(self.out, "\\u{:04x}", u32::from(c));
                }
                c => self.out.push(c),
            }
        }
        self.out.push('"');
    }

    /// A value that is JSON.
    pub fn raw(&mut self, name: &str, value: &str) {
        self.key(name);
        self.out.push_str(value);
    }

    /// A whole number.
    pub fn number(&mut self, name: &str, value: u64) {
        self.raw(name, &value.to_string());
    }

    /// A fraction.
    pub fn fraction(&mut self, name: &str, value: f64) {
        if value.is_finite() { self.raw(name, &format!("{value:.4}")) } else { self.raw(name, "null") }
    }

    /// A whole number, if it is known.
    pub fn optional(&mut self, name: &str, value: Option<u64>) {
        self.raw(name, &value.map_or_else(|| "null".to_owned(), |value| value.to_string()));
    }

    /// A string.
    pub fn text(&mut self, name: &str, value: &str) {
        self.key(name);
        self.quote(value);
    }

    /// A list of strings.
    pub fn texts(&mut self, name: &str, values: &[String]) {
        self.key(name);
        self.out.push('[');
        for (at, value) in values.iter().enumerate() {
            if at > 0 {
                self.out.push(',');
            }
            self.quote(value);
        }
        self.out.push(']');
    }

    /// An object inside.
    pub fn object(&mut self, name: &str, write: impl FnOnce(&mut Self)) {
        self.key(name);
        self.inside(write);
    }

    /// A list of objects.
    pub fn list<T>(&mut self, name: &str, values: &[T], mut write: impl FnMut(&mut Self, &T)) {
        self.key(name);
        self.out.push('[');
        for (at, value) in values.iter().enumerate() {
            if at > 0 {
                self.out.push(',');
            }
            self.inside(|json| write(json, value));
        }
        self.out.push(']');
    }

    fn inside(&mut self, write: impl FnOnce(&mut Self)) {
        self.out.push('{');
        self.is_first = true;
        write(self);
        self.is_first = false;
        self.out.push('}');
    }

    /// All of it.
    pub fn finish(mut self) -> String {
        self.out.push_str("}\n");
        self.out
    }
}
