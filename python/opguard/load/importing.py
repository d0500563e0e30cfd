"""Run something right after a module has been imported, without importing it.

    when_imported("torch", start)      start(torch) runs as `import torch` ends, before the program's next line

Counterexample: to import torch ourselves would cost seconds in a launcher that never needs it. It would change
the order in which the program's own imports run.

The cost: a finder in front of sys.meta_path that answers None, there only while something is awaited."""

import importlib.util
import os
import sys
import threading

from opguard.load import messages


class _Finder:
    """First on sys.meta_path while something is awaited. Finds nothing itself: it asks the others and hangs
    the callbacks on the loader they give, for one execution."""

    def __init__(self):
        self.lock = threading.RLock()
        self.awaited = {}  # module name -> callbacks
        self.asking = threading.local()

    def find_spec(self, name, path=None, target=None):
        if name not in self.awaited or getattr(self.asking, "name", None) == name:
            return None
        self.asking.name = name
        try:
            spec = _ask_others(self, name, path, target)
        finally:
            self.asking.name = None
        if spec is not None and spec.loader is not None:
            self.hang(spec.loader, name)
        return spec

    def hang(self, loader, name):
        """The callbacks run behind the loader's exec_module. A module that fails to import has none, and is awaited
        still."""
        execute = loader.exec_module

        def exec_module(module):
            try:
                del loader.exec_module  # once; a reload is the program's own affair
            except AttributeError:
                pass
            execute(module)
            self.imported(name, module)

        try:
            # On the instance, so that `__loader__` and `__spec__.loader` stay what they would be.
            loader.exec_module = exec_module
        except AttributeError:
            pass  # a loader without instance attributes: `when_imported` does not reach it

    def imported(self, name, module):
        """Each callback once; a finder that nothing awaits takes itself out, so that later imports cost nothing."""
        with self.lock:
            callbacks = self.awaited.pop(name, [])
            if not self.awaited and self in sys.meta_path:
                sys.meta_path.remove(self)
        for callback in callbacks:
            _call(callback, module)


def _ask_others(finder, name, path, target):
    for other in list(sys.meta_path):
        if other is finder or not hasattr(other, "find_spec"):
            continue
        spec = other.find_spec(name, path, target)
        if spec is not None:
            return spec
    return None


def _call(callback, module):
    try:
        callback(module)
    except Exception as error:
        messages.complain("%s: %s: %s" % (module.__name__, type(error).__name__, error))


_finder = _Finder()


def when_imported(name, callback):
    """callback(module) once: when the import of `name` has finished, or now if it has."""
    with _finder.lock:
        module = sys.modules.get(name)
        if module is None or _is_importing(module):
            _finder.awaited.setdefault(name, []).append(callback)
            if _finder not in sys.meta_path:
                sys.meta_path.insert(0, _finder)
            return
    _call(callback, module)


def _is_importing(module):
    return bool(getattr(getattr(module, "__spec__", None), "_initializing", False))


class _Kept:
    """Gives a program that empties sys.modules and imports again (a reloader, a test's isolation) the modules of ours that
    it had. A second copy of the extension would record into nothing. First of the finders, since the package may also be
    installed where the program finds it."""

    def __init__(self, package):
        self.package = package

    def find_spec(self, name, path=None, target=None):
        module = self.kept(name)
        if module is None:
            return None
        return importlib.util.spec_from_loader(name, self, origin=module.__spec__.origin, is_package=hasattr(module, "__path__"))

    def kept(self, name):
        """The module of ours of this name, None: not ours, or never imported so far."""
        first, *rest = name.split(".")
        module = self.package if first == "opguard" else None
        for part in rest:  # a package holds its modules as attributes
            module = getattr(module, part, None)
        # An attribute may be no module: `opguard.name` is a function.
        return module if getattr(module, "__spec__", None) is not None and module.__name__ == name else None

    def create_module(self, spec):
        return self.kept(spec.name)

    def exec_module(self, module):
        pass


def keep(package):
    """From now on the package and its modules are imported as they are."""
    sys.meta_path.insert(0, _Kept(package))


def find_folders(name):
    """The folders (or the single file) of a package, without importing it or its parents: a list, [] if
    there is none. What the program has imported is the authority."""
    module = sys.modules.get(name)
    if module is not None:
        folders = list(getattr(module, "__path__", None) or [])
        if not folders and getattr(module, "__file__", None):
            folders = [module.__file__]
        return folders
    parent, _, last = name.rpartition(".")
    if parent:
        # By name on disk: the import system looks up namespace packages through their imported parent.
        paths = [os.path.join(place, last) for place in find_folders(parent) if os.path.isdir(place)]
        return [p for p in paths if os.path.isdir(p)] or [p + ".py" for p in paths if os.path.isfile(p + ".py")]
    try:
        # Asks the path hooks of editable installs too; a top name imports nothing.
        spec = importlib.util.find_spec(name)
    except (ImportError, ValueError, AttributeError):
        return []
    if spec is None:
        return []
    if spec.submodule_search_locations is not None:
        return list(spec.submodule_search_locations)
    return [spec.origin] if spec.has_location else []
