"""The commands that pip puts on PATH: each becomes the program inside this package, under the name it was called by.

    opguard diff A B -- python train.py      this script, then execv: the same process is bin/opguard of the package

Nothing of Python stays, so signals and exit codes are the program's."""
import os
import sys

_PACKAGE = os.path.dirname(os.path.abspath(__file__))


def program():
    """The program that belongs to this package; None where there is none. Of a build folder it is the one that was built with it."""
    for path in (os.path.join(_PACKAGE, "bin", "opguard"), os.path.join(_PACKAGE, "..", "..", "src", "cli", "opguard")):
        if os.access(path, os.X_OK):
            return os.path.normpath(path)
    return None


def main():
    """sys.argv[0] stays the name that was called: an alias in PATH is what the program sees."""
    path = os.path.join(_PACKAGE, "bin", "opguard")
    try:
        os.execv(path, sys.argv)
    except OSError as error:
        sys.exit(f"opguard: {path}: {error.strerror}")
