"""The import hook and the main script: the program cannot tell, the probes run."""

import sys

import pytest

from boot import Program, interpreters

pytestmark = pytest.mark.parametrize("python", interpreters())
LINE = "from opguard import og  # opguard: probes\n"


@pytest.fixture
def program(tmp_path):
    return Program(tmp_path)


def facts(namespace="globals()"):
    return (
        "import sys, json\n"
        "g = %s\n"
        "print(json.dumps([g['__name__'], g['__file__'], [getattr(g['__spec__'], n, None) for n in ('name', 'origin', 'cached', 'parent')], g['__package__'], sys.argv, sys.path[0],"
        " sorted(k for k in sys.path_importer_cache if k.endswith('.py')),"
        " type(g['__loader__']).__name__, g['__doc__'], g.get('__cached__'), g['__name__'] in sys.modules]))\n" % namespace
    )


SEEN = "print(sys.modules['opguard'].SEEN)\n"


def both(program, python, original, instrumented, *command, name="train.py", **options):
    """(plain run, hooked run) of the same command."""
    program.write(name, original)
    plain = program.run(*command, python=python, **options)
    program.instrument(name, instrumented)
    return plain, program.run(*command, python=python, **options)


def test_main_script_is_as_a_plain_one(program, python):
    body = '"""doc"""\n%s' + facts()
    plain, hooked = both(program, python, body % "", body % LINE + SEEN + 'og("x:1", print)()\n' + SEEN, "train.py", "a", "b")
    assert hooked.stderr == ""
    lines = hooked.stdout.splitlines()
    assert lines[0] == plain.stdout.splitlines()[0]
    assert lines[1:] == ["[]", "", "['x:1']"]


def test_main_script_leaves_no_path_hook(program, python):
    plain, hooked = both(program, python, "import sys\nprint(len(sys.path_hooks))\n", LINE + "import sys\nprint(len(sys.path_hooks))\n", "train.py")
    assert hooked.stdout == plain.stdout


def test_main_script_by_other_names(program, python):
    body = "%s" + facts()
    (program.tree / "link.py").symlink_to("deep/train.py")
    for command in ("deep/train.py", program.tree / "deep" / "train.py", "./deep/../deep/train.py"):
        program.hooked.clear()
        program.environment.clear()
        plain, hooked = both(program, python, body % "", body % LINE + SEEN, command, name="deep/train.py")
        assert hooked.stdout == plain.stdout + "[]\n", command
    # A link is a file of its own: the map names what the plan saw.
    program.instrument("link.py", body % LINE + SEEN)
    plain = program.run("link.py", python=python, environment={"OPGUARD_HOOK": ""})
    hooked = program.run("link.py", python=python)
    assert hooked.stdout == plain.stdout + "[]\n"


def test_script_as_launchers_start_it(program, python):
    body = "%s" + facts()
    plain, hooked = both(program, python, body % "", body % LINE, "-u", "-W", "error", "train.py", "--x")
    assert (hooked.stdout, hooked.stderr) == (plain.stdout, "")


def test_module_switch(program, python):
    program.write("pkg/__init__.py", "")
    body = "%sfrom . import __name__ as parent\n" + facts()
    plain, hooked = both(program, python, body % "", body % LINE + SEEN, "-m", "pkg.mod", "a", name="pkg/mod.py")
    assert hooked.stdout == plain.stdout + "[]\n" and hooked.stderr == ""


def test_folder_with_main(program, python):
    body = "%s" + facts()
    plain, hooked = both(program, python, body % "", body % LINE, "app", name="app/__main__.py")
    assert (hooked.stdout, hooked.stderr) == (plain.stdout, "")


def test_imported_module_is_as_a_plain_one(program, python):
    program.write("train.py", "import sys, model\n" + facts("vars(model)") + "print(model.f(2))\n")
    body = '"""Model."""\nfrom __future__ import annotations\n%s\ndef f(x) -> undefined:\n    return %s + 1\n'
    plain, hooked = both(program, python, body % ("", "x"), body % (LINE, 'og("add:1", x)'), "train.py", name="model.py")
    assert hooked.stdout == plain.stdout and hooked.stderr == ""
    assert hooked.stdout.endswith("3\n")
    assert not list(program.tree.rglob("*.pyc"))


def test_bytecode_cache_is_neither_read_nor_written(program, python):
    program.write("train.py", "import model\nprint(model.x)\n")
    program.write("model.py", "x = 'original'\n")
    run = lambda: program.run("train.py", python=python, environment={"PYTHONDONTWRITEBYTECODE": ""}).stdout
    assert run() == "original\n"  # leaves a .pyc
    program.instrument("model.py", LINE + "x = 'instrumented'\n")
    assert run() == "instrumented\n"
    program.environment.clear()
    assert run() == "original\n"


@pytest.mark.parametrize("name", ["train.py", "model.py"])
def test_traceback_and_source_are_the_original(program, python, name):
    program.write("train.py", "import model\nmodel.f(0)\n")
    original = '"""Doc."""\nimport inspect, sys\n\n\ndef f(x):\n    y = (1 +\n         2)\n    y += x\n    return [y @ x, g(y, é=len(str(y)))]\n\n\n%s'
    instrumented = (
        '"""Doc."""\n%simport inspect, sys\n\n\ndef f(x):\n    y = (og("add:1", 1) +\n         2)\n    y = og("augment:1", y).iadd( x)\n'
        '    return [og("matmul:1", y) @ x, g(y, é=og("len:1", len)(str(y)))]\n\n\n%%s' % LINE
    )
    tail = "print(inspect.getsource(f))\n" + ("f(0)\n" if name == "train.py" else "")
    plain, hooked = both(program, python, original % tail, instrumented % tail, "train.py", name=name)
    assert hooked.stdout == plain.stdout and "def f" in hooked.stdout
    # The main script runs under runpy: two frames of CPython's own more.
    frames = lambda text: [l for l in text.splitlines() if "runpy" not in l and "_run_code(" not in l and "exec(code" not in l and "main_globals" not in l]
    mine = frames(hooked.stderr)
    assert [l for l in mine if l.strip()] [-6:] == [l for l in frames(plain.stderr) if l.strip()][-6:]
    assert "unsupported operand" in hooked.stderr


def test_own_name_is_kept(program, python):
    program.write("train.py", "")
    program.instrument(
        "train.py", "from opguard import og as og_1  # opguard: probes\nog = 3\nprint(og_1('a:1', og) + 1, 'og_1' in globals())\n"
    )
    assert program.run("train.py", python=python).stdout == "4 True\n"


SPAWN = """
%simport multiprocessing, pickle, sys

def work(x):
    return %s + 1, __name__, __spec__ is None, sys.modules["opguard"].SEEN[-1:]

if __name__ == "__main__":
    context = multiprocessing.get_context("%s")
    with context.Pool(1) as pool:
        print(pool.apply(work, (2,)))
    print(pickle.loads(pickle.dumps(work)) is work)
"""


@pytest.mark.parametrize("method,name", [("spawn", "__mp_main__"), ("forkserver", "__mp_main__"), ("fork", "__main__")])
def test_multiprocessing(program, python, method, name):
    program.write("train.py", SPAWN % ("", "x", method))
    program.instrument("train.py", SPAWN % (LINE, 'og("add:9", x)', method))
    ran = program.run("train.py", python=python)
    assert ran.stderr == ""
    assert ran.stdout == "(3, '%s', True, ['add:9'])\nTrue\n" % name


def test_unusable_text_leaves_the_original(program, python):
    program.write("train.py", "import model\nprint(model.x)\n")
    program.write("model.py", "x = 'original'\n")
    program.instrument("model.py", "x = = 2\n")
    ran = program.run("train.py", python=python)
    assert ran.stdout == "original\n" and ran.returncode == 0
    assert ran.stderr.startswith("opguard: ") and ran.stderr.count("\n") == 1


def test_encoding_of_the_text(program, python):
    program.write("train.py", "import model\nprint(ascii(model.x))\n")
    program.write("model.py", "")
    program.instrument("model.py", ("# coding: latin-1\n" + LINE.replace("\n", "\r\n") + "x = 'é'\n").encode("latin-1"))
    assert program.run("train.py", python=python).stdout == "'\\xe9'\n"


def test_main_error_keeps_exit_code(program, python):
    program.write("train.py", "")
    program.instrument("train.py", LINE + "raise SystemExit(7)\n")
    assert program.run("train.py", python=python).returncode == 7


def test_boot_is_silent_without_a_task(program, python):
    ran = program.run("-c", "import sys; print('opguard' in sys.modules)", python=python, environment={"OPGUARD_TREE": ""})
    assert ran.stdout.split()[-1:] and ran.stderr == ""


def test_boot_chains_to_another_sitecustomize(program, python):
    other = program.folder / "other"
    other.mkdir()
    (other / "sitecustomize.py").write_text("import builtins\nbuiltins.chained = __file__\n")
    path = "%s:%s" % (program.package / "boot", other)
    ran = program.run("-c", "import sitecustomize, sys; print(chained == sitecustomize.__file__, 'opguard' in sys.modules)",
                      python=python, environment={"PYTHONPATH": path, "OPGUARD_MODE": "full"})  # fmt: skip
    assert ran.stdout == "True True\n" and ran.stderr == ""


def test_package_is_importable_but_not_its_neighbours(program, python):
    (program.package.parent / "neighbour.py").write_text("")
    ran = program.run("-c", "import opguard, sys\ntry:\n import neighbour\nexcept ImportError: print(opguard.__name__)",
                      python=python, environment={"OPGUARD_MODE": "full"})  # fmt: skip
    assert ran.stdout == "opguard\n"


def test_broken_hook_file_is_one_line(program, python):
    program.write("train.py", "print('ran')\n")
    program.environment["OPGUARD_HOOK"] = str(program.folder / "missing.json")
    ran = program.run("train.py", python=python)
    assert ran.stdout == "ran\n" and ran.returncode == 0
    assert ran.stderr.startswith("opguard: no import hook: ") and ran.stderr.count("\n") == 1


@pytest.mark.parametrize("on_disk", [False, True])
def test_a_program_that_empties_sys_modules_imports_again(program, python, on_disk):
    """A reloader or a test's isolation: the probes of what is imported anew are the ones that there were."""
    body = 'def train(n):\n    return "trained " + str(n)\n\n\nPRINTED = %s("trained")\n'
    program.write("body.py", body % "print")
    program.instrument("body.py", LINE + body % 'og("b:1", print)')
    if on_disk:
        program.write("body.py", LINE + body % 'og("b:1", print)')
        program.hooked.clear()
    purge = "import sys, body\nfor name in [n for n in sys.modules if n.split('.')[0] in ('opguard', 'body')]:\n    del sys.modules[name]\n"
    program.write("train.py", purge * 2 + "import body, opguard\nprint(body.train(2), opguard.SEEN, len(sys.path_hooks) > 0)\n")
    hooked = program.run("train.py", python=python)
    assert hooked.stderr == "" and hooked.returncode == 0
    assert hooked.stdout.splitlines() == ["trained"] * 3 + ["trained 2 ['b:1', 'b:1', 'b:1'] True"]
