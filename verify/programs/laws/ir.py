"""Functions of LLVM IR without loops, as terms of Z3 (see verify/laws).

All that may go wrong is a term, too: a panic or another call, undefined behaviour, poison that decides something. What is
not understood is `Refused`, never left out.
"""

import re
from dataclasses import dataclass

import z3


class Refused(Exception):
    """What this file does not understand."""


@dataclass
class Number:
    """Bits, and whether they are poison."""

    bits: z3.BitVecRef
    poison: z3.BoolRef


@dataclass
class Pointer:
    """A place in one object, in bytes from its base."""

    thing: str
    offset: z3.BitVecRef
    poison: z3.BoolRef


NEVER, ALWAYS = z3.BoolVal(False), z3.BoolVal(True)
TOKEN = re.compile(r'\s*(%"[^"]*"|@"[^"]*"|[%@!#][-\w.$]+|c"[^"]*"|"[^"]*"|-?\d+|\.\.\.|[\w.]+|[][{}()<>=,:*|])')
# What may stand in front of an operand or a type, and says nothing that is not looked at.
IGNORED = {
    "tail", "musttail", "notail", "noundef", "zeroext", "signext", "nonnull", "dso_local", "noalias", "readonly", "readnone",
    "writeonly", "returned", "nofree", "internal", "private", "hidden", "unnamed_addr", "local_unnamed_addr", "fastcc",
    "coldcc", "immarg", "nocapture", "dead_on_return", "dead_on_unwind", "writable",
}  # fmt: skip
ARGUMENT_NOTES = {"align", "dereferenceable", "captures", "range", "initializes", "sret", "byval", "memory"}
LOGIC = {"and": lambda a, b: a & b, "or": lambda a, b: a | b, "xor": lambda a, b: a ^ b}
COMPARISONS = {
    "eq": lambda a, b: a == b, "ne": lambda a, b: a != b,
    "ult": z3.ULT, "ule": z3.ULE, "ugt": z3.UGT, "uge": z3.UGE,
    "slt": lambda a, b: a < b, "sle": lambda a, b: a <= b, "sgt": lambda a, b: a > b, "sge": lambda a, b: a >= b,
}  # fmt: skip
# The longest copy of memory that is followed, in bytes.
COPY = 1024


def either(*terms):
    """Whether one of the terms holds."""
    terms = [term for term in terms if not z3.is_false(term)]
    return NEVER if not terms else terms[0] if len(terms) == 1 else z3.Or(*terms)


def both(*terms):
    """Whether all of the terms hold."""
    terms = [term for term in terms if not z3.is_true(term)]
    return ALWAYS if not terms else terms[0] if len(terms) == 1 else z3.And(*terms)


def choose(when, one, other):
    """One term or the other."""
    return one if one is other or z3.is_true(when) or one.eq(other) else other if z3.is_false(when) else z3.If(when, one, other)


def flag(term):
    """A condition as a number of one bit."""
    return z3.If(term, z3.BitVecVal(1, 1), z3.BitVecVal(0, 1))


def is_set(number):
    """A number of one bit as a condition."""
    return z3.simplify(number.bits == 1)


def sizes(kind, pointer):
    """The bytes and the alignment of a type in memory."""
    if kind == "ptr":
        return pointer // 8, pointer // 8
    if isinstance(kind, int):
        size = (kind + 7) // 8
        if size & (size - 1):
            raise Refused(f"an i{kind} in memory")
        return size, size
    if kind[0] == "array":
        size, align = sizes(kind[2], pointer)
        return kind[1] * size, align
    raise Refused(f"a {kind} in memory")


class Line:
    """The tokens of an instruction, from the left to the right."""

    def __init__(self, text):
        self.text, self.tokens, at = text, [], 0
        text = text.split(";")[0].rstrip()
        while at < len(text):
            match = TOKEN.match(text, at)
            if not match:
                raise Refused(f"a character: {text[at:]}")
            self.tokens.append(match.group(1))
            at = match.end()
        self.at = 0

    def peek(self):
        return self.tokens[self.at] if self.at < len(self.tokens) else None

    def next(self):
        token = self.peek()
        if token is None:
            raise Refused(f"the end of: {self.text}")
        self.at += 1
        return token

    def take(self, *tokens):
        """Passes one of these tokens, if it is next."""
        if self.peek() in tokens:
            return self.next()
        return None

    def need(self, token):
        if self.next() != token:
            raise Refused(f"no {token} in: {self.text}")

    def group(self):
        """Passes what stands in brackets."""
        self.need("(")
        tokens = []
        while self.peek() != ")":
            tokens += [self.next()] if self.peek() != "(" else ["(", *self.group(), ")"]
        self.next()
        return tokens

    def flags(self, *names):
        """The flags of an instruction."""
        found = set()
        while self.peek() in names:
            found.add(self.next())
        return found

    def kind(self):
        """A type: a number of bits, "ptr", "void", or a tuple."""
        token = self.next()
        if re.fullmatch(r"i\d+", token):
            return int(token[1:])
        if token in ("ptr", "void"):
            return token
        if token == "{":
            parts = []
            while not self.take("}"):
                parts.append(self.kind())
                self.take(",")
            return ("struct", *parts)
        if token == "[":
            count = int(self.next())
            self.need("x")
            inner = self.kind()
            self.need("]")
            return ("array", count, inner)
        raise Refused(f"the type {token} in: {self.text}")

    def notes(self):
        """Passes the attributes of an argument or of a call, and returns its range if it has one."""
        found = None
        while self.peek() in IGNORED or self.peek() in ARGUMENT_NOTES:
            note = self.next()
            if note == "range":
                tokens = self.group()
                found = (int(tokens[1]), int(tokens[3]))
            elif note == "align" and self.peek() != "(":
                self.next()
            elif note in ARGUMENT_NOTES and self.peek() == "(":
                self.group()
        return found


class Function:
    """One function of a module, and what its run may lead to.

    `wrong` has pairs of a condition and what happens then, and `returned` all ends, each with the condition under which it
    is reached. `valid` is what the caller has to see to.
    """

    def __init__(self, module, name):
        self.module, self.name = module, name
        self.values, self.wrong, self.returned, self.valid, self.arguments = {}, [], [], [], []
        self.reached, self.memory, self.sizes, self.fresh = {}, {}, {}, 0
        self.quotients, self.products = {}, {}
        head, *body = module.functions[name]
        self.read_head(head)
        self.blocks = self.split(body)
        for label in self.order():
            self.run(label)

    def read_head(self, text):
        line = Line(text.replace("define ", "", 1))
        line.notes()
        line.kind()
        while not line.peek().startswith("@"):
            line.next()
        line.next()
        line.need("(")
        while not line.take(")"):
            kind = line.kind()
            start = line.at
            bounds = line.notes()
            notes = line.tokens[start:line.at]
            name = line.next()
            if kind == "ptr":
                if "dereferenceable" not in notes:
                    raise Refused(f"a pointer to what has no size: {name}")
                size = int(notes[notes.index("dereferenceable") + 2])
                self.sizes[name] = size
                self.make(name, size)
                self.values[name] = Pointer(name, self.offset(0), NEVER)
                self.arguments.append((name, self.memory[name]))
            elif isinstance(kind, int):
                bits = z3.BitVec(name, kind)
                if bounds:
                    self.valid.append(self.within(bits, bounds))
                self.values[name] = Number(bits, NEVER)
                self.arguments.append((name, bits))
            else:
                raise Refused(f"an argument of type {kind}")
            line.take(",")

    @staticmethod
    def within(bits, bounds):
        """Whether a number is in a range of LLVM's, which may wrap."""
        low, high = (z3.BitVecVal(bound, bits.size()) for bound in bounds)
        up, down = z3.UGE(bits, low), z3.ULT(bits, high)
        return z3.simplify(z3.If(z3.ULT(low, high), z3.And(up, down), z3.Or(up, down)))

    def offset(self, value):
        return z3.BitVecVal(value, self.module.pointer)

    def split(self, body):
        """The blocks of the function, each a list of lines."""
        blocks, label = {}, None
        for text in body:
            if match := re.match(r'^([-\w.$]+|"[^"]*"):', text):
                label = "%" + match.group(1)
                blocks[label] = []
            else:
                if label is None:
                    label = "%0"
                    blocks[label] = []
                blocks[label].append(text.strip())
        self.first = next(iter(blocks))
        return blocks

    def order(self):
        """The blocks, each behind all that lead to it."""
        done, now, order = set(), set(), []

        def visit(label):
            if label in now:
                raise Refused("a loop")
            if label in done:
                return
            now.add(label)
            for successor in re.findall(r'label (%"[^"]*"|%[-\w.$]+)', self.blocks[label][-1]):
                visit(successor)
            now.discard(label)
            done.add(label)
            order.append(label)

        visit(self.first)
        return order[::-1]

    def fail(self, when, what):
        """Notes what goes wrong if a condition holds in this block."""
        when = z3.simplify(both(self.here, when))
        if not z3.is_false(when):
            self.wrong.append((when, what))

    def run(self, label):
        """All of a block, for all paths that lead there."""
        self.label = label
        if label == self.first:
            self.here, self.edges = ALWAYS, {}
        else:
            self.edges = self.reached[label]
            self.here = z3.simplify(either(*(when for when, _ in self.edges.values())))
            (_, self.memory), *others = self.edges.values()
            self.memory = dict(self.memory)
            for when, memory in others:
                for thing, cells in memory.items():
                    before = self.memory.get(thing, cells)
                    self.memory[thing] = before if before is cells else [choose(when, *pair) for pair in zip(cells, before)]
        for text in self.blocks[label]:
            self.instruction(text)

    def leave(self, label, when):
        """A way from this block to another."""
        when, edges = both(self.here, when), self.reached.setdefault(label, {})
        if self.label in edges:
            when = either(when, edges[self.label][0])
        edges[self.label] = (when, self.memory)

    def value(self, line, kind):
        """The next operand, of a type."""
        line.notes()
        token = line.next()
        if token.startswith("%"):
            return self.values[token]
        return self.constant(token, line, kind)

    def constant(self, token, line, kind):
        if isinstance(kind, int):
            if token in ("poison", "undef"):
                return Number(self.unknown(kind), ALWAYS)
            if token in ("true", "false", "zeroinitializer"):
                return Number(z3.BitVecVal(token == "true", kind), NEVER)
            if re.fullmatch(r"-?\d+", token):
                return Number(z3.BitVecVal(int(token), kind), NEVER)
        elif kind[0] == "struct":
            if token in ("poison", "undef", "zeroinitializer"):
                return [self.constant(token, line, part) for part in kind[1:]]
            if token == "{":
                parts = []
                while not line.take("}"):
                    parts.append(self.value(line, line.kind()))
                    line.take(",")
                return parts
        elif kind[0] == "array" and token in ("poison", "undef", "zeroinitializer"):
            return [self.constant(token, line, kind[2]) for _ in range(kind[1])]
        elif kind == "ptr" and token in self.module.constants:
            self.use_constant(token)
            return Pointer(token, self.offset(0), NEVER)
        raise Refused(f"the constant {token} in: {line.text}")

    def use_constant(self, name):
        """A constant of the module, as an object in memory."""
        if name not in self.memory:
            contents = self.module.constants[name]
            self.make(name, len(contents))
            width = self.cell(name)
            parts = [contents[at:at + width] for at in range(0, len(contents), width)]
            self.memory[name] = [z3.BitVecVal(int.from_bytes(part, "little"), 8 * width) for part in parts]

    def make(self, name, size):
        """An object of so many bytes: cells, which are looked at as a whole."""
        self.sizes[name] = size
        width = self.cell(name)
        self.memory[name] = [z3.BitVec(f"{name} {at}", 8 * width) for at in range(0, size, width)]

    def cell(self, name):
        """The bytes of a cell: four, or one in an object of another size."""
        return 4 if self.sizes[name] % 4 == 0 else 1

    def unknown(self, width):
        self.fresh += 1
        return z3.BitVec(f"any {self.fresh}", width)

    def typed(self, line):
        """The next operand, with its type in front."""
        kind = line.kind()
        return self.value(line, kind)

    def pair(self, line):
        """Two operands of one type, and their poison."""
        kind = line.kind()
        if not isinstance(kind, int) and kind != "ptr":
            raise Refused(f"the type {kind} in: {line.text}")
        one = self.value(line, kind)
        line.need(",")
        other = self.value(line, kind)
        if kind == "ptr":
            if one.thing != other.thing:
                raise Refused(f"pointers to two objects in: {line.text}")
            return one.offset, other.offset, either(one.poison, other.poison)
        return one.bits, other.bits, either(one.poison, other.poison)

    def pick(self, when, one, other):
        """One value or the other, of any type."""
        if isinstance(one, list):
            return [self.pick(when, *parts) for parts in zip(one, other)]
        poison = choose(when, one.poison, other.poison)
        if isinstance(one, Pointer):
            if one.thing != other.thing:
                raise Refused("a choice of two objects")
            return Pointer(one.thing, choose(when, one.offset, other.offset), poison)
        return Number(choose(when, one.bits, other.bits), poison)

    def instruction(self, text):
        line = Line(text)
        name = None
        if line.peek().startswith("%"):
            name = line.next()
            line.need("=")
        line.notes()
        operation = line.next()
        handler = getattr(self, "do_" + operation, None)
        if handler:
            result = handler(line)
        elif operation in ("add", "sub", "mul", "shl", "lshr", "ashr", "udiv", "sdiv", "urem", "srem", "and", "or", "xor"):
            result = self.arithmetic(operation, line)
        else:
            raise Refused(f"the instruction {text}")
        if name:
            self.values[name] = result

    def arithmetic(self, operation, line):
        flags = line.flags("nuw", "nsw", "exact", "disjoint")
        a, b, poison = self.pair(line)
        width, zero = a.size(), z3.BitVecVal(0, a.size())
        bad = [poison]
        if operation in ("add", "sub", "mul"):
            result = {"add": a + b, "sub": a - b, "mul": a * b}[operation]
            if operation == "mul":
                # A quotient times what was divided by is all but the rest.
                result = self.products.get((a, b), result)
            bad += [self.overflows(operation, a, b, False)] if "nuw" in flags else []
            bad += [self.overflows(operation, a, b, True)] if "nsw" in flags else []
        elif operation in LOGIC:
            result = LOGIC[operation](a, b)
            bad += [a & b != zero] if "disjoint" in flags else []
        elif operation in ("shl", "lshr", "ashr"):
            result = {"shl": a << b, "lshr": z3.LShR(a, b), "ashr": a >> b}[operation]
            bad.append(z3.UGE(b, width))
            bad += [z3.LShR(result, b) != a] if "nuw" in flags else []
            bad += [result >> b != a] if "nsw" in flags else []
            bad += [result << b != a] if "exact" in flags else []
        elif operation in ("udiv", "urem") and z3.is_bv_value(b) and b.as_long() > 1 and b.as_long() & (b.as_long() - 1):
            quotient, rest = self.divided(a, b)
            result = quotient if operation == "udiv" else rest
            bad += [rest != 0] if "exact" in flags else []
        else:
            result = {"udiv": z3.UDiv(a, b), "sdiv": a / b, "urem": z3.URem(a, b), "srem": z3.SRem(a, b)}[operation]
            self.fail(either(poison, b == zero), "a division by zero")
            if operation[0] == "s":
                self.fail(both(a == z3.BitVecVal(1 << (width - 1), width), b == -1), "a quotient that overflows")
            bad += [result * b != a] if "exact" in flags else []
        return Number(result, z3.simplify(either(*bad)))

    def divided(self, a, b):
        """Quotient and rest for a constant that is no power of two, as the numbers that they are: a product is simpler. The
        lowest bits, of the power of two in the constant, are those of the rest. Both are the same for the same numbers."""
        if (a, b) not in self.quotients:
            width, value = a.size(), b.as_long()
            low = (value & -value).bit_length() - 1
            high, odd = z3.Extract(width - 1, low, a), value >> low
            most = ((1 << high.size()) - 1) // odd
            quotient = z3.ZeroExt(high.size() - most.bit_length(), self.unknown(most.bit_length()))
            rest = z3.ZeroExt(high.size() - odd.bit_length(), self.unknown(odd.bit_length()))
            self.valid += [quotient * odd + rest == high, z3.ULT(rest, odd), z3.ULE(quotient, most), z3.ULE(rest, high)]
            whole = z3.Concat(rest, z3.Extract(low - 1, 0, a)) if low else rest
            self.quotients[a, b] = z3.ZeroExt(low, quotient), whole
            self.products[self.quotients[a, b][0], b] = a - whole
        return self.quotients[a, b]

    @staticmethod
    def overflows(operation, a, b, is_signed):
        if operation == "add":
            holds = [z3.BVAddNoOverflow(a, b, is_signed)] + ([z3.BVAddNoUnderflow(a, b)] if is_signed else [])
        elif operation == "sub":
            holds = [z3.BVSubNoUnderflow(a, b, is_signed)] + ([z3.BVSubNoOverflow(a, b)] if is_signed else [])
        else:
            holds = [z3.BVMulNoOverflow(a, b, is_signed)] + ([z3.BVMulNoUnderflow(a, b)] if is_signed else [])
        return z3.Not(z3.And(*holds))

    def do_icmp(self, line):
        flags = line.flags("samesign")
        comparison = line.next()
        a, b, poison = self.pair(line)
        if flags:
            poison = either(poison, (a < 0) != (b < 0))
        return Number(flag(COMPARISONS[comparison](a, b)), poison)

    def convert(self, line, change):
        flags = line.flags("nneg", "nuw", "nsw")
        value = self.typed(line)
        line.need("to")
        width, bits = line.kind(), value.bits
        result, bad = change(bits, width), [value.poison]
        bad += [bits < 0] if "nneg" in flags else []
        bad += [z3.ZeroExt(bits.size() - width, result) != bits] if "nuw" in flags else []
        bad += [z3.SignExt(bits.size() - width, result) != bits] if "nsw" in flags else []
        return Number(result, z3.simplify(either(*bad)))

    def do_zext(self, line):
        return self.convert(line, lambda bits, width: z3.ZeroExt(width - bits.size(), bits))

    def do_sext(self, line):
        return self.convert(line, lambda bits, width: z3.SignExt(width - bits.size(), bits))

    def do_trunc(self, line):
        return self.convert(line, lambda bits, width: z3.Extract(width - 1, 0, bits))

    def do_select(self, line):
        condition = self.typed(line)
        line.need(",")
        one = self.typed(line)
        line.need(",")
        other = self.typed(line)
        return self.poisoned(self.pick(is_set(condition), one, other), condition.poison)

    def poisoned(self, value, poison):
        """A value that is poison under one more condition."""
        if isinstance(value, list):
            return [self.poisoned(part, poison) for part in value]
        if isinstance(value, Pointer):
            return Pointer(value.thing, value.offset, either(value.poison, poison))
        return Number(value.bits, either(value.poison, poison))

    def do_freeze(self, line):
        value = self.typed(line)
        if not isinstance(value, Number):
            raise Refused(f"to freeze in: {line.text}")
        return Number(choose(value.poison, self.unknown(value.bits.size()), value.bits), NEVER)

    def do_phi(self, line):
        kind, result = line.kind(), None
        while line.take("["):
            value = self.value(line, kind)
            line.need(",")
            edge = self.edges.get(line.next())
            line.need("]")
            line.take(",")
            # A block that no path reaches has no edge.
            if edge:
                result = value if result is None else self.pick(edge[0], value, result)
        return result

    def do_extractvalue(self, line):
        value = self.typed(line)
        while line.take(","):
            value = value[int(line.next())]
        return value

    def do_insertvalue(self, line):
        value = self.typed(line)
        line.need(",")
        part = self.typed(line)
        line.need(",")
        value = list(value)
        value[int(line.next())] = part
        if line.take(","):
            raise Refused(f"an insert deep down in: {line.text}")
        return value

    def do_br(self, line):
        if line.take("label"):
            return self.leave(line.next(), ALWAYS)
        condition = self.typed(line)
        self.fail(condition.poison, "a branch on poison")
        line.need(",")
        line.need("label")
        one = line.next()
        line.need(",")
        line.need("label")
        self.leave(one, is_set(condition))
        self.leave(line.next(), z3.Not(is_set(condition)))

    def do_switch(self, line):
        value = self.typed(line)
        self.fail(value.poison, "a branch on poison")
        line.need(",")
        line.need("label")
        default, rest = line.next(), ALWAYS
        line.need("[")
        while not line.take("]"):
            case = self.typed(line)
            line.need(",")
            line.need("label")
            when = z3.simplify(value.bits == case.bits)
            self.leave(line.next(), when)
            rest = both(rest, z3.Not(when))
        self.leave(default, rest)

    def do_ret(self, line):
        value = self.typed(line)
        self.fail(value.poison, "poison is returned")
        self.returned.append((self.here, value.bits))

    def do_unreachable(self, line):
        self.fail(ALWAYS, "what the compiler takes for impossible")

    def do_call(self, line):
        line.notes()
        bounds = line.notes()
        kind = line.kind()
        callee = line.next()
        if callee == "(":
            raise Refused(f"the call {line.text}")
        if not callee.startswith("@llvm."):
            # A panic, or a function that was not inlined. Nothing behind it is looked at.
            self.fail(ALWAYS, f"a call of {callee}")
            return self.nothing(kind)
        if callee.startswith(("@llvm.experimental.noalias.scope.decl", "@llvm.lifetime")):
            return None
        line.need("(")
        operands = []
        while not line.take(")"):
            part = line.kind() if line.peek() != "metadata" else None
            if part is None:
                raise Refused(f"the call {line.text}")
            operands.append(self.value(line, part))
            line.take(",")
        if "[" in line.tokens[line.at:]:
            raise Refused(f"what else is said of the call {line.text}")
        result = self.intrinsic(callee.split(".")[1:], kind, operands, line)
        if bounds and isinstance(result, Number):
            result.poison = either(result.poison, z3.Not(self.within(result.bits, bounds)))
        return result

    def nothing(self, kind):
        if kind == "void":
            return None
        if isinstance(kind, int):
            return Number(self.unknown(kind), ALWAYS)
        if kind[0] == "struct":
            return [self.nothing(part) for part in kind[1:]]
        return Pointer("nothing", self.offset(0), ALWAYS)

    def intrinsic(self, name, kind, operands, line):
        if name[0] == "assume":
            return self.fail(either(operands[0].poison, z3.Not(is_set(operands[0]))), "what the compiler assumes is untrue")
        if name[0] == "expect":
            return operands[0]
        if name[0] in ("memcpy", "memmove"):
            return self.copy(*operands[:3])
        poison = either(*(operand.poison for operand in operands))
        numbers = [operand.bits for operand in operands]
        a, b = numbers[0], numbers[1] if len(numbers) > 1 else None
        width = a.size()
        if name[1:3] == ["with", "overflow"]:
            operation = name[0][1:]
            result = {"add": lambda: a + b, "sub": lambda: a - b, "mul": lambda: a * b}[operation]()
            overflow = self.overflows(operation, a, b, name[0][0] == "s")
            return [Number(result, poison), Number(flag(z3.simplify(overflow)), poison)]
        if name[0] in ("umin", "umax", "smin", "smax"):
            below = {"u": z3.ULT, "s": lambda a, b: a < b}[name[0][0]](a, b)
            return Number(z3.If(below == (name[0][1:] == "min"), a, b), poison)
        if name[1] == "sat" and name[0] in ("uadd", "usub"):
            if name[0] == "uadd":
                return Number(z3.If(self.overflows("add", a, b, False), z3.BitVecVal(-1, width), a + b), poison)
            return Number(z3.If(z3.ULT(a, b), z3.BitVecVal(0, width), a - b), poison)
        if name[0] in ("ctlz", "cttz"):
            order = range(width) if name[0] == "ctlz" else reversed(range(width))
            result = z3.BitVecVal(width, width)
            for bit in order:
                zeros = width - 1 - bit if name[0] == "ctlz" else bit
                result = z3.If(z3.Extract(bit, bit, a) == 1, z3.BitVecVal(zeros, width), result)
            return Number(result, either(poison, both(is_set(operands[1]), a == 0)))
        if name[0] == "ctpop":
            return Number(self.count_ones(a), poison)
        if name[0] in ("fshl", "fshr"):
            by = z3.URem(numbers[2], z3.BitVecVal(width, width))
            if z3.is_bv_value(z3.simplify(by)):
                by = z3.simplify(by).as_long()
                by = by if name[0] == "fshl" else (width - by) % width
                return Number(z3.Extract(2 * width - 1 - by, width - by, z3.Concat(a, b)), poison)
            wide = z3.Concat(a, b)
            by = z3.ZeroExt(width, by)
            wide = wide << by if name[0] == "fshl" else z3.LShR(wide, by)
            return Number(z3.Extract(2 * width - 1, width, wide) if name[0] == "fshl" else z3.Extract(width - 1, 0, wide), poison)
        if name[0] == "bswap":
            return Number(z3.Concat(*(z3.Extract(at + 7, at, a) for at in range(0, width, 8))), poison)
        if name[0] == "abs":
            return Number(z3.If(a < 0, -a, a), either(poison, both(is_set(operands[1]), a == z3.BitVecVal(1 << (width - 1), width))))
        if name[0] in ("ucmp", "scmp"):
            result = kind
            below = {"u": z3.ULT, "s": lambda a, b: a < b}[name[0][0]](a, b)
            return Number(z3.If(below, z3.BitVecVal(-1, result), z3.If(a == b, z3.BitVecVal(0, result), z3.BitVecVal(1, result))), poison)
        raise Refused(f"the call {line.text}")

    @staticmethod
    def count_ones(bits):
        """How many bits are set: sums of neighbours, and of these."""
        width = bits.size()
        sums = [z3.Extract(bit, bit, bits) for bit in range(width)]
        while len(sums) > 1:
            sums += [z3.BitVecVal(0, sums[0].size())] * (len(sums) % 2)
            sums = [z3.ZeroExt(1, one) + z3.ZeroExt(1, other) for one, other in zip(sums[::2], sums[1::2])]
        return z3.ZeroExt(width - sums[0].size(), sums[0]) if sums[0].size() < width else z3.Extract(width - 1, 0, sums[0])

    # Memory: each object is by itself, and has its bytes.

    def do_alloca(self, line):
        size, _ = sizes(line.kind(), self.module.pointer)
        thing = f"memory {len(self.sizes)}"
        self.make(thing, size)
        return Pointer(thing, self.offset(0), NEVER)

    def do_getelementptr(self, line):
        flags = line.flags("inbounds", "nuw", "nusw")
        kind = line.kind()
        line.need(",")
        base = self.typed(line)
        offset, poison, steps = base.offset, [base.poison], 0
        while line.take(","):
            if steps:
                if kind[0] != "array":
                    raise Refused(f"the place {line.text}")
                kind = kind[2]
            index = self.typed(line)
            size, bits = sizes(kind, self.module.pointer)[0], index.bits
            less = self.module.pointer - bits.size()
            bits = z3.SignExt(less, bits) if less > 0 else z3.Extract(self.module.pointer - 1, 0, bits) if less else bits
            step = bits * size
            if flags:
                poison += [self.overflows("mul", bits, self.offset(size), True)]
            offset = offset + step
            poison.append(index.poison)
            steps += 1
        if flags:
            poison.append(z3.UGT(offset, self.sizes[base.thing]))
        return Pointer(base.thing, z3.simplify(offset), z3.simplify(either(*poison)))

    def outside(self, place, size):
        """Whether bytes are not all in their object. That they are aligned is not looked at."""
        if place.thing not in self.memory:
            raise Refused("memory of no object")
        return either(place.poison, z3.UGT(place.offset, self.sizes[place.thing] - size) if size <= self.sizes[place.thing] else ALWAYS)

    def do_load(self, line):
        if line.take("atomic", "volatile"):
            raise Refused(f"a load: {line.text}")
        kind = line.kind()
        line.need(",")
        place = self.typed(line)
        if kind == "ptr":
            raise Refused(f"a load of a pointer: {line.text}")
        if "!range" in line.tokens:
            raise Refused(f"a load of a range: {line.text}")
        size, _ = sizes(kind, self.module.pointer)
        self.fail(self.outside(place, size), "a load from outside of an object")
        parts = [self.read(place.thing, number) for number in self.cells(place, size)]
        bits = z3.Concat(*reversed(parts)) if len(parts) > 1 else parts[0]
        bits = bits if kind == bits.size() else z3.Extract(kind - 1, 0, bits)
        return Number(bits, NEVER)

    def do_store(self, line):
        if line.take("atomic", "volatile"):
            raise Refused(f"a store: {line.text}")
        kind = line.kind()
        value = self.value(line, kind)
        line.need(",")
        place = self.typed(line)
        if not isinstance(value, Number):
            raise Refused(f"a store of a {kind}: {line.text}")
        self.fail(value.poison, "poison is stored")
        size, _ = sizes(kind, self.module.pointer)
        self.fail(self.outside(place, size), "a store outside of an object")
        bits = z3.ZeroExt(8 * size - kind, value.bits) if 8 * size != kind else value.bits
        width = 8 * self.cell(place.thing)
        for at, number in enumerate(self.cells(place, size)):
            self.write(place.thing, number, z3.Extract(width * (at + 1) - 1, width * at, bits))

    def cells(self, place, size):
        """The numbers of the cells of some bytes."""
        width = self.cell(place.thing)
        if size % width:
            raise Refused(f"a part of {width} bytes of memory")
        self.fail(z3.URem(place.offset, self.offset(width)) != 0, "memory that is not aligned")
        first = z3.UDiv(place.offset, self.offset(width))
        return [z3.simplify(first + at) for at in range(size // width)]

    def read(self, thing, number):
        cells = self.memory[thing]
        if z3.is_bv_value(number):
            return cells[number.as_long()] if number.as_long() < len(cells) else cells[0]
        result = cells[0]
        for at, cell in enumerate(cells[1:], 1):
            result = z3.If(number == at, cell, result)
        return result

    def write(self, thing, number, bits):
        cells = self.memory[thing]
        self.memory[thing] = [choose(z3.simplify(number == at), bits, cell) for at, cell in enumerate(cells)]

    def copy(self, to, source, size):
        length = z3.simplify(size.bits)
        if not z3.is_bv_value(length) or length.as_long() > COPY or self.cell(to.thing) != self.cell(source.thing):
            raise Refused("a copy of memory whose size is not known")
        self.fail(self.outside(to, length.as_long()), "a copy to outside of an object")
        self.fail(self.outside(source, length.as_long()), "a copy from outside of an object")
        parts = [self.read(source.thing, number) for number in self.cells(source, length.as_long())]
        for number, bits in zip(self.cells(to, length.as_long()), parts):
            self.write(to.thing, number, bits)


class Module:
    """A file of LLVM IR: its functions as lines, and its constants as bytes."""

    def __init__(self, text):
        layout = re.search(r'^target datalayout = "([^"]*)"', text, re.M).group(1)
        width = re.search(r"(?:^|-)p:(\d+)", layout)
        self.pointer = int(width.group(1)) if width else 64
        if not layout.startswith("e"):
            raise Refused("a machine whose numbers begin with the highest byte")
        self.functions, self.constants, lines, aliases = {}, {}, None, []
        for line in text.splitlines():
            if line.startswith("define "):
                lines = [line.rstrip(" {")]
                self.functions[re.search(r"@([\w.$]+|\"[^\"]*\")", line).group(1)] = lines
            elif line == "}":
                lines = None
            elif lines is not None and line.strip():
                # A switch goes on until its bracket ends.
                if lines[-1].lstrip().startswith("switch ") and "]" not in lines[-1]:
                    lines[-1] += " " + line.strip()
                elif not line.lstrip().startswith(";") and not line.lstrip().startswith("#dbg"):
                    lines.append(line)
            # Of functions that are alike the compiler keeps one.
            elif match := re.match(r"^@([\w.$]+) = .*\balias .*, ptr @([\w.$]+)", line):
                aliases.append(match.groups())
            elif match := re.match(r'^(@[\w.$]+) = .*constant (?:<\{ )?\[(\d+) x i8\] c"([^"]*)"', line):
                self.constants[match.group(1)] = re.sub(
                    rb"\\([0-9A-F]{2})", lambda code: bytes([int(code.group(1), 16)]), match.group(3).encode("latin-1")
                )
        for name, other in aliases:
            self.functions[name] = self.functions[other]
