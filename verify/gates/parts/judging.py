"""What does not hold in a report of the order book (design/gates.md `.judge`)."""

import json
import os

# What the steady part must not have asked for. Fills are judged apart: a quiet moment has one.
ZEROS = ["arena_growth_bytes", "global_allocator_calls", "minor_page_faults", "major_page_faults"]
# How many times as high as the baseline each latency may be.
LATENCIES = ["p99", "p999", "p9999"]
LATENCY_ALLOWED = "2 5 10"


class Unread(Exception):
    """Something cannot be read, and so is not judged."""


def read(path):
    """The one report in a file."""
    try:
        report = json.loads(path.read_text())
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


def at_most(value, most):
    """Whether both are numbers, and the first is not above the second."""
    return all(isinstance(number, (int, float)) for number in (value, most)) and value <= most


def slower(report, baseline):
    """The latencies that are too far above those of a baseline."""
    try:
        allowed = [float(times) for times in os.environ.get("LATENCY_ALLOWED", LATENCY_ALLOWED).split()]
    except ValueError as error:
        raise Unread(f"LATENCY_ALLOWED cannot be read: {error}") from error
    if len(allowed) != len(LATENCIES):
        raise Unread(f"LATENCY_ALLOWED needs {len(LATENCIES)} numbers, for {', '.join(LATENCIES)}")
    found = []
    for key, times in zip(LATENCIES, allowed):
        now, base = part(report, "latency_ns", key), part(baseline, "latency_ns", key)
        if not isinstance(base, (int, float)):
            raise Unread(f"the baseline has no {key}")
        if not at_most(now, times * base):
            found.append(f"latency: {key} is {json.dumps(now)} ns, above {times:g} times {base} ns")
    return found


def faults(report, baseline=None, seconds=None):
    """What does not hold, a line each. What is missing does not hold. With `seconds` the steady part was to last that
    long."""
    contract, steady = part(report, "contract"), part(report, "steady")
    violations, fills = part(contract, "violations"), part(steady, "fills")
    entered, budget = (part(contract, "amnesties", key) for key in ("entered", "budget"))
    shown = json.dumps
    checks = [
        (part(contract, "armed") is True, "the contract was never armed"),
        (at_most(1, part(report, "steady_messages")), "no record came after the warm-up"),
        (part(report, "book_matches_reference") is True, "the book differs from the reference"),
        (part(contract, "alarms") == 0, f"alarms: {shown(part(contract, 'alarms'))}"),
        (isinstance(violations, list), "violations are not in the report"),
        (not violations, f"violations: {len(violations or [])}"),
        (part(contract, "records_lost") == 0, f"records lost: {shown(part(contract, 'records_lost'))}"),
        (at_most(entered, budget), f"amnesties: {shown(entered)} of {shown(budget)}"),
        (at_most(fills, entered), f"fills: {shown(fills)}, in {shown(entered)} amnesties"),
        *((part(steady, key) == 0, f"{key}: {shown(part(steady, key))}") for key in ZEROS),
    ]
    if seconds is not None:
        lasted = part(report, "steady_seconds")
        checks.append((at_most(seconds, lasted), f"steady part: {shown(lasted)} s, and {seconds} s were asked for"))
    found = [text for holds, text in checks if not holds]
    return found + (slower(report, baseline) if baseline is not None else [])


def violations(report):
    """The violations by thread, class and site, a line each, the most frequent first."""
    rows = {}
    for violation in part(report, "contract", "violations") or []:
        key = tuple(str(violation.get(name)) for name in ("thread", "class", "site"))
        count, size = rows.get(key, (0, 0))
        rows[key] = count + (violation.get("count") or 0), size + (violation.get("bytes") or 0)
    ordered = sorted(rows.items(), key=lambda row: -row[1][0])
    return [
        f"  thread {thread}: {class_} x{count}, {size} bytes, in {site}"
        for (thread, class_, site), (count, size) in ordered
    ]
