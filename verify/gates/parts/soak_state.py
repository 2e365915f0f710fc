"""What a soak keeps of its rounds, so that one that was interrupted goes on where it was."""

import json
import os
import secrets

from parts import folders

STATE = "state.json"
# Seeds are small enough for every reader of JSON.
SEEDS = 2**48


class Refused(Exception):
    """The soak cannot go on as it is asked to."""


def read(folder):
    """The state of a soak, by its folder."""
    try:
        return json.loads((folder / STATE).read_text())
    except (OSError, ValueError) as error:
        raise Refused(f"{folder / STATE} cannot be read: {error}") from error


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


def begin(parent, settings, seed):
    """A soak without rounds. Returns its folder and state."""
    seed = secrets.randbelow(SEEDS) if seed is None else seed
    folder = folders.create(parent, f"seed-{seed}")
    state = {"seed": seed, "settings": settings, "rounds": []}
    write(folder, state)
    return folder, state


def go_on(parent, settings, seed):
    """The last soak, if it was interrupted, or else a new one. Returns its folder and state."""
    for folder in soaks(parent)[-1:]:
        state = read(folder)
        if is_over(state):
            continue
        wanted = settings | {"seed": state["seed"] if seed is None else seed}
        there = state["settings"] | {"seed": state["seed"]}
        others = [f"{name} {there.get(name)}" for name in wanted if there.get(name) != wanted[name]]
        if others:
            done = f"{len(state['rounds'])} of {state['settings']['rounds']} rounds"
            raise Refused(
                f"{folder} was interrupted after {done}, and has other settings: {', '.join(others)}. Use these to go "
                "on with it, or --anew to begin another"
            )
        return folder, state
    return begin(parent, settings, seed)
