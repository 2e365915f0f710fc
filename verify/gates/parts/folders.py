"""The folders of runs: each run has its own, so that none is written over."""

import itertools
import shutil
import time

# Its presence says that the run did not hold.
FAILURE = "failure.txt"
# How many folders of runs that held are kept.
KEPT = 48


def create(parent, name):
    """A new folder, named by the time, so that names are in the order of the runs."""
    stamp = f"{time.strftime('%Y%m%d-%H%M%S')}-{name}"
    for number in itertools.count(2):
        folder = parent / stamp
        try:
            folder.mkdir(parents=True)
        except FileExistsError:
            stamp = f"{time.strftime('%Y%m%d-%H%M%S')}-{name}-{number}"
        else:
            return folder


def remove_old(folders):
    """Removes the oldest of these that held. Those that did not hold stay until they are removed by hand."""
    held = sorted((folder for folder in folders if not (folder / FAILURE).exists()), key=lambda folder: folder.name)
    for folder in held[:-KEPT]:
        shutil.rmtree(folder)
