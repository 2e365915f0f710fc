"""Reads the part of Verus in which the state machines are written, and refuses everything else (design/proofs.md `.proof.reader`)."""

import re
from dataclasses import dataclass, field

TOKEN = re.compile(
    r"\s+|//[^\n]*|(?P<word>[A-Za-z_]\w*!?(?=\s*\[)|[A-Za-z_]\w*)|(?P<number>\d+)(?:int)?"
    r"|(?P<mark>==>|&&&|=~=|\.\.|->|=>|::|==|!=|<=|>=|&&|\|\||[-+*/%<>=!.,:;|&#(){}\[\]])"
)


class Refused(Exception):
    """Something that this does not understand."""


def tokens_of(text):
    found, at = [], 0
    while at < len(text):
        match = TOKEN.match(text, at)
        if not match:
            raise Refused(f"unknown: {text[at : at + 40]!r}")
        if match.lastgroup:
            found.append((match.lastgroup, match[match.lastgroup], at))
        at = match.end()
    return found


@dataclass
class Function:
    """A function: what it takes, requires and ensures, and its body; where it begins in the text."""

    name: str
    parameters: list
    result: tuple
    requires: list = field(default_factory=list)
    ensures: list = field(default_factory=list)
    body: tuple = None
    at: int = 0


class Parser:
    """Makes trees of text: tuples that begin with what they are."""

    COMPARISONS = ("==", "!=", "<", "<=", ">", ">=", "=~=")

    def __init__(self, text):
        self.tokens = tokens_of(text)
        self.next = 0
        # Whether a brace may begin the fields of a struct here.
        self.may_build = True

    def peek(self, ahead=0):
        place = self.next + ahead
        return self.tokens[place][1] if place < len(self.tokens) else ""

    def take(self, wanted=None):
        kind, text, at = self.tokens[self.next]
        if wanted is not None and text != wanted:
            raise Refused(f"{text!r} instead of {wanted!r} at {at}")
        self.next += 1
        return text

    def skips(self, wanted):
        if self.peek() == wanted:
            self.next += 1
            return True
        return False

    # Items.

    def items(self):
        structs, enums, functions = {}, {}, []
        while self.peek():
            self.skips("pub")
            word = self.take()
            if word == "use":
                while self.take() != ";":
                    pass
            elif word == "verus":
                self.take("!")
                self.take("{")
            elif word == "struct":
                name = self.take()
                structs[name] = self.fields()
            elif word == "enum":
                name = self.take()
                enums[name] = self.variants()
            elif word == "impl":
                of = self.take()
                self.take("{")
                while not self.skips("}"):
                    self.take("spec")
                    functions.append(self.function(of))
            elif word in ("proof", "spec"):
                functions.append(self.function(None))
            elif word == "fn":
                # The program has nothing to do.
                for expected in ("main", "(", ")", "{", "}"):
                    self.take(expected)
            elif word != "}":
                raise Refused(f"an item that begins with {word}")
        return structs, enums, functions

    def type(self):
        name = self.take()
        if not self.skips("<"):
            return (name,)
        of = [self.type()]
        while self.skips(","):
            of.append(self.type())
        self.take(">")
        return (name, *of)

    def fields(self):
        found = {}
        self.take("{")
        while not self.skips("}"):
            self.skips("pub")
            name = self.take()
            self.take(":")
            found[name] = self.type()
            self.skips(",")
        return found

    def variants(self):
        found = {}
        self.take("{")
        while not self.skips("}"):
            name, parts = self.take(), []
            if self.skips("("):
                while not self.skips(")"):
                    parts.append(self.type())
                    self.skips(",")
            found[name] = parts
            self.skips(",")
        return found

    def function(self, of):
        at = self.tokens[self.next][2]
        self.take("fn")
        name = self.take()
        self.take("(")
        parameters = []
        while not self.skips(")"):
            parameter = self.take()
            kind = (of,) if parameter == "self" else self.take(":") and self.type()
            parameters.append((parameter, kind))
            self.skips(",")
        self.take("->")
        if self.skips("("):
            # The name that `ensures` uses.
            self.take()
            self.take(":")
            result = self.type()
            self.take(")")
        else:
            result = self.type()
        found = Function(f"{of}::{name}" if of else name, parameters, result, at=at)
        for word, into in (("requires", found.requires), ("ensures", found.ensures)):
            if self.skips(word):
                self.may_build = False
                while self.peek() not in ("{", "ensures"):
                    into.append(self.expression())
                    self.skips(",")
                self.may_build = True
        found.body = self.block()
        return found

    # Expressions.

    def block(self):
        self.take("{")
        may_build, self.may_build = self.may_build, True
        statements, result = [], None
        while not self.skips("}"):
            if result is not None:
                raise Refused(f"a statement after the result, before {self.peek()}")
            if self.skips("let"):
                name = self.take()
                if self.skips(":"):
                    self.type()
                self.take("=")
                statements.append(("let", name, self.expression()))
                self.take(";")
            elif self.peek() == "assert":
                at = self.tokens[self.next][2]
                self.take()
                self.take("(")
                statements.append(("assert", self.expression(), at))
                self.take(")")
                self.take(";")
            else:
                result = self.expression()
        self.may_build = may_build
        return ("block", statements, result)

    def expression(self):
        if self.peek() == "&&&":
            parts, places = [], []
            while self.peek() == "&&&":
                places.append(self.tokens[self.next][2])
                self.take()
                parts.append(self.implication())
            return ("and", parts, places)
        return self.implication()

    def implication(self):
        left = self.disjunction()
        return ("implies", left, self.implication()) if self.skips("==>") else left

    def disjunction(self):
        parts = [self.conjunction()]
        while self.skips("||"):
            parts.append(self.conjunction())
        return parts[0] if len(parts) == 1 else ("or", parts)

    def conjunction(self):
        parts = [self.comparison()]
        while self.skips("&&"):
            parts.append(self.comparison())
        return parts[0] if len(parts) == 1 else ("and", parts)

    def comparison(self):
        operands, operators = [self.sum()], []
        while True:
            if self.skips("is"):
                operands[-1] = ("is", operands[-1], self.take())
            elif self.peek() in self.COMPARISONS:
                operators.append(self.take())
                operands.append(self.sum())
            else:
                break
        parts = [("compare", operator, *operands[i : i + 2]) for i, operator in enumerate(operators)]
        return operands[0] if not parts else parts[0] if len(parts) == 1 else ("and", parts)

    def sum(self):
        left = self.product()
        while self.peek() in ("+", "-"):
            left = ("arithmetic", self.take(), left, self.product())
        return left

    def product(self):
        left = self.unary()
        while self.peek() in ("*", "%"):
            left = ("arithmetic", self.take(), left, self.unary())
        return left

    def unary(self):
        if self.skips("!"):
            return ("not", self.unary())
        if self.skips("#"):
            for expected in ("[", "trigger", "]"):
                self.take(expected)
            return ("trigger", self.unary())
        if self.skips("forall"):
            bound = self.bound()
            return ("forall", bound, self.expression())
        return self.postfix()

    def bound(self):
        self.take("|")
        bound = []
        while not self.skips("|"):
            name = self.take()
            self.take(":")
            bound.append((name, self.type()))
            self.skips(",")
        return bound

    def arguments(self, end):
        found = []
        may_build, self.may_build = self.may_build, True
        while not self.skips(end):
            found.append(("lambda", self.bound(), self.expression()) if self.peek() == "|" else self.expression())
            self.skips(",")
        self.may_build = may_build
        return found

    def postfix(self):
        value = self.primary()
        while True:
            if self.skips("."):
                name = self.take()
                value = ("call", name, value, self.arguments(")")) if self.skips("(") else ("field", value, name)
            elif self.skips("->"):
                value = ("part", value, self.take())
            elif self.skips("["):
                (index,) = self.arguments("]")
                value = ("index", value, index)
            elif self.peek() == "as":
                self.take()
                self.type()
            else:
                return value

    def primary(self):
        kind, text, at = self.tokens[self.next]
        if kind == "number":
            self.take()
            return ("number", int(text))
        if text == "(":
            self.take()
            may_build, self.may_build = self.may_build, True
            value = self.expression()
            self.may_build = may_build
            self.take(")")
            return value
        if text == "{":
            return self.block()
        if text == "if":
            self.take()
            may_build, self.may_build = self.may_build, False
            condition = self.expression()
            self.may_build = may_build
            then = self.block()
            self.take("else")
            return ("if", condition, then, self.primary() if self.peek() == "if" else self.block())
        if text == "match":
            return self.match()
        if kind != "word":
            raise Refused(f"an expression that begins with {text!r} at {at}")
        self.take()
        if text in ("true", "false"):
            return ("truth", text == "true")
        if text == "seq" and self.skips("!"):
            self.take("[")
            return ("seq", self.arguments("]"))
        if text == "seq!":
            self.take("[")
            return ("seq", self.arguments("]"))
        if self.skips("::"):
            name = self.take()
            return ("variant", text, name, self.arguments(")") if self.skips("(") else [])
        if self.peek() == "(":
            self.take()
            return ("function", text, self.arguments(")"))
        if self.peek() == "{" and self.may_build and text[0].isupper():
            return self.build(text)
        return ("name", text)

    def build(self, name):
        self.take("{")
        given, base = {}, None
        while not self.skips("}"):
            if self.skips(".."):
                base = self.expression()
            else:
                part = self.take()
                given[part] = self.expression() if self.skips(":") else ("name", part)
            self.skips(",")
        return ("build", name, given, base)

    def match(self):
        self.take("match")
        self.may_build = False
        of = self.expression()
        self.may_build = True
        self.take("{")
        cases = []
        while not self.skips("}"):
            self.take()
            self.take("::")
            variant = self.take()
            self.take("=>")
            cases.append((variant, self.expression()))
            self.skips(",")
        result = cases[-1][1]
        for variant, value in reversed(cases[:-1]):
            result = ("if", ("is", of, variant), value, result)
        return result
