"""What the gates are asked for on their command lines."""

import argparse
import re
import signal
import sys

# The exit status after an interruption, as shells have it.
INTERRUPTED = 130
# The exit status if a gate cannot do what it is asked for, as that of wrong arguments.
REFUSED = 2


def number(text):
    """A number above 0."""
    if not re.fullmatch(r"[1-9][0-9]*", text):
        raise argparse.ArgumentTypeError(f"a number above 0 is wanted, not '{text}'")
    return int(text)


def interrupt(*_):
    raise KeyboardInterrupt


def enter(main):
    """Runs a gate. Ctrl-C, SIGTERM and a terminal that closes interrupt it, and it ends what it started."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        # `nohup` has it ignored.
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, interrupt)
    try:
        main()
    except OSError as why:
        print(why, file=sys.stderr)
        sys.exit(REFUSED)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        sys.exit(INTERRUPTED)


def parser():
    """A parser to which a gate adds its options."""
    return argparse.ArgumentParser(usage=argparse.SUPPRESS, add_help=False, allow_abbrev=False)


def parse(parser, doc):
    """The options of a gate, and those after `--`, which are for the book. The help is what the gate says of itself."""
    own = sys.argv[1:]
    of_book = []
    if "--" in own:
        at = own.index("--")
        own, of_book = own[:at], own[at + 1 :]
    if {"-h", "--help"} & set(own):
        print(doc)
        sys.exit(0)
    return parser.parse_args(own), of_book
