//! HTML that is well-formed as XML, too.

use core::fmt::Display;

use crate::plotting::plain;

/// A document that is being written.
pub(super) struct Html(String);

impl Html {
    /// A document with this title, which is its first heading as well.
    pub(super) fn begin(title: &str, style: &str) -> Self {
        let title = escaped(title);
        Self(format!(
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n\
             <meta name=\"viewport\" content=\"width=device-width\"/>\n<title>{title}</title>\n\
             <style>{style}</style>\n</head>\n<body>\n<h1>{title}</h1>\n"
        ))
    }

    /// Adds an element with a text.
    pub(super) fn add(&mut self, element: &str, text: impl Display) {
        let text = escaped(&text.to_string());
        self.add_elements(&format!("<{element}>{text}</{element}>\n"));
    }

    /// Adds elements.
    pub(super) fn add_elements(&mut self, elements: &str) {
        self.0.push_str(elements);
    }

    /// Adds a table: its head, and its rows.
    pub(super) fn add_table(&mut self, head: &[&str], rows: &[Vec<String>]) {
        self.add_elements("<table>\n<tr>");
        head.iter().for_each(|heading| self.add("th", heading));
        self.add_elements("</tr>\n");
        for row in rows {
            self.add_elements("<tr>");
            row.iter().for_each(|cell| self.add("td", cell));
            self.add_elements("</tr>\n");
        }
        self.add_elements("</table>\n");
    }

    /// The whole document.
    pub(super) fn finish(mut self) -> String {
        self.add_elements("</body>\n</html>\n");
        self.0
    }
}

/// A text without what HTML or XML would not take as text.
fn escaped(text: &str) -> String {
    plain(text).replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_program_is_called_is_text() {
        let hostile = "<script>alert('&\"')</script>\u{0}\u{202e}";
        let mut html = Html::begin(hostile, "td { margin: 0; }");
        html.add("p", hostile);
        html.add_table(&["a", hostile], &[vec![hostile.to_owned(), String::new()]]);
        let text = html.finish();
        let options = roxmltree::ParsingOptions { allow_dtd: true, ..Default::default() };
        let document = roxmltree::Document::parse_with_options(&text, options).unwrap();
        let shown = "<script>alert('&\"')</script>\u{fffd}\u{fffd}";
        for element in ["title", "h1", "p", "th", "td"] {
            let known = document.descendants().filter(|node| node.has_tag_name(element));
            assert!(known.filter_map(|node| node.text()).any(|text| text == shown), "{element}: {text}");
        }
        assert!(!document.descendants().any(|node| node.has_tag_name("script")));
    }
}
