"""The pytest plugin, an entry point `pytest11` of the wheel; from a build folder `-p opguard.testing.plugin`. docs/guide/testing.md

It is loaded by every test session of its environment: torch is imported by the first test that asks for something."""

import inspect

import pytest

_MARK = "bitwise(runs=2, seed=0, deterministic=True): the test's body runs so often from one state, and must give the same bits (opguard)"
_OPTIONS = {"runs": 2, "seed": 0, "deterministic": True}


def pytest_configure(config):
    config.addinivalue_line("markers", _MARK)


def pytest_collection_modifyitems(config, items):
    """A mark with wrong options ends the session before a test has run."""
    for item in items:
        mark = item.get_closest_marker("bitwise")
        if mark is not None:
            _options(item, mark)


def _options(item, mark):
    """The mark's options, with the defaults. UsageError names the test."""
    given = dict(mark.kwargs)
    wrong = [name for name in given if name not in _OPTIONS]
    if mark.args or wrong:
        raise pytest.UsageError("%s: bitwise takes runs=, seed= and deterministic=, not %s" % (item.nodeid, ", ".join(wrong) or repr(mark.args[0])))
    options = {**_OPTIONS, **given}
    if type(options["runs"]) is not int or options["runs"] < 2:
        raise pytest.UsageError("%s: bitwise(runs=%r): two runs at least are compared" % (item.nodeid, options["runs"]))
    if type(options["seed"]) is not int or options["seed"] < 0:
        raise pytest.UsageError("%s: bitwise(seed=%r): a seed is a whole number from 0" % (item.nodeid, options["seed"]))
    function = getattr(item, "obj", None)
    if not hasattr(item, "funcargs") or not callable(function) or _is_unittest(item):
        raise pytest.UsageError("%s: bitwise marks test functions and methods, not %s" % (item.nodeid, type(item).__name__))
    if inspect.iscoroutinefunction(function):
        raise pytest.UsageError("%s: bitwise cannot run an async test twice" % item.nodeid)
    return options


def _is_unittest(item):
    return any(kind.__module__ == "_pytest.unittest" for kind in type(item).__mro__)


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem):
    """Instead of pytest's own call for marked tests; None hands any other on. What fixtures gave is the state that is
    put back between runs. A test's own failure passes through as it is."""
    mark = pyfuncitem.get_closest_marker("bitwise")
    if mark is None:
        return None
    __tracebackhide__ = True
    from opguard.testing import NotBitIdentical, bitwise

    given = {name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames}
    function = pyfuncitem.obj

    def body():
        __tracebackhide__ = True
        return function(**given)

    try:
        told = bitwise.run(body, (function, given), **_options(pyfuncitem, mark))
    except NotBitIdentical as error:
        told = str(error)
    if told is not None:
        pytest.fail(told, pytrace=False)  # no line of the test failed
    return True


@pytest.fixture
def opguard_certify(request):
    """opguard_certify("default path", against="main") runs `opguard certify`; the test fails with its report."""
    from opguard.testing import certify

    return certify.Certify(request.config.rootpath)
