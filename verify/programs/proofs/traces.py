"""Follows traces of a state machine from its beginning, with numbers, and searches for them (design/proofs.md `.empty`)."""

import random
import re

import z3
from machine import ASSERTION, Machine, Value
from reader import Refused

# How many steps a walk has at most, and how many walks a search has.
LENGTH, WALKS = 60, 200
# What numbers a walk tries.
FEW = (0, 1, 2, 3)
CALL = re.compile(r"(\w+)\(([^)]*)\)")


class Step:
    """A step: its parameters, what it requires beside the invariant, and the state that it returns."""

    def __init__(self, machine, function):
        self.name = function.name
        names = {name: z3.Const(name, machine.type(kind).sort) for name, kind in function.parameters}
        values = {name: Value(machine.type(kind), names[name]) for name, kind in function.parameters}
        self.state = names.pop("s", None)
        self.parameters = list(names.values())
        # The invariant holds of each state that a trace leads to: that is what is proved.
        invariant = ("call", "holds", ("name", "s"), [])
        self.requires = z3.And(*(machine.boolean(tree, values) for tree in function.requires if tree != invariant))
        self.result = result_of(machine, function, function.body, values)
        asserts = machine.shown_by(None, function.body, values)
        self.asserts = [(name.removeprefix(ASSERTION).strip(), z3.Implies(z3.And(*when), what)) for when, what, name in asserts]

    def at(self, term, state, arguments):
        known = list(zip(self.parameters, arguments))
        if self.state is not None:
            known.append((self.state, state))
        return z3.simplify(z3.substitute(term, *known))

    def is_possible(self, state, arguments):
        return is_sure(self.at(self.requires, state, arguments))

    def follow(self, state, arguments):
        return settled(self.at(self.result, state, arguments))

    def breaks(self, state, arguments):
        """The theorems whose assertions do not hold in this step."""
        return [name for name, term in self.asserts if is_sure(z3.Not(self.at(term, state, arguments)))]


def settled(term):
    """A term without variables whose sequences and maps are values at each of their places: what led to these is forgotten."""
    if z3.is_quantifier(term) or not term.children():
        return term
    name, parts = term.decl().name(), [settled(part) for part in term.children()]
    if re.fullmatch(r"(Seq|Map)\d+", name) and term.num_args() == 2:
        first, at = parts
        places = range(first.as_long()) if name.startswith("Seq") else keys_of(first)
        fresh = z3.K(at.sort().domain(), z3.Const(f"any{at.sort().range()}", at.sort().range()))
        for place in places:
            fresh = z3.Store(fresh, place, settled(z3.simplify(z3.Select(at, place))))
        parts = [first, fresh]
    return term.decl()(*parts)


def keys_of(keys):
    """The numbers in a set that was made by insertions and removals, the last first."""
    known = {}
    while z3.is_store(keys):
        keys, key, is_in = keys.children()
        known.setdefault(key.as_long(), z3.is_true(is_in))
    return sorted(key for key, is_in in known.items() if is_in)


def is_sure(condition):
    """Whether a condition without variables holds, as far as Z3 finds within two seconds."""
    condition = z3.simplify(condition)
    if z3.is_true(condition) or z3.is_false(condition):
        return z3.is_true(condition)
    # What has a quantifier is left.
    solver = z3.Solver()
    solver.set("timeout", 2000)
    solver.add(z3.Not(condition))
    return solver.check() == z3.unsat


def result_of(machine, function, tree, names):
    """The state that a body returns, without its assertions."""
    kind, *parts = tree
    if kind == "block":
        names = dict(names)
        for statement in parts[0]:
            if statement[0] == "let":
                names[statement[1]] = machine.value(statement[2], names)
        return result_of(machine, function, parts[1], names)
    if kind == "if":
        then, other = (result_of(machine, function, part, names) for part in parts[1:])
        return z3.If(machine.boolean(parts[0], names), then, other)
    return machine.value(tree, names, machine.type(function.result)).term


def number(parameter, text):
    """An argument as it is written in a trace."""
    if z3.is_bool(parameter):
        return z3.BoolVal(text == "true")
    if z3.is_int(parameter):
        return z3.IntVal(int(text))
    given = z3.K(z3.IntSort(), False)
    for part in text.strip("{}").split():
        given = z3.Store(given, int(part), True)
    return given


def draw(parameter, choice):
    if z3.is_bool(parameter):
        return choice.choice(("true", "false"))
    return str(choice.choice(FEW)) if z3.is_int(parameter) else "{1 2}"


class Traces:
    """The steps of a model, to follow."""

    def __init__(self, text):
        self.machine = machine = Machine(text)
        self.names = [function.name for function in machine.steps()]
        self.made = {}
        kind = machine.type(("State",))
        self.any_state = z3.Const("s", kind.sort)
        self.theorems = machine.theorems_of(Value(kind, self.any_state))

    def step(self, name):
        """A step by its name, made when it is asked for first; none if there is none."""
        if name in self.names and name not in self.made:
            self.made[name] = Step(self.machine, self.machine.functions[name])
        return self.made.get(name)

    def follow(self, trace):
        """Returns the steps of a trace, and the theorems that are untrue in its last one."""
        before, state, taken = None, None, []
        for name, given in CALL.findall(trace):
            step, given = self.step(name), [part.strip() for part in given.split(",") if part.strip()]
            if step is None or len(given) != len(step.parameters) or (state is None) != (step.state is None):
                raise Refused(f"{name}({', '.join(given)}) after {len(taken)} steps")
            arguments = [number(parameter, text) for parameter, text in zip(step.parameters, given)]
            if not step.is_possible(state, arguments):
                raise Refused(f"{name}({', '.join(given)}) is not possible after {len(taken)} steps")
            before, state = state, step.follow(state, arguments)
            taken.append(name)
        of_state = ((theorem, z3.substitute(term, (self.any_state, state))) for theorem, term in self.theorems)
        return taken, step.breaks(before, arguments) + [theorem for theorem, term in of_state if is_sure(z3.Not(term))]

    def search(self, missing):
        """Returns traces in which these steps are, as far as they are found, and the steps that are in none."""
        choice, missing, found, counts = random.Random(1), set(missing), [], dict.fromkeys(self.names, 0)
        for _ in range(WALKS):
            state, trace, new = None, [], 0
            for _ in range(LENGTH):
                order = sorted(self.names, key=lambda name: (name not in missing, counts[name] * choice.random()))
                for name in order:
                    step = self.step(name)
                    if (state is None) != (step.state is None):
                        continue
                    tries = [[draw(parameter, choice) for parameter in step.parameters] for _ in range(6 if step.parameters else 1)]
                    for given in tries:
                        arguments = [number(parameter, text) for parameter, text in zip(step.parameters, given)]
                        if step.is_possible(state, arguments):
                            break
                    else:
                        continue
                    state = step.follow(state, arguments)
                    trace.append(f"{name}({', '.join(given)})")
                    counts[name] += 1
                    if name in missing:
                        missing.discard(name)
                        new = len(trace)
                    break
                else:
                    break
            if new:
                found.append("; ".join(trace[:new]))
            if not missing:
                break
        return found, sorted(missing)
