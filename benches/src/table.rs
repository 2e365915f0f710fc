//! A table of measurements: in Markdown, in JSON, and as a plot.

use core::fmt::Write;

use crate::standing::Standing;

/// Rows of numbers, each with a name; what was not measured is empty.
#[derive(Clone, Debug)]
pub struct Table {
    title: String,
    columns: Vec<&'static str>,
    rows: Vec<(String, Vec<Option<f64>>)>,
}

impl Table {
    /// A table without rows. The first column is the one that is plotted.
    #[must_use]
    pub fn new(title: impl Into<String>, columns: &[&'static str]) -> Self {
        Self { title: title.into(), columns: columns.to_vec(), rows: Vec::new() }
    }

    /// What contenders took.
    #[must_use]
    pub fn of(title: impl Into<String>, standings: &[Standing]) -> Self {
        let mut table = Self::new(
            title,
            &["ns", "ns, quartiles", "", "ratio", "ratio, quartiles", "", "first, of this", "net"],
        );
        for standing in standings {
            let Standing { nanoseconds: time, ratio, .. } = *standing;
            let gross = Some(1.0 / ratio.median);
            table.add(
                standing.name,
                &[
                    Some(time.median),
                    Some(time.low),
                    Some(time.high),
                    Some(ratio.median),
                    Some(ratio.low),
                    Some(ratio.high),
                    gross,
                    standing.net,
                ],
            );
        }
        table
    }

    /// Adds a row, with a number for each column.
    ///
    /// # Panics
    /// If there are more or fewer.
    pub fn add(&mut self, name: impl Into<String>, numbers: &[Option<f64>]) {
        assert_eq!(numbers.len(), self.columns.len(), "a number for each column");
        self.rows.push((name.into(), numbers.to_vec()));
    }

    /// The table in Markdown.
    #[must_use]
    pub fn markdown(&self) -> String {
        let mut text = format!("\n| {} | {} |\n|---|", self.title, self.columns.join(" | "));
        text.push_str(&"---:|".repeat(self.columns.len()));
        for (name, numbers) in &self.rows {
            let _ = write!(text, "\n| {name} |");
            for number in numbers {
                match number {
                    Some(number) if number.fract() == 0.0 && number.abs() >= 100.0 => {
                        let _ = write!(text, " {number:.0} |");
                    }
                    Some(number) => {
                        let _ = write!(text, " {number:.2} |");
                    }
                    None => text.push_str(" |"),
                }
            }
        }
        text.push('\n');
        text
    }

    /// The table in JSON: an object.
    #[must_use]
    pub fn json(&self) -> String {
        let row = |(name, numbers): &(String, Vec<Option<f64>>)| {
            let numbers: Vec<_> = numbers
                .iter()
                .map(|number| number.map_or("null".to_owned(), |number| format!("{number:.4}")))
                .collect();
            format!("{{\"name\":{name:?},\"numbers\":[{}]}}", numbers.join(","))
        };
        let rows: Vec<_> = self.rows.iter().map(row).collect();
        format!("{{\"title\":{:?},\"columns\":{:?},\"rows\":[{}]}}", self.title, self.columns, rows.join(","))
    }

    /// The first column as a bar for each row, in SVG.
    #[must_use]
    pub fn svg(&self) -> String {
        const LINE: usize = 22;
        let first = |numbers: &[Option<f64>]| numbers.first().copied().flatten().unwrap_or(0.0);
        let most = self.rows.iter().map(|(_, numbers)| first(numbers)).fold(f64::MIN_POSITIVE, f64::max);
        let height = (self.rows.len() + 2) * LINE;
        let mut text = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"860\" height=\"{height}\" font-family=\"sans-serif\" \
             font-size=\"13\">\n<text x=\"10\" y=\"18\" font-weight=\"bold\">{} ({})</text>\n",
            escape(&self.title),
            escape(self.columns.first().copied().unwrap_or_default()),
        );
        for (index, (name, numbers)) in self.rows.iter().enumerate() {
            let (y, number) = ((index + 1) * LINE + 10, first(numbers));
            let width = number / most * 420.0;
            let _ = writeln!(
                text,
                "<text x=\"10\" y=\"{}\">{}</text><rect x=\"360\" y=\"{y}\" width=\"{width:.1}\" height=\"14\" \
                 fill=\"#4878a8\"/><text x=\"{:.1}\" y=\"{}\">{number:.2}</text>",
                y + 12,
                escape(name),
                365.0 + width,
                y + 12,
            );
        }
        text.push_str("</svg>\n");
        text
    }
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// Prints tables, in Markdown.
pub fn print_tables(tables: impl IntoIterator<Item = Table>) {
    tables.into_iter().for_each(|table| print!("{}", table.markdown()));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_written_in_three_forms() {
        let mut table = Table::new("a < b", &["ns", "more"]);
        table.add("one", &[Some(1.5), None]);
        table.add("two", &[Some(3.0), Some(1200.0)]);
        assert_eq!(
            table.markdown(),
            "\n| a < b | ns | more |\n|---|---:|---:|\n| one | 1.50 | |\n| two | 3.00 | 1200 |\n"
        );
        let json = "{\"title\":\"a < b\",\"columns\":[\"ns\", \"more\"],\"rows\":[{\"name\":\"one\",\"numbers\":[1.5000,null]},\
                    {\"name\":\"two\",\"numbers\":[3.0000,1200.0000]}]}";
        assert_eq!(table.json(), json);
        let svg = table.svg();
        assert!(
            svg.contains("a &lt; b (ns)")
                && svg.contains("width=\"210.0\"")
                && svg.contains("width=\"420.0\"")
        );
    }
}
