"""What a soak keeps of its rounds, so that one that was interrupted goes on where it was."""

import contextlib
import fcntl
import hashlib
import json
import os
import secrets

from parts import folders, judging

STATE = "state.json"
# What a state has, its settings, and each of its rounds.
OF_STATE = {"seed", "settings", "rounds"}
OF_SETTINGS = {"rounds", "round"}
OF_ROUND = {
    "seed",
    "faults",
    "steady_seconds",
    "steady_messages",
    "latency_ns",
    "baseline_ns",
    "amnesties",
    "resident_kib",
}
# Seeds are small enough for every reader of JSON.
SEEDS = 2**48


class Refused(Exception):
    """The soak cannot go on as it is asked to."""


def has(part, keys):
    return isinstance(part, dict) and keys <= part.keys()


def is_state(state):
    if not has(state, OF_STATE) or not has(state["settings"], OF_SETTINGS) or not isinstance(state["rounds"], list):
        return False
    are_counts = all(judging.is_count(state["settings"][key]) for key in OF_SETTINGS)
    return are_counts and all(has(round_, OF_ROUND) for round_ in state["rounds"])


def read(folder):
    """The state of a soak, by its folder."""
    try:
        state = json.loads((folder / STATE).read_text())
    except (OSError, ValueError) as error:
        raise Refused(f"{folder / STATE} cannot be read: {error}. Use --anew to begin another soak") from error
    if not is_state(state):
        raise Refused(f"{folder / STATE} is no state of a soak. Use --anew to begin another")
    return state


def digest(path):
    """What tells one file from another; `None` if there is none."""
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.exists() else None


@contextlib.contextmanager
def locked(folder):
    """Holds a soak's folder, so that no other process goes on with it."""
    place = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(place, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise Refused(f"{folder} is running. Wait until it ends, or use --anew to begin another") from error
        yield
    finally:
        os.close(place)


def write(folder, state):
    """Writes the state, whole or not at all."""
    new = folder / f"{STATE}.new"
    with open(new, "w") as file:
        json.dump(state, file, indent=1)
        file.flush()
        os.fsync(file.fileno())
    new.replace(folder / STATE)


def soaks(parent):
    """The folders of all soaks, the oldest first."""
    return sorted(state.parent for state in parent.glob(f"*/{STATE}"))


def is_over(state):
    return len(state["rounds"]) >= state["settings"]["rounds"]


@contextlib.contextmanager
def begin(parent, settings, seed):
    """A soak without rounds: its folder, which is held, and its state."""
    seed = secrets.randbelow(SEEDS) if seed is None else seed
    folder = folders.create(parent, f"seed-{seed}")
    with locked(folder):
        state = {"seed": seed, "settings": settings, "rounds": []}
        write(folder, state)
        yield folder, state


@contextlib.contextmanager
def go_on(parent, settings, seed):
    """The last soak, if it was interrupted, or else a new one: its folder, which is held, and its state."""
    with contextlib.ExitStack() as held:
        for folder in soaks(parent)[-1:]:
            held.enter_context(locked(folder))
            state = read(folder)
            if not is_over(state):
                refuse_others(folder, state, settings, seed)
                yield folder, state
                return
        held.close()
        yield held.enter_context(begin(parent, settings, seed))


def refuse_others(folder, state, settings, seed):
    """Refuses to go on with other settings."""
    wanted = settings | {"seed": state["seed"] if seed is None else seed}
    there = state["settings"] | {"seed": state["seed"]}
    others = [f"{name} {there.get(name)}" for name in wanted if there.get(name) != wanted[name]]
    if others:
        done = f"{len(state['rounds'])} of {state['settings']['rounds']} rounds"
        raise Refused(
            f"{folder} has done {done} with other settings: {', '.join(others)}. Use these to go on with it, or --anew "
            "to begin another"
        )
