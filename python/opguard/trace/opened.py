"""Preflight: which files of the tree the program opens to read, sources aside: settings, mostly.

    open("configs/gpt.yaml")               one line of read-4711.txt: the file may matter to the run
    open("out.log", "w")                   none: its own output, and from then on never a setting

One path a line, in `read-<pid>.txt` beside the traces, as they are opened: a program that is killed has left what it
read until then. What it also writes is its own output. Counterexample: files outside of the tree, as a data set
elsewhere; a file that C++ opens, which passes no audit hook. The cost: one look at each open(), and _MOST paths kept at
most."""

import os
import sys

_MOST = 1000  # a data set of single files is no settings


class Opened:
    def __init__(self, folder, tree):
        self.folder, self.tree = folder, tree.rstrip(os.sep) + os.sep
        self.seen, self.busy = set(), False

    def audit(self, event, arguments):
        """sys.addaudithook's: it is called for every event of the interpreter and cannot be taken out again. Our own
        open() is `busy`."""
        if event != "open" or self.busy:
            return
        try:
            self.opened(*arguments)
        except Exception:
            pass  # what an audit hook raises, the program's open() would raise

    def opened(self, path, mode, flags):
        """A path is looked at once, at its first open: one that is written first is noted as seen, and never listed."""
        if not isinstance(path, (str, bytes)) or len(self.seen) >= _MOST:
            return
        path = os.path.realpath(os.fsdecode(path))
        writes = bool(flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT))
        if path in self.seen or not path.startswith(self.tree) or path.endswith((".py", ".pyc")) or "\n" in path:
            return
        self.seen.add(path)
        if writes:
            return
        self.busy = True
        try:
            with open(os.path.join(self.folder, "read-%d.txt" % os.getpid()), "a", encoding="utf-8", errors="surrogateescape") as out:
                out.write(path + "\n")
        finally:
            self.busy = False


def install(folder, tree):
    sys.addaudithook(Opened(folder, tree).audit)
