"""The ceiling of resident memory."""

# How much it may grow, in percent.
GROWTH_ALLOWED = 2
# What it may always grow by in a round, in KiB: updates that wait for a snapshot are in the reference book's heap, and
# the longest silence may come late.
GROWTH_OF_REFERENCE = 1024


def grew(first, most):
    """Whether memory of that many KiB grew more than is allowed."""
    return most * 100 > first * (100 + GROWTH_ALLOWED)


def in_steady_part(ran, seconds):
    """The readings of a run in its steady part, which lasted that long, in KiB. Its first tenth is left out: books and
    queues fill."""
    return [size for when, size in ran.resident if when >= ran.end - seconds * 0.9]


def faults(sizes):
    """What the readings of a round say against it."""
    if len(sizes) < 2:
        return [f"resident memory was read {len(sizes)} times: too short a round"]
    first, most = sizes[0], max(sizes)
    has_grown = most - first > GROWTH_OF_REFERENCE and grew(first, most)
    return [f"resident memory grew from {first} to {most} KiB"] if has_grown else []
