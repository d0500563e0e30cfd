"""The commands that pip puts on PATH: each becomes the program inside this package, under the name it was called by."""
import os
import sys


def main():
    program = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", "opguard")
    try:
        os.execv(program, sys.argv)
    except OSError as error:
        sys.exit(f"opguard: {program}: {error.strerror}")
