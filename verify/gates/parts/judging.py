"""What does not hold in a report of the order book (design/gates.md `.judge`)."""

import json
import math
import os

# What the steady part must not have asked for. Fills are judged apart: a quiet moment has one.
ZEROS = ["arena_growth_bytes", "global_allocator_calls", "minor_page_faults", "major_page_faults"]
# How many times as high as the baseline each latency may be.
LATENCIES = ["p99", "p999", "p9999"]
LATENCY_ALLOWED = "2 5 10"


class Unread(Exception):
    """Something cannot be read, and so is not judged."""


def refuse(constant):
    raise ValueError(f"{constant} is no number")


def read(path):
    """The one report in a file."""
    try:
        report = json.loads(path.read_text(), parse_constant=refuse)
    except (OSError, ValueError) as error:
        raise Unread(f"{path} cannot be read: {error}") from error
    if not isinstance(report, dict):
        raise Unread(f"{path} is no report")
    return report


def part(report, *keys):
    """A part of a report, or `None` if it has none."""
    for key in keys:
        report = report.get(key) if isinstance(report, dict) else None
    return report


def is_number(value):
    """Whether it is a finite number that is not below 0; `true` is none."""
    return type(value) in (int, float) and 0 <= value < math.inf


def is_count(value):
    """Whether it is a whole number that is not below 0."""
    return type(value) is int and value >= 0


def is_texts(value):
    return isinstance(value, list) and all(isinstance(text, str) for text in value)


def number(report, *keys):
    """A number of a report, or `None` if it has none there."""
    value = part(report, *keys)
    return value if is_number(value) else None


def numbers(report, *keys):
    """The numbers of a part of a report, by name, or `None` if it has no such part."""
    values = part(report, *keys)
    return {key: value for key, value in values.items() if is_number(value)} if isinstance(values, dict) else None


def at_most(value, most):
    """Whether both are numbers, and the first is not above the second."""
    return is_number(value) and is_number(most) and value <= most


def count_at_most(value, most):
    """Whether both are counts, and the first is not above the second."""
    return is_count(value) and is_count(most) and value <= most


def slower(report, baseline):
    """The latencies that are too far above those of a baseline."""
    try:
        allowed = [float(times) for times in os.environ.get("LATENCY_ALLOWED", LATENCY_ALLOWED).split()]
    except ValueError as error:
        raise Unread(f"LATENCY_ALLOWED cannot be read: {error}") from error
    if len(allowed) != len(LATENCIES) or not all(map(is_number, allowed)):
        raise Unread(f"LATENCY_ALLOWED needs {len(LATENCIES)} numbers, for {', '.join(LATENCIES)}")
    found = []
    for key, times in zip(LATENCIES, allowed):
        now, base = part(report, "latency_ns", key), part(baseline, "latency_ns", key)
        if not is_number(base):
            raise Unread(f"the baseline has no {key}")
        if not at_most(now, times * base):
            found.append(f"latency: {key} is {json.dumps(now)} ns, above {times:g} times {base} ns")
    return found


def faults(report, baseline=None, seconds=None):
    """What does not hold, a line each. What is missing does not hold. With `seconds` a steady part that did not last
    that long does not hold."""
    contract, steady = part(report, "contract"), part(report, "steady")
    violations, fills = part(contract, "violations"), part(steady, "fills")
    entered, budget = (part(contract, "amnesties", key) for key in ("entered", "budget"))
    detectors, lasted = part(contract, "live_detectors"), part(report, "steady_seconds")
    shown = json.dumps
    checks = [
        (part(contract, "armed") is True, "the contract was never armed"),
        (detectors and is_texts(detectors), f"live detectors: {shown(detectors)}"),
        (count_at_most(1, part(report, "steady_messages")), "no record came after the warm-up"),
        (part(report, "book_matches_reference") is True, "the book differs from the reference"),
        (count_at_most(part(contract, "alarms"), 0), f"alarms: {shown(part(contract, 'alarms'))}"),
        (isinstance(violations, list), "violations are not in the report"),
        (not violations, f"violations: {len(violations) if isinstance(violations, list) else shown(violations)}"),
        (count_at_most(part(contract, "records_lost"), 0), f"records lost: {shown(part(contract, 'records_lost'))}"),
        (count_at_most(entered, budget), f"amnesties: {shown(entered)} of {shown(budget)}"),
        (count_at_most(fills, entered), f"fills: {shown(fills)}, in {shown(entered)} amnesties"),
        *((count_at_most(part(steady, key), 0), f"{key}: {shown(part(steady, key))}") for key in ZEROS),
        (at_most(seconds or 0, lasted), f"steady part: {shown(lasted)} s, and {seconds or 0} s were asked for"),
    ]
    found = [text for holds, text in checks if not holds]
    return found + (slower(report, baseline) if baseline is not None else [])


def violations(report):
    """The violations by thread, class and site, a line each, the most frequent first."""
    rows = {}
    listed = part(report, "contract", "violations")
    for violation in listed if isinstance(listed, list) else []:
        key = tuple(str(part(violation, name)) for name in ("thread", "class", "site"))
        sums = zip(rows.get(key, (0, 0)), (part(violation, name) for name in ("count", "bytes")))
        rows[key] = tuple(before + (more if is_count(more) else 0) for before, more in sums)
    ordered = sorted(rows.items(), key=lambda row: -row[1][0])
    return [
        f"  thread {thread}: {class_} x{count}, {size} bytes, in {site}"
        for (thread, class_, site), (count, size) in ordered
    ]
