"""Which files are the user's source: under the tree or a --with package (docs/design/architecture.md).

    /home/me/train.py                                  under the tree: the user's
    /home/me/.venv/lib/python3.11/site-packages/x.py   under the tree, and other people's
    /usr/lib/python3/dist-packages/timm/layers.py      the user's with --with timm

Links are resolved in folders and not of the file itself: a file that the tree links to is the tree's. The answer is
kept by the code object's file name. Counterexample: "<string>" and the like are nobody's."""

import os
import sys

from opguard.load import importing

_OWN = os.path.dirname(os.path.dirname(os.path.realpath(__file__))) + os.sep  # the package
# Below a root these hold other people's code: a virtual environment inside the tree.
_FOREIGN = (os.sep + "site-packages" + os.sep, os.sep + "dist-packages" + os.sep)


def canonical(path, folder=""):
    """Absolute, with the links of its folders resolved but not its own. A link in the tree to a file
    elsewhere is a file of the tree."""
    path = os.path.join(folder, path)
    return os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))


def _is_under(path, folder):
    return path == folder or path.startswith(folder.rstrip(os.sep) + os.sep)


class Roots:
    def __init__(self, tree, packages, left_out=()):
        self.tree = os.path.realpath(tree)
        self.left_out = left_out  # canonical paths below the tree: code of others, a build
        self.start = os.getcwd()  # relative file names are relative to where the program began
        self.packages = {name: [] for name in packages}  # name -> folders, or one file
        self.confirmed = set()  # packages whose folders the program's own import gave
        self.known = {}  # file name as in the code object -> canonical path, "" if not the user's
        # A virtual environment or an interpreter inside the tree, of whatever layout.
        self.interpreters = [
            prefix + os.sep
            for prefix in {os.path.realpath(sys.prefix), os.path.realpath(sys.base_prefix)}
            if prefix != self.tree and _is_under(prefix, self.tree)
        ]
        for name in self.packages:
            self._locate(name)

    def _locate(self, name):
        folders = [os.path.realpath(f) for f in importing.find_folders(name)]
        if folders:
            self.packages[name] = folders
        if name in sys.modules:
            self.confirmed.add(name)

    def path_of(self, filename):
        """The canonical path of a user's source file, "" for any other."""
        path = self.known.get(filename)
        if path is None:
            # The program may have changed sys.path, or imported the package from elsewhere.
            for name in self.packages:
                if name not in self.confirmed and (name in sys.modules or not self.packages[name]):
                    self._locate(name)
            path = self.known[filename] = self._classify(filename)
        return path

    def _classify(self, filename):
        """The file is tried by its name and, if that is not the user's, by where its link leads."""
        if not filename or filename.startswith("<"):
            return ""
        path = canonical(filename, self.start)
        for candidate in (path, os.path.realpath(path)):
            if candidate.startswith(_OWN):
                return ""
            for folders in self.packages.values():
                if any(_is_under(candidate, folder) for folder in folders):
                    return candidate
            if _is_under(candidate, self.tree):
                below = candidate[len(self.tree.rstrip(os.sep)) :]
                if candidate in self.left_out or any(mark in below for mark in _FOREIGN):
                    continue
                if any(candidate.startswith(prefix) for prefix in self.interpreters):
                    continue
                return candidate
        return ""

    def loaded_files(self):
        """Source files of the user's that are imported now, with the main script."""
        found = set()
        for module in list(sys.modules.values()):
            try:
                filename = module.__file__
            except Exception:
                continue  # lazy modules raise what they like
            if isinstance(filename, str) and filename.endswith(".py"):
                path = self.path_of(filename)
                if path and os.path.isfile(path):  # some modules make their name up
                    found.add(path)
        return found

    def describe(self):
        """`roots` and `missing_packages` of the trace."""
        roots = [{"package": "", "dir": self.tree, "subdir": ""}]
        for name in self.packages:
            self._locate(name)
            depth = name.count(".") + 1
            for folder in self.packages[name]:
                top = folder
                for _ in range(depth):
                    top = os.path.dirname(top)
                # Where folders are not named as the package (an editable install may map any folder),
                # the folder's own name stands.
                if os.path.relpath(folder, top).replace(os.sep, ".") not in (name, name + ".py"):
                    top = os.path.dirname(folder)
                roots.append(
                    {"package": name, "dir": top, "subdir": os.path.relpath(folder, top).replace(os.sep, "/")}
                )
        return roots, [name for name, folders in self.packages.items() if not folders]
