"""What the rounds of a soak say together: memory, tail latency and amnesties (design/gates.md `.soak.trend`)."""

from parts import arguments, ceiling

# The latencies that are compared with the baseline, and what they are called.
TAILS = {"p999": "p99.9", "p9999": "p99.99"}


def ratio(value, base):
    return round(value / base, 3) if value is not None and base else None


def row(number, round_):
    """What the trend has of a round. Each is compared with the baseline that it had."""
    latency, base = round_["latency_ns"] or {}, round_["baseline_ns"] or {}
    tails = {key: {"ns": latency.get(key), "of_baseline": ratio(latency.get(key), base.get(key))} for key in TAILS}
    kept = {key: round_[key] for key in ("seed", "steady_seconds", "steady_messages", "resident_kib", "amnesties")}
    return {"round": number, "held": not round_["faults"]} | kept | {"latency_ns": tails}


def growth(rows):
    """Memory over the rounds: the highest ceiling of the first third, and the lowest of the last third. Between rounds
    it goes up and down by what they play; what grows is higher at last than it ever was at first."""
    ceilings = [row["resident_kib"]["most"] for row in rows if row["resident_kib"]]
    third = len(ceilings) // 3 or 1
    if len(ceilings) < 2:
        return None
    first, last = max(ceilings[:third]), min(ceilings[-third:])
    return {"first_kib": first, "last_kib": last, "grew": ceiling.grew(first, last)}


def histogram(rows, before):
    """The amnesties by reason: in all, the most in a round, and the mean of a round of the soak before."""
    of_rounds = [row["amnesties"] for row in rows if row["amnesties"]]
    found = {}
    for reason in sorted({reason for amnesties in of_rounds for reason in amnesties}):
        counts = [amnesties.get(reason, 0) for amnesties in of_rounds]
        of_before = (before or {}).get("amnesties", {}).get(reason)
        found[reason] = {
            "total": sum(counts),
            "most": max(counts),
            "mean": round(sum(counts) / len(counts), 3),
            "mean_before": of_before["mean"] if of_before else None,
        }
    return found


def of(state, before=None):
    """The trend of a soak, by its state; `before` is the trend of the soak before."""
    rows = [row(number, round_) for number, round_ in enumerate(state["rounds"], 1)]
    memory = growth(rows)
    faults = []
    if memory and memory["grew"]:
        sizes = f"from {memory['first_kib']} to {memory['last_kib']} KiB"
        faults.append(f"resident memory grew over the rounds, {sizes}")
    return {
        "seed": state["seed"],
        "settings": state["settings"],
        "rounds": rows,
        "resident": memory,
        "amnesties": histogram(rows, before),
        "faults": faults,
    }


def status(trend):
    """The exit status: 1 if something did not hold, and 2 if nothing is wrong yet and rounds are missing."""
    if trend["faults"] or not all(row["held"] for row in trend["rounds"]):
        return 1
    return 0 if 0 < trend["settings"]["rounds"] <= len(trend["rounds"]) else arguments.REFUSED


def table(lines):
    """Columns of equal width, numbers on the right."""
    widths = [max(map(len, column)) for column in zip(*lines)]
    return ["  ".join(cell.rjust(width) for cell, width in zip(line, widths)).rstrip() for line in lines]


def shown(value, form="{}"):
    return "-" if value is None else form.format(value)


def text(trend):
    """The trend to read."""
    rows = trend["rounds"]
    held, settings = sum(row["held"] for row in rows), trend["settings"]
    lines = [["round", "held", "seed", "steady s", "messages", "first KiB", "most KiB"]]
    for name in TAILS.values():
        lines[0] += [f"{name} ns", "of base"]
    for row in rows:
        resident = row["resident_kib"] or {}
        line = [str(row["round"]), "yes" if row["held"] else "NO", str(row["seed"])]
        line += [shown(row["steady_seconds"], "{:.1f}"), shown(row["steady_messages"])]
        line += [shown(resident.get(key)) for key in ("first", "most")]
        for key in TAILS:
            tail = row["latency_ns"][key]
            line += [shown(tail["ns"]), shown(tail["of_baseline"], "{:.2f}")]
        lines.append(line)
    of_rounds = f"{len(rows)} of {settings['rounds']} rounds of {settings['round']} s, {held} held"
    told = [f"soak with seed {trend['seed']}: {of_rounds}", "", *table(lines)]
    if memory := trend["resident"]:
        told += ["", f"memory: at most {memory['first_kib']} KiB at first, at least {memory['last_kib']} KiB at last"]
    if trend["amnesties"]:
        lines = [["amnesties", "total", "most in a round", "mean of a round", "mean in the soak before"]]
        for reason, counts in trend["amnesties"].items():
            means = [shown(counts[key], "{:.1f}") for key in ("mean", "mean_before")]
            lines.append([reason, str(counts["total"]), str(counts["most"]), *means])
        told += ["", *table(lines)]
    told += ["", *trend["faults"]] if trend["faults"] else []
    return "\n".join(told) + "\n"
