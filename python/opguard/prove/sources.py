"""Which lines are the user's: not torch's, not the standard library's, not ours.

    y = model(x)        the line of model's forward that called the operator, then the line of the step that called model
    loss.backward()     the operator of a gradient is that of the forward line whose gradient it computes

A backward of the user's own has frames of its own, between the operator and the engine. They come first.
A decorator of a package's, such as typing_extensions.deprecated, runs between two lines and is neither's.
Counterexample: a hook of torch's own has no line of the user's inside the engine. The line of loss.backward() stands in.
"""

import functools
import importlib.util
import linecache
import os
import re
import sys
import sysconfig

DEPTH = 6  # lines kept of a stack

_ENGINE = "_engine_run_backward"  # torch.autograd.graph: what lies inside it runs in the backward pass
_LINE = re.compile(r'^\s*File "(.+)", line (\d+), in (.+)$', re.MULTILINE)


def _folder(path):
    return os.path.abspath(path) + os.sep


def _torch():
    spec = importlib.util.find_spec("torch")
    return [_folder(place) for place in spec.submodule_search_locations] if spec else []


_NOT_USERS = tuple([_folder(os.path.dirname(__file__)), *_torch()])
_STANDARD = tuple(_folder(sysconfig.get_path(name)) for name in ("stdlib", "platstdlib"))
_INSTALLED = (os.sep + "site-packages" + os.sep, os.sep + "dist-packages" + os.sep)  # below the standard library's folder

# Packages that wrap functions of others: their frames call what somebody else has written.
_WRAPPERS = ("typing_extensions.py", "decorator.py", "contextlib2", "deprecated", "deprecation.py", "wrapt", "functools.py", "contextlib.py", "beartype", "jaxtyping", "typeguard")


@functools.lru_cache(maxsize=None)
def is_user(file):
    if file.startswith("<"):
        return False
    path = os.path.abspath(file)
    if path.startswith(_NOT_USERS):
        return False
    if not is_installed(path):
        return not path.startswith(_STANDARD)
    package = re.split("|".join(map(re.escape, _INSTALLED)), path)[-1]
    return package.split(os.sep)[0] not in _WRAPPERS


def is_installed(file):
    return any(part in os.path.abspath(file) for part in _INSTALLED)


def imported(folder):
    """Files below a folder that modules of theirs came from, by their path there: what a plan needs beside itself."""
    found = set()
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        path = os.path.relpath(os.path.abspath(file), folder) if isinstance(file, str) else ""
        # pkg.part is pkg/part.py there. What was found by another way is not found by this one either.
        if path in (name.replace(".", os.sep) + ".py", os.path.join(name.replace(".", os.sep), "__init__.py")):
            found.add(path)
    return found


def defined_at(code):
    """The line of a function's `def`; its code begins at the first decorator."""
    for line in range(code.co_firstlineno, code.co_firstlineno + 20):
        if linecache.getline(code.co_filename, line).lstrip().startswith(("def ", "async def ")):
            return line
    return code.co_firstlineno


def running():
    """(file, line, function) of each frame, innermost first."""
    frame = sys._getframe(1)
    while frame is not None:
        yield frame.f_code.co_filename, frame.f_lineno or 0, frame.f_code.co_name
        frame = frame.f_back


def called_by(file, functions):
    """Whether the user's line called one of these functions of a module of torch's."""
    for name, _, function in running():
        if is_user(name):
            return False
        if function in functions and os.path.basename(name) == file:
            return True
    return False


def noted(traceback):
    """The same of what anomaly mode noted as an autograd node was made: traceback.format_stack()'s text."""
    text = traceback if isinstance(traceback, str) else "".join(traceback or ())
    for file, line, function in reversed(_LINE.findall(text)):
        yield file, int(line), function


def users(lines, inside_backward=False):
    """Those that are the user's, at most DEPTH. `inside_backward`: only what the engine called, or nothing."""
    found = []
    for file, line, function in lines:
        if function == _ENGINE and (found or inside_backward):
            break
        if is_user(file):
            found.append((os.path.abspath(file), line, function))
            if len(found) == DEPTH:
                break
    return tuple(found)
