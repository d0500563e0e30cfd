"""Instrumented texts are loaded in place of the user's files, and nobody sees it. Names, paths, line numbers,
tracebacks and `inspect.getsource` are the original's (docs/design/architecture.md, "Import hook").

    OPGUARD_HOOK=map.json      {"files": {"/home/me/model/rope.py": "/tmp/.../rope.py", ...}}
    import model.rope          the second text's code, under the first's name; no file of the user's is touched

All roads to a file's code go through SourceFileLoader.get_code: imports, `-m`, finders of editable installs. Two do
not. One is the main script, which CPython reads itself unless a path hook claims it. The other is runpy.run_path, by
which multiprocessing's children read the main script.

Counterexample: exec(open(path).read()) reads the file as it is, and its code has no probes."""

import functools
import importlib.machinery
import importlib.util
import json
import os
import sys

from opguard.load import messages, rewrite, roots


class Hook:
    def __init__(self, files):
        # By canonical path: the program may reach a file by another name.
        self.files = {roots.canonical(path): text for path, text in files.items()}
        self.main = ""  # the main script as CPython names it, once claimed
        self.main_code = None
        self.run_module = None  # runpy's, while a MainScript stands in its place

    def text_of(self, path):
        """The instrumented text that stands for a file, None for a file that has none."""
        return self.files.get(roots.canonical(path)) if isinstance(path, str) else None

    def code_of(self, path, is_main=False):
        """The code of a mapped file; None: not ours, or not to be had, then the original runs."""
        if is_main and self.main_code is not None:
            return self.main_code
        text = self.text_of(path)
        if text is None:
            return None
        try:
            return rewrite.compile_instrumented(text, path, is_main)
        except Exception as error:
            messages.complain("%s runs uninstrumented: %s: %s" % (path, type(error).__name__, error))
            return None


_hook = None


def _wrap_loader():
    inner = importlib.machinery.SourceFileLoader.get_code

    @functools.wraps(inner)
    def get_code(self, fullname):
        code = None
        if type(self).source_to_code is importlib.machinery.SourceFileLoader.source_to_code:
            # Never through the bytecode cache, in neither direction. A loader that compiles in its own
            # way is the program's business.
            path = self.get_filename(fullname)
            code = _hook.code_of(path, is_main=fullname == "__main__" and path == _hook.main)
        return inner(self, fullname) if code is None else code

    importlib.machinery.SourceFileLoader.get_code = get_code


def _wrap_run_path():
    # multiprocessing.spawn runs the main script through runpy.run_path.
    import runpy

    inner = getattr(runpy, "_get_code_from_file", None)
    if inner is None:
        return
    # (run_name, fname) -> (code, fname) up to 3.12; (fname) -> code from 3.13 on.
    gives_name = inner.__code__.co_argcount == 2

    @functools.wraps(inner)
    def _get_code_from_file(*arguments):
        path = arguments[-1]
        code = _hook.code_of(os.fspath(path)) if isinstance(path, (str, os.PathLike)) else None
        if code is None:
            return inner(*arguments)
        return (code, path) if gives_name else code

    runpy._get_code_from_file = _get_code_from_file


def _run_in_place(path):
    """CPython calls runpy next, and the script would lie three levels below it. Once, the extension stands there."""
    import runpy

    import __main__

    try:
        from opguard import _rt
    except ImportError:  # a Python that it is not made for: the finder below serves runpy
        return
    __main__.__loader__ = importlib.machinery.SourceFileLoader("__main__", path)
    _hook.run_module = runpy._run_module_as_main
    runpy._run_module_as_main = _rt.main_script(_hook.main_code, vars(__main__))


class _MainFinder:
    """The path entry finder of the main script; finds `__main__` only."""

    def __init__(self, script):
        self.script = script

    def find_spec(self, name, target=None):
        if name != "__main__":
            return None
        loader = importlib.machinery.SourceFileLoader(name, self.script)
        return importlib.util.spec_from_file_location(name, self.script, loader=loader)

    def invalidate_caches(self):
        pass


def _claim_main(path):
    """A path hook: CPython asks whether the main script is a folder or an archive to import from."""
    try:
        sys._getframe(1)
    except ValueError:  # called by the interpreter's main itself, not from Python
        _hook.main_code = _hook.code_of(path, is_main=True)
        if _hook.main_code is not None:
            _hook.main = path
            _run_in_place(path)
            return _MainFinder(path)
    raise ImportError


def enter_main(namespace):
    """First thing in the main script: what importing it has changed is put back as for a plain script."""
    script = _hook.main
    if _claim_main in sys.path_hooks:
        sys.path_hooks.remove(_claim_main)
    if _hook.run_module is not None:
        sys.modules["runpy"]._run_module_as_main, _hook.run_module = _hook.run_module, None
    sys.path_importer_cache[script] = None  # as for a script no hook claims
    if script in sys.path:
        place = sys.path.index(script)
        if getattr(sys.flags, "safe_path", False):
            del sys.path[place]
        else:
            sys.path[place] = os.path.dirname(os.path.realpath(script))
    namespace["__file__"] = script
    namespace["__spec__"] = None
    namespace["__package__"] = None
    namespace["__cached__"] = None
    import opguard

    return opguard.og


def install(path):
    global _hook
    with open(path, encoding="utf-8") as document:
        _hook = Hook(json.load(document)["files"])
    _wrap_loader()
    _wrap_run_path()
    sys.path_hooks.append(_claim_main)
