"""Makes formulas of state machines, and asks Z3 about each step (design/proofs.md `.proof.reader`)."""

import re
from dataclasses import dataclass, field

import z3
from reader import Parser, Refused

# What an assertion is called, before the name of its theorem.
ASSERTION = "the assertion of"
# The comment that names the theorem of an assertion, or of a part of `theorems`.
THEOREM = re.compile(r"// ([A-Z]\d)\b")
# The seconds in which a contradiction in what is given would be found.
HASTE = 2


@dataclass
class Type:
    """A type of the model: its sort, and the types of its parts."""

    name: str
    sort: object
    parts: dict = field(default_factory=dict)


@dataclass
class Value:
    """A term with its type."""

    type: Type
    term: object


INT, BOOL = Type("int", z3.IntSort()), Type("bool", z3.BoolSort())


class Machine:
    """A model: its types and functions."""

    def __init__(self, text):
        self.text = text
        self.structs, self.enums, functions = Parser(text).items()
        self.functions = {function.name: function for function in functions}
        if len(self.functions) < len(functions):
            raise Refused("two functions have one name")
        self.types = {}
        self.fresh = 0

    def steps(self):
        """The functions that return the next state."""
        return [function for function in self.functions.values() if function.ensures]

    def theorem_at(self, at):
        """The theorem that the last comment names which a function has before a place in the text."""
        found = THEOREM.findall(self.text, self.text.rindex("fn ", 0, at), at)
        if not found:
            raise Refused(f"what is no theorem: {self.text[at : at + 60]!r}")
        return found[-1]

    def theorems_of(self, state):
        """The theorems of each state, by name, as formulas of this one."""
        tree = self.functions[f"{state.type.name}::theorems"].body[2]
        named = [(self.theorem_at(at), part) for part, at in zip(tree[1], tree[2], strict=True)]
        return [(name, self.boolean(part, {"self": state})) for name, part in named]

    def type(self, of):
        if of not in self.types:
            self.types[of] = self.make_type(of)
        return self.types[of]

    def make_type(self, of):
        name, *parts = of
        if name in ("int", "bool"):
            return INT if name == "int" else BOOL
        if name == "Set":
            key = self.type(parts[0])
            return Type("Set", z3.ArraySort(key.sort, z3.BoolSort()), {"of": key})
        if name in ("Map", "Seq"):
            key, value = (INT, self.type(parts[0])) if name == "Seq" else map(self.type, parts)
            first = ("len", z3.IntSort()) if name == "Seq" else ("dom", z3.ArraySort(key.sort, z3.BoolSort()))
            sort = z3.Datatype(f"{name}{len(self.types)}")
            sort.declare(name, first, ("at", z3.ArraySort(key.sort, value.sort)))
            return Type(name, sort.create(), {"key": key, "of": value})
        if name in self.structs:
            parts = {part: self.type(kind) for part, kind in self.structs[name].items()}
            sort = z3.Datatype(name)
            sort.declare(name, *((part, kind.sort) for part, kind in parts.items()))
            return Type(name, sort.create(), parts)
        if name in self.enums:
            variants = {variant: [self.type(kind) for kind in kinds] for variant, kinds in self.enums[name].items()}
            sort = z3.Datatype(name)
            for variant, kinds in variants.items():
                sort.declare(variant, *((f"{variant}_{i}", kind.sort) for i, kind in enumerate(kinds)))
            return Type(name, sort.create(), variants)
        raise Refused(f"the type {name}")

    # Of the sorts.

    @staticmethod
    def get(value, part):
        """A field of a value of a sort with one constructor."""
        sort = value.type.sort
        names = [sort.accessor(0, i).name() for i in range(sort.constructor(0).arity())]
        if part not in names:
            raise Refused(f"{value.type.name} has no {part}")
        return z3.simplify(sort.accessor(0, names.index(part))(value.term))

    def made(self, kind, first, at):
        return Value(kind, kind.sort.constructor(0)(first, at))

    def constant(self, kind):
        self.fresh += 1
        return z3.Const(f"x{self.fresh}", kind.sort)

    def lengths(self, value):
        """That the sequences in a value have lengths."""
        kind = value.type
        if kind.name == "Seq":
            return [self.get(value, "len") >= 0]
        if kind.name == "Map":
            key = self.constant(kind.parts["key"])
            inner = self.lengths(Value(kind.parts["of"], z3.Select(self.get(value, "at"), key)))
            return [z3.ForAll([key], z3.And(*inner))] if inner else []
        if kind.name in self.structs:
            return [term for part, of in kind.parts.items() for term in self.lengths(Value(of, self.get(value, part)))]
        return []

    # Of expressions.

    def boolean(self, tree, names):
        return self.value(tree, names, BOOL).term

    def value(self, tree, names, wanted=None):
        """The value of a tree. `wanted` is its type, if it is known."""
        return getattr(self, f"of_{tree[0]}")(names, wanted, *tree[1:])

    def of_number(self, names, wanted, number):
        return Value(INT, z3.IntVal(number))

    def of_truth(self, names, wanted, truth):
        return Value(BOOL, z3.BoolVal(truth))

    def of_name(self, names, wanted, name):
        if name not in names:
            raise Refused(f"the name {name}")
        return names[name]

    def of_block(self, names, wanted, statements, result):
        names = dict(names)
        for statement in statements:
            if statement[0] != "let":
                raise Refused("an assertion within an expression")
            names[statement[1]] = self.value(statement[2], names)
        return self.value(result, names, wanted)

    def of_and(self, names, wanted, parts, places=()):
        return Value(BOOL, z3.And(*(self.boolean(part, names) for part in parts)))

    def of_or(self, names, wanted, parts):
        return Value(BOOL, z3.Or(*(self.boolean(part, names) for part in parts)))

    def of_not(self, names, wanted, part):
        return Value(BOOL, z3.Not(self.boolean(part, names)))

    def of_implies(self, names, wanted, left, right):
        return Value(BOOL, z3.Implies(self.boolean(left, names), self.boolean(right, names)))

    def of_compare(self, names, wanted, operator, left, right):
        a = self.value(left, names)
        b = self.value(right, names, a.type)
        if operator == "=~=" and a.type.name != "Set":
            raise Refused(f"=~= of {a.type.name}")
        if operator in ("==", "=~="):
            return Value(BOOL, a.term == b.term)
        if operator == "!=":
            return Value(BOOL, a.term != b.term)
        compared = {"<": a.term < b.term, "<=": a.term <= b.term, ">": a.term > b.term, ">=": a.term >= b.term}
        return Value(BOOL, compared[operator])

    def of_arithmetic(self, names, wanted, operator, left, right):
        a, b = self.value(left, names).term, self.value(right, names).term
        return Value(INT, {"+": a + b, "-": a - b, "*": a * b, "%": a % b}[operator])

    def of_is(self, names, wanted, of, variant):
        value = self.value(of, names)
        variants = list(value.type.parts)
        if value.type.name not in self.enums or variant not in variants:
            raise Refused(f"{value.type.name} is no {variant}")
        return Value(BOOL, value.type.sort.recognizer(variants.index(variant))(value.term))

    def of_part(self, names, wanted, of, part):
        value = self.value(of, names)
        variant, _, number = part.rpartition("_")
        place = list(value.type.parts).index(variant)
        return Value(value.type.parts[variant][int(number)], value.type.sort.accessor(place, int(number))(value.term))

    def of_variant(self, names, wanted, kind, variant, arguments):
        if kind in ("Map", "Set", "Seq") and variant == "empty":
            if wanted is None:
                raise Refused(f"an empty {kind} of an unknown type")
            if kind == "Set":
                return Value(wanted, z3.K(wanted.parts["of"].sort, False))
            key, of = wanted.parts["key"].sort, wanted.parts["of"].sort
            first = z3.IntVal(0) if kind == "Seq" else z3.K(key, False)
            return self.made(wanted, first, z3.K(key, z3.Const(f"any{of}", of)))
        of = self.type((kind,))
        place = list(of.parts).index(variant)
        given = [self.value(tree, names, part).term for tree, part in zip(arguments, of.parts[variant], strict=True)]
        return Value(of, of.sort.constructor(place)(*given))

    def of_build(self, names, wanted, name, given, base):
        of = self.type((name,))
        if unknown := set(given) - set(of.parts):
            raise Refused(f"{name} has no {unknown}")
        before = self.value(base, names, of) if base else None
        terms = [
            self.value(given[part], names, kind).term if part in given else self.get(before, part)
            for part, kind in of.parts.items()
        ]
        return Value(of, of.sort.constructor(0)(*terms))

    def of_field(self, names, wanted, of, part):
        value = self.value(of, names)
        return Value(value.type.parts[part], self.get(value, part))

    def of_index(self, names, wanted, of, index):
        value = self.value(of, names)
        return Value(value.type.parts["of"], z3.Select(self.get(value, "at"), self.value(index, names).term))

    def of_if(self, names, wanted, condition, then, other):
        a = self.value(then, names, wanted)
        b = self.value(other, names, wanted or a.type)
        return Value(a.type, z3.If(self.boolean(condition, names), a.term, b.term))

    def of_seq(self, names, wanted, parts):
        values = [self.value(part, names) for part in parts]
        kind = wanted or next(of for of in self.types.values() if of.name == "Seq" and of.parts["of"] is values[0].type)
        at = z3.K(z3.IntSort(), z3.Const(f"any{kind.parts['of'].sort}", kind.parts["of"].sort))
        for place, value in enumerate(values):
            at = z3.Store(at, place, value.term)
        return self.made(kind, z3.IntVal(len(values)), at)

    def of_trigger(self, names, wanted, of):
        # Z3 chooses by itself.
        return self.value(of, names, wanted)

    def bind(self, bound, names):
        values = [(name, Value(self.type(kind), self.constant(self.type(kind)))) for name, kind in bound]
        return [value.term for _, value in values], {**names, **dict(values)}

    def of_forall(self, names, wanted, bound, body):
        terms, inner = self.bind(bound, names)
        return Value(BOOL, z3.ForAll(terms, self.boolean(body, inner)))

    def function_of(self, tree, names, wanted):
        """A function of one argument, as an array. `wanted` is the type of what it returns, if that is known."""
        _, bound, body = tree
        terms, inner = self.bind(bound, names)
        value = self.value(body, inner, wanted)
        return value.type, z3.Lambda(terms, value.term)

    def of_function(self, names, wanted, name, arguments):
        return self.expand(name, [self.value(argument, names) for argument in arguments])

    def expand(self, name, arguments):
        function = self.functions.get(name)
        if not function or function.requires or function.ensures:
            raise Refused(f"the function {name}")
        names = {parameter: value for (parameter, _), value in zip(function.parameters, arguments, strict=True)}
        return self.value(function.body, names, self.type(function.result))

    def of_call(self, names, wanted, name, of, arguments):
        value = self.value(of, names)
        kind = value.type.name
        if kind in self.structs:
            return self.expand(f"{kind}::{name}", [value, *(self.value(argument, names) for argument in arguments)])
        if (kind, name) == ("Set", "mk_map"):
            return self.set_mk_map(value, names, wanted, *arguments)
        method = getattr(self, f"{kind.lower()}_{name}", None)
        if not method:
            raise Refused(f"{name} of {kind}")
        return method(value, names, *arguments)

    def seq_len(self, value, names):
        return Value(INT, self.get(value, "len"))

    def seq_last(self, value, names):
        return Value(value.type.parts["of"], z3.Select(self.get(value, "at"), self.get(value, "len") - 1))

    def seq_push(self, value, names, last):
        length = self.get(value, "len")
        at = z3.Store(self.get(value, "at"), length, self.value(last, names).term)
        return self.made(value.type, length + 1, at)

    def seq_subrange(self, value, names, first, end):
        first, end = self.value(first, names).term, self.value(end, names).term
        place = z3.Int("place")
        return self.made(value.type, end - first, z3.Lambda([place], z3.Select(self.get(value, "at"), place + first)))

    def seq_add(self, value, names, behind):
        length, behind = self.get(value, "len"), self.value(behind, names, value.type)
        place = z3.Int("place")
        at, further = self.get(value, "at"), self.get(behind, "at")
        joined = z3.Lambda([place], z3.If(place < length, z3.Select(at, place), z3.Select(further, place - length)))
        return self.made(value.type, length + self.get(behind, "len"), joined)

    def set_contains(self, value, names, key):
        return Value(BOOL, z3.Select(value.term, self.value(key, names).term))

    def set_insert(self, value, names, key):
        return Value(value.type, z3.Store(value.term, self.value(key, names).term, True))

    def set_remove(self, value, names, key):
        return Value(value.type, z3.Store(value.term, self.value(key, names).term, False))

    def set_mk_map(self, value, names, wanted, function):
        if wanted is None:
            raise Refused("a map of an unknown type")
        _, at = self.function_of(function, names, wanted.parts["of"])
        return self.made(wanted, value.term, at)

    def map_dom(self, value, names):
        return Value(self.type(("Set", (value.type.parts["key"].name,))), self.get(value, "dom"))

    def map_insert(self, value, names, key, of):
        key = self.value(key, names).term
        at = z3.Store(self.get(value, "at"), key, self.value(of, names, value.type.parts["of"]).term)
        return self.made(value.type, z3.Store(self.get(value, "dom"), key, True), at)

    def map_remove(self, value, names, key):
        dom = z3.Store(self.get(value, "dom"), self.value(key, names).term, False)
        return self.made(value.type, dom, self.get(value, "at"))

    def map_map_values(self, value, names, function):
        _, bound, body = function
        key = self.constant(value.type.parts["key"])
        inner = {**names, bound[0][0]: Value(value.type.parts["of"], z3.Select(self.get(value, "at"), key))}
        return self.made(value.type, self.get(value, "dom"), z3.Lambda([key], self.value(body, inner).term))

    # Of steps.

    def obligations(self, step):
        """What is given in a step, and what has to be shown, one after the other: each with what it is called."""
        names, given = {}, []
        for name, kind in step.parameters:
            names[name] = Value(self.type(kind), z3.Const(name, self.type(kind).sort))
            given += self.lengths(names[name])
        given += [self.boolean(tree, names) for tree in step.requires]
        return given, self.shown_by(step, step.body, names)

    def shown_by(self, step, tree, names):
        """The obligations of a body: under which conditions, what, and its name. Without a step, its assertions alone."""
        kind, *parts = tree
        if kind == "block":
            names, shown = dict(names), []
            for statement in parts[0]:
                if statement[0] == "let":
                    names[statement[1]] = self.value(statement[2], names)
                else:
                    shown.append(([], self.boolean(statement[1], names), f"{ASSERTION} {self.theorem_at(statement[2])}"))
            return shown + self.shown_by(step, parts[1], names)
        if kind == "if":
            condition = self.boolean(parts[0], names)
            then = [([condition, *when], what, name) for when, what, name in self.shown_by(step, parts[1], names)]
            other = [([z3.Not(condition), *when], what, name) for when, what, name in self.shown_by(step, parts[2], names)]
            return then + other
        if not step:
            return []
        after = {"t": self.value(tree, names, self.type(step.result))}
        return [([], part, f"the invariant, {name}") for tree in step.ensures for part, name in self.split(tree, after)]

    def split(self, tree, names):
        """The parts of what has to be shown, as far as they are joined by `and`, each with its place."""
        kind, *parts = tree
        if kind == "call" and not parts[2]:
            value = self.value(parts[1], names)
            function = self.functions.get(f"{value.type.name}::{parts[0]}")
            if function:
                inner = self.split(function.body, {"self": value})
                return [(term, f"{parts[0]} {name}".strip()) for term, name in inner]
        if kind == "block":
            names = dict(names)
            for _, name, value in parts[0]:
                names[name] = self.value(value, names)
            return self.split(parts[1], names)
        if kind == "and":
            split = [(place, term, name) for place, part in enumerate(parts[0], 1) for term, name in self.split(part, names)]
            return [(term, f"{place} {name}".strip()) for place, term, name in split]
        return [(self.boolean(tree, names), "")]

    def proves(self, given, shown, seconds, in_parts=True):
        """Returns what is not shown by what is given, as far as it was found, with what Z3 says of it. What is asserted
        is given for what is shown behind it. If there is no answer, each part is asked for by itself, or not."""
        solver, before, goals = z3.Solver(), [], []
        solver.add(*given)
        solver.set("timeout", HASTE * 1000)
        if in_parts and solver.check() == z3.unsat:
            return ["it is empty: `assert(false)` holds in it"]
        solver.set("timeout", seconds * 1000)
        for when, what, name in shown:
            goals.append((z3.And(*before, *when, z3.Not(what)), name))
            if name.startswith(ASSERTION):
                before.append(z3.Implies(z3.And(*when), what))
        # All at once: that is one question for most steps.
        answer = self.asks(solver, z3.Or(*(goal for goal, _ in goals)))
        if answer is None:
            return []
        if answer != "no answer":
            met = [name for goal, name in goals if z3.is_true(answer.eval(goal, model_completion=True))]
            return [f"{name} (untrue)" for name in met] or ["the invariant (untrue)"]
        if not in_parts:
            return ["the invariant (no answer)"]
        answers = ((self.asks(solver, goal), name) for goal, name in goals)
        return [f"{name} ({'untrue' if answer != 'no answer' else answer})" for answer, name in answers if answer is not None]

    @staticmethod
    def asks(solver, goal):
        """Returns numbers for a goal; `None` if there are none; or that there is no answer."""
        solver.push()
        solver.add(goal)
        answer = solver.check()
        found = None if answer == z3.unsat else solver.model() if answer == z3.sat else "no answer"
        solver.pop()
        return found
