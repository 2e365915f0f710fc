"""The functions of a source file, by name, and what stands beside them (design/proofs.md `.code`)."""

import re

# Comments; and strings and characters, in which a brace is no brace, and two slashes begin no comment.
COMMENT = re.compile(
    r'(?P<comment>//[^\n]*|/\*.*?\*/)|r(?P<hashes>#*)".*?"(?P=hashes)|"(?:\\.|[^"\\])*"|\'(?:\\.[^\']*|[^\'\\])\'', re.S
)
ITEM = re.compile(r"\b(?:impl|trait)\b|\bfn\b(?=\s+\w)|[{}]")
TESTS = re.compile(r"#\[cfg\((?:all\()?test\b[^\]]*\]\s*mod\b")
USE = re.compile(r"\buse\b[^;]*;")
# The name of what stands beside the functions: types, constants, macros, and heads.
BESIDE = "-"


def plain(code):
    """Code with single spaces, and none in a chain of names."""
    return re.sub(r" ?(\.|::) ?", r"\1", " ".join(code.split()))


def blanked(text):
    """A text without its comments, and the same without its strings: each as long as it was."""
    uncommented = COMMENT.sub(lambda found: " " * len(found[0]) if found["comment"] else found[0], text)
    return uncommented, COMMENT.sub(lambda found: " " * len(found[0]), text)


def end_of_head(text, start):
    """Where the head of an item ends: at a brace, or a semicolon."""
    depth = 0
    for at in range(start, len(text)):
        depth += {"(": 1, "[": 1, ")": -1, "]": -1}.get(text[at], 0)
        if depth == 0 and text[at] in "{;":
            return at
    return len(text)


def end_of_item(text, start):
    """Where an item ends: at its last brace, or at a semicolon."""
    at = end_of_head(text, start)
    depth = 0
    for at in range(at, len(text)):
        depth += {"{": 1, "}": -1}.get(text[at], 0)
        if depth == 0:
            break
    return at + 1


def without_generics(head):
    """A head without what is in angle brackets."""
    head = head.replace("->", "  ")
    while (shorter := re.sub(r"<[^<>]*>", "", head)) != head:
        head = shorter
    return head


def name_of(head):
    """The type or the trait that a head is of."""
    words = without_generics(head).split(" where ")[0].split()
    last = words[words.index("for") + 1] if "for" in words else words[1]
    return last.lstrip("&").rpartition("::")[2]


def without_tests(text, blank):
    """The two texts without modules of tests, wherever these stand."""
    while tests := TESTS.search(blank):
        start, end = tests.start(), end_of_item(blank, tests.end())
        text, blank = text[:start] + text[end:], blank[:start] + blank[end:]
    return text, blank


def functions_in(text):
    """The functions of a text that are no tests: their code without comments, with attributes and words in front, by the name
    of their type and their own. And what stands beside them, without what is imported."""
    text, blank = without_tests(*blanked(text))
    found, open_items, at, beside, kept = {}, [], 0, [], 0
    while item := ITEM.search(blank, at):
        at = item.end()
        if item[0] == "{":
            open_items.append(None)
        elif item[0] == "}":
            opened = open_items.pop()
            if opened and opened[0] == "fn":
                _, name, start = opened
                within = [of for of in open_items if of]
                name = "::".join([*(of[1] for of in within), name])
                # Of two that have one name, both are it.
                found[name] = f"{found[name]} " if name in found else ""
                found[name] += plain(text[start:at])
                if all(of[0] != "fn" for of in within):
                    beside.append(text[kept:start])
                    kept = at
        else:
            at = end_of_head(blank, item.start())
            head = plain(blank[item.start() : at])
            if blank[at : at + 1] == "{":
                name = re.match(r"fn (\w+)", head)[1] if item[0] == "fn" else name_of(head)
                start = max(blank.rfind(mark, 0, item.start()) for mark in ";{}") + 1
                open_items.append((item[0], name, start))
            at += 1
    found[BESIDE] = plain(USE.sub("", "".join([*beside, text[kept:]])))
    return found


# A file in which a word of a protocol could hide: functions and what stands beside them have it as often as is said.
SAMPLE = """
use core::ptr;
#[cfg(test)]
mod tests;
const NAME: &str = "// {";
macro_rules! clear { ($of:expr) => { $of.word.close() } }
static CLOSED: fn(&Words) = |all| all.word.close();
#[cfg(feature = "word")]
impl Words {
    /* .word { */ fn chain(&self) { let _ = ('{', r#"" // "#); self
        .fields // {
        .word.close() }
}
#[cfg(all(test, not(loom)))]
mod more { fn unseen(&self) { self.word.close() } }
impl Late for Words { #[cfg(feature = "late")] fn behind(&self) { self.word.close(); } }
"""
HIDDEN = {"Words::chain": 1, "Words::behind": 1, BESIDE: 2}


def misread():
    """What of the sample is not read as it should be."""
    found = functions_in(SAMPLE)
    counts = {name: code.count(".word.close()") for name, code in found.items()}
    conditions = {name: code.count("#[cfg(") for name, code in found.items()}
    wrong = [] if counts == HIDDEN else [f"the sample has its word in {counts}, and not in {HIDDEN}"]
    return wrong + ([] if conditions == {"Words::chain": 0, "Words::behind": 1, BESIDE: 1} else [f"the sample has conditions in {conditions}"])
