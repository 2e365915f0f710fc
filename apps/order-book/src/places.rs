//! Where in the inputs a record is: records are counted through all of them.

use core::fmt;

use crate::failure::Failure;

/// The names of the inputs, and how many records came before each.
#[derive(Clone, Debug, Default)]
pub struct Places {
    names: Vec<String>,
    begins: Vec<u64>,
}

impl Places {
    /// Inputs of these names. Until it is noted, an input has no records.
    pub const fn new(names: Vec<String>) -> Self {
        Self { names, begins: Vec::new() }
    }

    /// Notes that the next input begins after that many records.
    pub fn begin(&mut self, records: u64) {
        self.begins.push(records);
    }

    /// Says where the record is, which is counted from one.
    pub fn of(&self, record: u64) -> impl fmt::Display {
        let (input, line) = self.find(record);
        if self.names.len() > 1 {
            format!("{}: line {line}", self.names[input])
        } else {
            format!("line {line}")
        }
    }

    /// The failure with the name of its input, and the line in it.
    pub fn name(&self, failure: &Failure) -> Failure {
        let (input, line) = failure.line().map_or((self.names.len().max(1) - 1, None), |record| {
            let (input, line) = self.find(record);
            (input, Some(line))
        });
        failure.with_line(line).of_input(self.names.get(input).map_or("", String::as_str))
    }

    fn find(&self, record: u64) -> (usize, u64) {
        let input = self.begins.iter().rposition(|&begin| begin < record).unwrap_or(0);
        (input, record - self.begins.get(input).copied().unwrap_or(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_in_the_input_that_began_last() {
        let mut places = Places::new(vec!["a".to_owned(), "b".to_owned()]);
        [0, 10].into_iter().for_each(|begin| places.begin(begin));
        for (record, place) in [(1, "a: line 1"), (10, "a: line 10"), (11, "b: line 1")] {
            assert_eq!(places.of(record).to_string(), place);
            assert_eq!(
                places.name(&Failure::at_line(record, "wrong")).to_string(),
                format!("{place}: wrong")
            );
        }
        let mut one = Places::new(vec!["a".to_owned()]);
        one.begin(0);
        assert_eq!(one.of(7).to_string(), "line 7");
        assert_eq!(one.name(&Failure::new("wrong")).to_string(), "a: wrong");
    }
}
