"""The SMT solver Z3, for the checks that ask it."""

import importlib.metadata
import subprocess
import sys

NAME, VERSION = "z3-solver", "4.16.0.0"


def need_z3(work):
    """Installs this version of Z3 with pip in a folder, unless it is there, and has it found before any other. Without it
    nothing is proved: that is a failure."""
    folder = work / "python"
    if version_in(folder) != VERSION:
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--upgrade", "--no-deps", "--only-binary", ":all:"]
        command = [*pip, "--root-user-action", "ignore", "--target", str(folder), f"{NAME}=={VERSION}"]
        if subprocess.run(command, check=False).returncode:
            sys.exit(f"FAILED: {NAME} {VERSION} is needed, and pip does not install it: {' '.join(command)}")
    sys.path.insert(0, str(folder))
    importlib.invalidate_caches()


def version_in(folder):
    """The version of Z3 that is in a folder."""
    found = (of.version for of in importlib.metadata.distributions(name=NAME, path=[str(folder)]))
    return next(found, None)
