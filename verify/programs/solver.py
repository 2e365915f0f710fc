"""The SMT solver Z3, for the checks that ask it."""

import importlib
import subprocess
import sys

Z3 = "z3-solver==4.16.0.0"


def need_z3(work):
    """Installs Z3 with pip in a folder, unless it is there, and has it found."""
    folder = work / "python"
    sys.path.insert(0, str(folder))
    try:
        import z3  # noqa: F401
    except ImportError:
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--only-binary", ":all:"]
        subprocess.run([*pip, "--root-user-action", "ignore", "--target", str(folder), Z3], check=True)
        importlib.invalidate_caches()
