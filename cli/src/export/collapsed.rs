//! One line for each stack, the outermost function first, then its bytes: for flame graphs.

use crate::summary::Stack;

/// The stacks as text.
pub(crate) fn text(stacks: &[Stack]) -> String {
    let mut text = String::new();
    for stack in stacks {
        text.push_str(&plain(&stack.thread));
        for named in stack.outermost_first() {
            text.push(';');
            text.push_str(&plain(&named.function));
        }
        text.push_str(&format!(" {:.0}\n", stack.bytes));
    }
    text
}

/// A name without what separates names and lines.
fn plain(name: &str) -> String {
    name.replace(';', ":").replace(['\n', '\r'], " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_break_lines() {
        assert_eq!(plain("a;b\nc"), "a:b c");
    }
}
