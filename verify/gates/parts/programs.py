"""The programs that the gates start, and where they keep what they find."""

import functools
import os
import shlex
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
TARGET = ROOT / (os.environ.get("CARGO_TARGET_DIR") or "target")


def build(package, *options):
    cargo = os.environ.get("CARGO") or "cargo"
    command = [cargo, "build", "--quiet", "--package", package, *options]
    if subprocess.run(command, cwd=ROOT, stdout=sys.stderr).returncode:
        sys.exit(f"{package} was not built: see above")


@functools.cache
def book():
    """The order book: BOOK, or built anew, optimised."""
    if named := os.environ.get("BOOK"):
        return Path(named).resolve()
    build("order-book", "--release")
    return TARGET / "release/order-book"


@functools.cache
def tripoint():
    """The command: TRIPOINT, or built anew, as tests build it, which is fast enough to read what the book writes."""
    if named := os.environ.get("TRIPOINT"):
        return Path(named).resolve()
    build("tripoint-cli", "--bin", "tripoint")
    return TARGET / "debug/tripoint"


def reports():
    """Where reports, traces and baselines are kept: REPORTS, or below the target folder."""
    return Path(os.environ.get("REPORTS") or TARGET / "gates").resolve()


def again(options):
    """The one line that repeats a run of the book."""
    return f"  again: cargo run --release -p order-book -- {shlex.join(map(str, options))}"
