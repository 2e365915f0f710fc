"""Whether a run holds, by its report and by its trace; and what is kept of one that does not."""

import subprocess

from parts import folders, judging, programs

# What `tripoint gate` said of each trace.
JUDGED = "gate.txt"
# The exit statuses of `tripoint gate` (design/cli.md `.status`).
WITHIN, OVER = 0, 1
# What it says of a trace that ends before the steady state begins.
BEFORE = "\n  marker: the run was never in its steady state"


def judge_traces(ran):
    """What the traces say against a run: events of hot threads after the marker, or that they were not seen. Returns
    that, and the tables."""
    faults, tables, was_shown = [], [], False
    if ran.uncaptured:
        faults.append(f"trace: not captured: {ran.uncaptured}")
    for trace in ran.traces:
        gate = subprocess.run([programs.tripoint(), "gate", trace], capture_output=True, text=True)
        tables.append(f"{trace.name}: {gate.stdout}{gate.stderr}")
        if gate.returncode == OVER:
            faults.append(f"trace: {trace.name} is over the budget")
        elif gate.returncode != WITHIN:
            # The first ones may end within the warm-up; the last has the whole run's tallies.
            may_be_before = trace != ran.traces[-1] and not was_shown
            if not may_be_before or BEFORE not in gate.stderr:
                faults.append(f"trace: {trace.name} does not show the steady state: {gate.stderr.strip()}")
        was_shown |= gate.returncode in (WITHIN, OVER)
    try:
        (ran.folder / JUDGED).write_text("\n".join(tables))
    except OSError as error:
        faults.append(f"{JUDGED} was not written: {error}")
    return faults, tables


def judge(ran, baseline=None, seconds=None):
    """What does not hold of a run, a line each. Returns that, its report (`None` if there is none) and what tells of
    the faults in tables."""
    faults = [f"exit status {ran.status}"] if ran.status else []
    report, of_report = None, []
    try:
        report = judging.read(ran.report)
        faults += judging.faults(report, baseline, seconds)
        of_report = judging.violations(report)
    except judging.Unread as why:
        faults.append(f"not judged: {why}")
    of_trace, tables = judge_traces(ran)
    return faults + of_trace, report, of_report + (tables if of_trace else [])


def tell_failure(name, folder, faults, tables, options):
    """Prints and keeps what does not hold, where, and how to repeat it."""
    kept = ", ".join(sorted(entry.name for entry in folder.iterdir()))
    lines = [f"FAILED  {name}: {folder}", *faults, *tables, f"  kept: {kept}", programs.again(options)]
    text = "\n".join(lines)
    print(text, flush=True)
    (folder / folders.FAILURE).write_text(text + "\n")
