"""The folders of runs: each run has its own, so that none is written over."""

import itertools
import shutil
import time

# Its presence says that the run did not hold.
FAILURE = "failure.txt"
# Its presence says that the run is over and held.
HELD = "held"
# How many folders of runs that held are kept.
KEPT = 48


def now():
    return time.strftime("%Y%m%d-%H%M%S", time.gmtime())


def create(parent, name):
    """A new folder, named by the time (UTC), so that names are in the order of the runs."""
    stamp = f"{now()}-{name}"
    for number in itertools.count(2):
        folder = parent / stamp
        try:
            folder.mkdir(parents=True)
        except FileExistsError:
            stamp = f"{now()}-{name}-{number}"
        else:
            return folder


def keep_as_held(folder):
    """Notes that the run of a folder is over and held."""
    (folder / HELD).touch()


def remove_old(folders):
    """Removes the oldest of these that held. Those that did not hold, or were interrupted, stay until they are removed
    by hand."""
    held = sorted((folder for folder in folders if (folder / HELD).exists()), key=lambda folder: folder.name)
    for folder in held[:-KEPT]:
        shutil.rmtree(folder)
