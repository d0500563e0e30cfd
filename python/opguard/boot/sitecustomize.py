# Runs in every Python process started below `opguard preflight`, `run` and `diff`. This folder is the
# first entry of their PYTHONPATH, which src/keep/start.cc put there just before. Processes include launchers,
# pip and ninja, on any Python. So it does nothing unless the environment asks, says at most one line, and
# never stops the program.
import os
import sys


def _begin(boot):
    if not any(name.startswith("OPGUARD_") for name in os.environ):
        return
    if "OPGUARD_NO_BYTECODE" in os.environ:
        # A run of ours leaves no __pycache__ in the user's tree. Not PYTHONDONTWRITEBYTECODE: the program and
        # every process it starts, Python or not, would see that one.
        sys.dont_write_bytecode = True
    if sys.version_info < (3, 8) or "opguard" in sys.modules:
        return
    from importlib.util import module_from_spec, spec_from_file_location

    # By path: putting the package's parent on sys.path would make its neighbours importable too.
    package = os.path.dirname(boot)
    spec = spec_from_file_location(
        "opguard", os.path.join(package, "__init__.py"), submodule_search_locations=[package]
    )
    sys.modules["opguard"] = module = module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
        from opguard.load import startup
    except BaseException:
        del sys.modules["opguard"]
        raise
    startup.begin(startup.read_environment(os.environ))


def _give_back(boot):
    # PYTHONPATH and sys.path as the program would have them without us. Only where src/keep/start.cc has
    # entered this process: it enters the next Python too, whatever that one's PYTHONPATH is.
    path = os.environ.get("PYTHONPATH", "")
    if not os.environ.get("OPGUARD_BOOT") or path.split(os.pathsep)[0] != os.environ["OPGUARD_BOOT"]:
        return
    if "OPGUARD_PYTHONPATH" in os.environ:
        os.environ["PYTHONPATH"] = os.environ.pop("OPGUARD_PYTHONPATH")
    else:
        del os.environ["PYTHONPATH"]
    if boot in sys.path:
        sys.path.remove(boot)


def _chain(boot):
    # The sitecustomize that this one hides. It takes our place in sys.modules.
    from importlib.machinery import PathFinder
    from importlib.util import module_from_spec

    rest = [p for p in sys.path if os.path.realpath(p or os.curdir) != os.path.realpath(boot)]
    spec = PathFinder.find_spec("sitecustomize", rest)
    if spec is None or spec.loader is None or not hasattr(spec.loader, "exec_module"):
        return
    sys.modules["sitecustomize"] = module = module_from_spec(spec)
    spec.loader.exec_module(module)


_boot = os.path.dirname(os.path.abspath(__file__))
_give_back(_boot)
try:
    _begin(_boot)
except Exception as error:
    sys.stderr.write("opguard: not active in this process: %s: %s\n" % (type(error).__name__, error))
if sys.version_info >= (3, 4):
    # Its own errors are the program's: they go on to site.py, as without us.
    _chain(_boot)
