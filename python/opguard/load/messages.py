"""What we have to say to the user of a program that runs under us."""

import sys


def complain(message):
    """One line; a program's own output may be parsed, so never on stdout."""
    try:
        sys.stderr.write("opguard: %s\n" % message)
    except Exception:
        pass  # no usable stderr: nothing more can be said
