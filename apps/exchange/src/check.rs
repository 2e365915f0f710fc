//! The books and the naive ones, compared at random moments, on days that are whole and on days that are damaged
//! (design/exchange.md `.naive.compare`).

use tripoint::{ArenaVm, ArenaVmOptions};

use crate::book::{Books, Plan, Side};
use crate::day::{Day, DayOptions};
use crate::frames::{Deframer, Form};
use crate::homes::{Visitor, with_books};
use crate::itch::{Malformed, parse};
use crate::naive::{Naive, NaiveOrder};
use crate::places::{Home, Places};
use crate::random::Random;

/// The most orders that may be live in a small day.
const MOST: usize = 600;

/// Damaged copies of each day.
const DAMAGED: usize = 12;

/// What was compared.
#[derive(Clone, Copy, Debug, Default)]
pub struct Checked {
    pub days: u64,
    pub messages: u64,
    /// Moments at which all queues of all books were compared.
    pub moments: u64,
    /// Damaged days, and how many of them both refused.
    pub damaged: u64,
    pub refused: u64,
}

/// Compares that many days from this seed on.
///
/// # Errors
/// The seed of the first day that differs, and where.
pub fn check(days: u64, seed: u64, homes: &[Home]) -> Result<Checked, String> {
    let arena = ArenaVm::create(ArenaVmOptions::default()).map_err(|error| error.to_string())?;
    let mut checked = Checked::default();
    for day in 0..days {
        let seed = seed.wrapping_add(day);
        let home = homes[day as usize % homes.len()];
        let plan = Plan { orders: MOST, levels: MOST };
        let visit = CheckDay { seed, checked: &mut checked };
        with_books(home, &arena, [plan, plan], visit)?
            .map_err(|difference| format!("seed {seed}, {home}: {difference}"))?;
        checked.days += 1;
    }
    Ok(checked)
}

struct CheckDay<'c> {
    seed: u64,
    checked: &'c mut Checked,
}

impl Visitor for CheckDay<'_> {
    type Out = Result<(), String>;

    fn visit<P: Places>(self, [mut books, _]: [Books<P>; 2]) -> Result<(), String> {
        let mut random = Random::new(!self.seed);
        let options = DayOptions {
            seed: self.seed,
            messages: 50 + random.below(3_000),
            live: random.below(200) as usize,
            symbols: 1 + random.below(6) as u16,
        };
        let mut file = Vec::new();
        Day::new(options).fill(&mut file, usize::MAX);
        let verdict = compare(&file, &mut books, &mut random, self.checked)?;
        if let Some(refused) = verdict {
            return Err(format!("the day itself is refused: {refused}"));
        }
        for _ in 0..DAMAGED {
            let mut damaged = file.clone();
            damage(&mut damaged, &mut random);
            books.clear();
            self.checked.damaged += 1;
            self.checked.refused +=
                u64::from(compare(&damaged, &mut books, &mut random, self.checked)?.is_some());
        }
        Ok(())
    }
}

/// Damages a file in one of the ways in which files are.
fn damage(file: &mut Vec<u8>, random: &mut Random) {
    let at = random.below(file.len() as u64) as usize;
    match random.below(5) {
        0 => file.truncate(at),
        1 => file[at] ^= 1 << random.below(8),
        2 => {
            let end = (at + 1 + random.below(60) as usize).min(file.len());
            file.drain(at..end);
        }
        3 => file.insert(at, random.bits() as u8),
        _ => {
            // Some messages again.
            let end = (at + random.below(200) as usize).min(file.len());
            let again = file[at..end].to_vec();
            file.splice(at..at, again);
        }
    }
}

/// Reads a file twice, and compares. Returns how both refused it, if they did.
fn compare<P: Places>(
    file: &[u8],
    books: &mut Books<P>,
    random: &mut Random,
    checked: &mut Checked,
) -> Result<Option<&'static str>, String> {
    let mut naive = Naive::new(MOST);
    let mut deframer = Deframer::new(Form::File);
    let mut frames = deframer.frames(file, 0);
    loop {
        let expected = naive.step(file);
        let number = naive.messages;
        let found = frames.next().map(|frame| {
            let framed = frame.map_err(|(_, fault)| fault.name())?;
            let message = parse(framed.bytes).map_err(|malformed| match malformed {
                Malformed::Empty => "empty",
                Malformed::Type(_) => "type",
                Malformed::Length { .. } => "length",
            })?;
            books.apply(&message).map_err(|refused| refused.name())
        });
        if found != expected {
            return Err(format!("message {number}: {found:?}, and {expected:?} is right"));
        }
        if !matches!(found, Some(Ok(()))) || random.below(500) == 0 {
            compare_books(books, &naive).map_err(|difference| format!("message {number}: {difference}"))?;
            checked.moments += 1;
        }
        match found {
            Some(Ok(())) => checked.messages += 1,
            Some(Err(name)) => return Ok(Some(name)),
            None => return Ok(None),
        }
    }
}

/// Compares every queue of every book.
fn compare_books<P: Places>(books: &Books<P>, naive: &Naive) -> Result<(), String> {
    books.check()?;
    let mut orders = 0;
    for ((locate, side), queues) in &naive.books {
        let side_of = if *side == b'B' { Side::Buy } else { Side::Sell };
        let found = books.queue(*locate, side_of);
        let found: Vec<_> =
            found.map(|(price, order)| (price, NaiveOrder { id: order.id, shares: order.shares })).collect();
        let levels: Box<dyn Iterator<Item = _>> =
            if *side == b'B' { Box::new(queues.iter().rev()) } else { Box::new(queues.iter()) };
        let expected: Vec<_> =
            levels.flat_map(|(price, queue)| queue.iter().map(|order| (*price, *order))).collect();
        orders += expected.len();
        if found != expected {
            return Err(format!("stock {locate}, {side_of:?}: {found:?}, and {expected:?} is right"));
        }
        let (best, best_expected) = (books.best(*locate, side_of), expected.first());
        if best.map(|depth| depth.price) != best_expected.map(|(price, _)| *price) {
            return Err(format!(
                "stock {locate}: the best price is {best:?}, and {best_expected:?} is right"
            ));
        }
    }
    // None in a book that the naive ones do not have.
    if orders != books.len() {
        return Err(format!("{} orders, and {orders} are right", books.len()));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// (design/exchange.md `.req.right`, `.req.damage`)
    #[test]
    fn days_are_what_the_specification_says() {
        let homes = [Home::Pools, Home::Hand, Home::Point, Home::Owned, Home::System];
        let checked = check(30, 1, &homes).unwrap();
        assert!(checked.messages > 30_000 && checked.moments > 300, "{checked:?}");
        assert!(checked.refused > 100, "{checked:?}");
    }

    /// A book that forgets that a replaced order loses its place is found.
    #[test]
    fn a_difference_is_found() {
        let mut file = Vec::new();
        Day::new(DayOptions { seed: 3, messages: 400, live: 50, symbols: 2 }).fill(&mut file, usize::MAX);
        let mut books = crate::homes::by_hand(Plan::of_live(MOST));
        let mut naive = Naive::new(MOST);
        for frame in Deframer::new(Form::File).frames(&file, 0) {
            let framed = frame.unwrap();
            books.apply(&parse(framed.bytes).unwrap()).unwrap();
            assert_eq!(naive.step(&file), Some(Ok(())));
            if books.len() >= 20 {
                break;
            }
        }
        assert_eq!(compare_books(&books, &naive), Ok(()));
        let queue =
            naive.books.values_mut().flat_map(|queues| queues.values_mut()).find(|queue| !queue.is_empty());
        queue.unwrap()[0].shares += 1;
        assert!(compare_books(&books, &naive).is_err());
    }
}
