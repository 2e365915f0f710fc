"""Runs the order book while `tripoint attach` captures it from outside."""

import contextlib
import json
import os
import subprocess
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

from parts import programs

REPORT = "report.json"
# The name of a capture, before its number.
TRACE = "trace-"
# Seconds between two looks at the book and the command.
LOOK = 0.1
# The seconds that a capture may go on if it is not rotated: more than any run.
WHOLE = 1_000_000
# How often a capture has the counters of arenas and pools.
COUNTERS = "1s"
# The seconds that the book has to report after a signal, and a capture to end after the book.
PATIENCE = float(os.environ.get("PATIENCE") or 60)


@dataclass
class Ran:
    """A run that is over."""

    folder: Path
    status: int
    traces: list
    # Why the trace does not reach the end of the run; empty if it does.
    uncaptured: str
    # When it ended, and its resident memory in KiB, with when that was read; both by the monotonic clock.
    end: float
    resident: list = field(default_factory=list)

    @property
    def report(self):
        return self.folder / REPORT


class Capture:
    """The captures of a run, one after the other. Each begins with what the process still has of earlier events, so
    that nothing is lost between two."""

    def __init__(self, telemetry, folder, rotate):
        self.telemetry, self.folder, self.rotate = telemetry, folder, rotate or WHOLE
        self.process, self.traces, self.uncaptured, self.is_over = None, [], "", False
        # What a capture says: files, because a pipe that is full would stop it.
        self.told, self.complaint = (telemetry.with_name(name) for name in ("told", "complaint"))

    def look(self, has_book_ended):
        """Begins a capture when there is telemetry, and the next one when it is time."""
        if self.is_over:
            return
        if self.process is None:
            if self.telemetry.exists():
                self.begin()
            elif has_book_ended:
                self.end("the book ended before it had telemetry")
        elif self.process.poll() is not None:
            if self.process.returncode:
                complaint = self.complaint.read_text(errors="replace").strip()
                self.end(complaint or f"tripoint attach ended with {self.process.returncode}")
                return
            try:
                has_ended = json.loads(self.told.read_text())["has_ended"]
            except (ValueError, KeyError, TypeError):
                self.end("tripoint attach did not say whether the program has ended")
                return
            if has_ended:
                self.end("")
            else:
                self.begin()

    def begin(self):
        trace = self.folder / f"{TRACE}{len(self.traces) + 1}"
        command = [programs.tripoint(), "attach", self.telemetry, "--json", "--duration", f"{self.rotate}s"]
        command += ["--every", COUNTERS, "--output", trace]
        with open(self.told, "w") as told, open(self.complaint, "w") as complaint:
            self.process = subprocess.Popen(command, stdout=told, stderr=complaint)
        self.traces.append(trace)

    def end(self, uncaptured):
        self.uncaptured, self.is_over = uncaptured, True


def resident(process):
    """Resident memory of a process in KiB; `None` once it is over."""
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{process}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1])
    return None


def stop(process):
    """Ends a process that a gate no longer waits for."""
    if process is None or process.poll() is not None:
        return
    process.terminate()
    try:
        process.wait(PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def run(folder, options, rotate=None, period=None):
    """Runs the book to its end, with its report and traces in `folder`. With `rotate` a new trace begins after that
    many seconds; with `period` resident memory is read that often."""
    # A file that is not written back: pages that are fault when they are next written to.
    in_memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(prefix="tripoint-gate-", dir=in_memory if in_memory.is_dir() else None) as place:
        telemetry = Path(place) / "telemetry"
        command = [programs.book(), *options, "--telemetry", telemetry, "--json", folder / REPORT]
        capture, read = Capture(telemetry, folder, rotate), []
        book = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        try:
            end = None
            while end is None or not capture.is_over:
                now = time.monotonic()
                if end is None and book.poll() is not None:
                    end = now
                capture.look(end is not None)
                if end is not None and now - end > PATIENCE and not capture.is_over:
                    capture.end(f"tripoint attach did not end within {PATIENCE:g} s of the program")
                if period and end is None and (not read or now - read[-1][0] >= period):
                    size = resident(book.pid)
                    read += [(now, size)] if size else []
                time.sleep(LOOK)
        finally:
            stop(book)
            stop(capture.process)
    return Ran(folder, book.returncode, capture.traces, capture.uncaptured, end, read)
