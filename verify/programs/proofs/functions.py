"""The functions of a source file, by name (design/proofs.md `.code`)."""

import re

COMMENT = re.compile(r"//[^\n]*")
# Strings and characters, in which a brace is no brace.
LITERAL = re.compile(r'"(?:\\.|[^"\\])*"|\'(?:\\.[^\']*|[^\'\\])\'', re.S)
ITEM = re.compile(r"\b(?:impl|trait)\b|\bfn\b(?=\s+\w)|[{}]")
TESTS = re.compile(r"#\[cfg\((?:all\()?test\b[^\]]*\]\s*mod\b")


def plain(code):
    """Code with single spaces."""
    return " ".join(code.split())


def end_of_head(text, start):
    """Where the head of an item ends: at a brace, or a semicolon."""
    depth = 0
    for at in range(start, len(text)):
        depth += {"(": 1, "[": 1, ")": -1, "]": -1}.get(text[at], 0)
        if depth == 0 and text[at] in "{;":
            return at
    return len(text)


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


def functions_of(path):
    """The functions of a file that are no tests: their code without comments, by the name of their type and their own."""
    text = COMMENT.sub("", path.read_text())
    tests = TESTS.search(text)
    text = text[: tests.start()] if tests else text
    blank = LITERAL.sub(lambda literal: " " * len(literal[0]), text)
    found, open_items, at = {}, [], 0
    while item := ITEM.search(blank, at):
        at = item.end()
        if item[0] == "{":
            open_items.append(None)
        elif item[0] == "}":
            opened = open_items.pop()
            if opened and opened[0] == "fn":
                _, name, start = opened
                within = [of[1] for of in open_items if of]
                name = "::".join([*within, name])
                # Of two that have one name, both are it.
                found[name] = f"{found[name]} " if name in found else ""
                found[name] += plain(text[start:at])
        else:
            at = end_of_head(blank, item.start())
            head = plain(blank[item.start() : at])
            if blank[at : at + 1] == "{":
                name = re.match(r"fn (\w+)", head)[1] if item[0] == "fn" else name_of(head)
                open_items.append((item[0], name, item.start()))
            at += 1
    return found
