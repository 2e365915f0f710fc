//! Messages of any form, applied to the books, counted and noted.

use zerocopy::FromBytes;

use crate::book::{Books, Refused, Side};
use crate::frames::{Form, Framed};
use crate::itch::{Header, Malformed, Message, parse};
use crate::lobster::{self, JOINT, Kind, Line, Row};
use crate::notes::{Notebook, Stock, Trade, Wanted};
use crate::orderbook::{At, Orderbook, qualified, take};
use crate::places::Places;
use crate::run::{Cause, Top};

/// Stocks whose best prices are reported.
const BUSIEST: usize = 5;

/// Messages about orders that a file of LOBSTER does not have, because they came before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Unknown {
    pub(crate) messages: u64,
    /// The first: which of the inputs, from zero, and its line.
    pub(crate) first: Option<(usize, u64)>,
}

/// The books, and what was counted on the way.
pub(crate) struct Keeper<P: Places> {
    pub(crate) books: Books<P>,
    pub(crate) by_type: [u64; 256],
    /// For each locate code, its messages and the name of its stock.
    stocks: Vec<(u64, [u8; 8])>,
    pub(crate) notebook: Notebook,
    /// The input of LOBSTER that is read; its stock has the locate code that follows its number.
    input: u16,
    pub(crate) unknown: Unknown,
    pub(crate) orderbook: Orderbook,
    /// The last system event of ITCH: a whole day ends with C.
    pub(crate) last_event: Option<u8>,
}

impl<P: Places> Keeper<P> {
    pub(crate) fn new(books: Books<P>, wanted: Wanted) -> Self {
        Self {
            books,
            by_type: [0; 256],
            stocks: vec![(0, *b"        "); 1 << 16],
            notebook: Notebook::new(wanted),
            input: 0,
            unknown: Unknown::default(),
            orderbook: Orderbook::new(),
            last_event: None,
        }
    }

    /// Begins with a file of LOBSTER: another stock, or another day.
    pub(crate) fn begin_lobster(&mut self, input: usize, name: Option<[u8; 8]>) {
        // There are fewer inputs than locate codes: see `Source::files`.
        self.input = u16::try_from(input).unwrap_or(u16::MAX - 1);
        self.stocks[usize::from(self.input) + 1].1 = name.unwrap_or([b' '; 8]);
        self.orderbook.begin();
    }

    /// A stock by its code.
    #[inline]
    pub(crate) fn stock(&self, locate: u16) -> Stock {
        Stock { name: self.stocks[usize::from(locate)].1, locate }
    }

    /// Reads a message and does what it says.
    #[inline]
    pub(crate) fn keep(&mut self, form: Form, framed: &Framed<'_>) -> Result<(), Cause> {
        if form == Form::Lobster {
            return self.keep_line(framed);
        }
        let bytes = framed.bytes;
        let message = parse(bytes).map_err(Cause::Malformed)?;
        // Every message begins with one.
        let (header, _) = Header::ref_from_prefix(bytes).map_err(|_| Cause::Malformed(Malformed::Empty))?;
        let wanted = self.notebook.wanted();
        let stock = || self.stock(header.locate.get());
        let trade = if wanted.trades { Trade::of(bytes, &message, &self.books, stock()) } else { None };
        self.books.apply(&message).map_err(Cause::Refused)?;
        self.count(header);
        match message {
            Message::Directory(directory) => {
                self.stocks[usize::from(header.locate.get())].1 = directory.stock;
            }
            Message::System(event) => self.last_event = Some(event.event),
            _ => {}
        }
        if wanted.is_any() {
            self.note(header, trade);
        }
        Ok(())
    }

    /// Reads a line of LOBSTER and does what it says. That an order is not known is no fault there.
    fn keep_line(&mut self, framed: &Framed<'_>) -> Result<(), Cause> {
        let mut parts = framed.bytes.splitn(2, |&byte| byte == JOINT);
        let line = lobster::parse(parts.next().unwrap_or_default()).map_err(Cause::Line)?;
        let row = parts.next().map(Row::parse).transpose().map_err(Cause::Line)?;
        let locate = self.input + 1;
        let header = line.header(locate);
        let order = qualified(locate, line.order);
        match line.with_message(header, order, |message| self.books.apply(message)) {
            Ok(()) => {}
            Err(Refused::UnknownOrder(_)) => {
                self.unknown.messages += 1;
                let here = (usize::from(self.input), framed.number);
                self.unknown.first = self.unknown.first.or(Some(here));
                // Without an orderbook file, nothing is known of its level.
                let _ = take(&mut self.books, header, &line);
            }
            Err(refused) => return Err(Cause::Refused(refused.of_order(line.order))),
        }
        self.count(&header);
        if let Some(row) = row {
            let at = At { input: usize::from(self.input), line: framed.number, locate };
            self.orderbook.compare(&mut self.books, at, row).map_err(Cause::Refused)?;
        }
        if self.notebook.wanted().is_any() {
            self.note(&header, self.trade_of(&header, &line));
        }
        Ok(())
    }

    fn trade_of(&self, header: &Header, line: &Line) -> Option<Trade> {
        let Line { time, kind, shares, price, .. } = *line;
        let is_trade = matches!(kind, Kind::Execution | Kind::Hidden | Kind::Cross) && shares > 0;
        let stock = self.stock(header.locate.get());
        is_trade.then(|| Trade { time, stock, kind: header.kind, price, shares: shares.into(), number: 0 })
    }

    #[inline]
    fn count(&mut self, header: &Header) {
        self.by_type[usize::from(header.kind)] += 1;
        self.stocks[usize::from(header.locate.get())].0 += 1;
    }

    #[inline(never)]
    fn note(&mut self, header: &Header, trade: Option<Trade>) {
        let Wanted { tops, trades } = self.notebook.wanted();
        if let Some(trade) = trade.filter(|_| trades) {
            self.notebook.trade(trade);
        }
        if tops {
            let stock = self.stock(header.locate.get());
            self.notebook.top(header.nanoseconds(), stock, &self.books);
        }
    }

    /// The stocks with the most messages.
    pub(crate) fn tops(&self) -> Vec<Top> {
        let mut busiest: Vec<_> =
            (0..=u16::MAX).filter(|&at| at > 0 && self.stocks[usize::from(at)].0 > 0).collect();
        busiest.sort_by_key(|&at| core::cmp::Reverse(self.stocks[usize::from(at)].0));
        let top = |locate: u16| {
            let (messages, stock) = self.stocks[usize::from(locate)];
            let best = |side| self.books.best(locate, side);
            Top { locate, stock, messages, buy: best(Side::Buy), sell: best(Side::Sell) }
        };
        busiest.into_iter().take(BUSIEST).map(top).collect()
    }

    /// Books whose best prices cross.
    pub(crate) fn crossed(&self) -> usize {
        let best = |locate, side| self.books.best(locate, side).map(|depth| depth.price);
        let pairs = self.books.locates().map(|locate| (best(locate, Side::Buy), best(locate, Side::Sell)));
        pairs.filter(|(buy, sell)| buy.zip(*sell).is_some_and(|(buy, sell)| buy >= sell)).count()
    }
}
