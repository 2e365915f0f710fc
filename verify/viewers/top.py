"""Watches an order book by `tripoint top`, in a terminal of tmux: see verify/top."""

import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time

COMMAND, BOOK, COLUMNS, LINES = sys.argv[1], sys.argv[2], 110, 24
SERVER = f"tripoint-top-{os.getpid()}"
SHOWN = ": alloc of hot in"


def tmux(*arguments):
    return subprocess.run(["tmux", "-L", SERVER, "-f", "/dev/null", *arguments], check=True, capture_output=True, text=True).stdout


def screen():
    return tmux("capture-pane", "-p")


def until(text, seconds=60):
    """Waits until a text is on the screen; returns when it was seen."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if text in screen():
            return time.monotonic_ns()
        time.sleep(0.002)
    sys.exit(f"'{text}' is not on the screen:\n{screen()}")


class Book:
    """An order book that has made its telemetry, and stands still."""

    def __init__(self, folder, *arguments):
        self.path = os.path.join(folder, "book")
        self.process = subprocess.Popen(
            [BOOK, "--messages", "1000000000", "--telemetry", self.path, "--inject", "alloc", *arguments],
            stdout=subprocess.DEVNULL,
        )
        while not os.path.exists(self.path):
            time.sleep(0.0005)
        self.process.send_signal(signal.SIGSTOP)

    def go_on(self):
        self.process.send_signal(signal.SIGCONT)

    def violated(self, folder):
        """When it violated its contract."""
        capture = os.path.join(folder, "capture")
        subprocess.run([COMMAND, "attach", self.path, "--duration", "200ms", "-o", capture], check=True, stdout=subprocess.DEVNULL)
        with open(capture) as lines:
            return next(line["ns"] for line in map(json.loads, lines) if line.get("event") == "violation")

    def end(self):
        self.process.kill()
        self.process.wait()


class Top:
    def __init__(self, book):
        tmux("new-session", "-d", "-x", str(COLUMNS), "-y", str(LINES), COMMAND, "top", book.path)

    def end(self):
        tmux("kill-server")


def measured(is_first):
    """How long from the violation, or from the start of `top` if that comes later, until it is on the screen, in ms."""
    with tempfile.TemporaryDirectory() as folder:
        book = Book(folder)
        if is_first:
            top = Top(book)
            until("no violation")
            book.go_on()
            begin = None
        else:
            book.go_on()
            time.sleep(3)
            begin = time.monotonic_ns()
            top = Top(book)
        try:
            shown = until(SHOWN)
            return (shown - (begin or book.violated(folder))) / 1e6
        finally:
            book.end()
            top.end()


def times(count):
    for is_first, name in [(True, "from the violation"), (False, "from the start of top, after the violation")]:
        found = sorted(measured(is_first) for _ in range(count))
        print(f"{name}: median {statistics.median(found):.0f} ms, worst {found[-1]:.0f} ms, of {count} runs", flush=True)
        if found[-1] >= 1000:
            sys.exit("that is a second or more")


def plain(text):
    """A screen without what differs from folder to folder, and with one empty line for several."""
    lines = [line.rstrip() for line in text.replace(os.getcwd() + "/", "").strip().splitlines()]
    return "\n".join(line for line, before in zip(lines, [""] + lines) if line or before)


def screens():
    with tempfile.TemporaryDirectory() as folder:
        book = Book(folder, "--sample", "20000")
        top = Top(book)
        try:
            until("no violation")
            book.go_on()
            until(SHOWN)
            time.sleep(1.5)
            for key, name in enumerate(["Contract", "Memory", "Points", "Sites", "Events", "Switches"], 1):
                tmux("send-keys", str(key))
                time.sleep(0.7)
                print(f"--- {name}\n{plain(screen())}\n")
        finally:
            book.end()
            top.end()


if len(sys.argv) > 3:
    times(int(sys.argv[3]))
else:
    screens()
