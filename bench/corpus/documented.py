"""Programs out of documentation: every docstring of a package with `>>>` examples is one program.

  documented.py PACKAGE... --out DIR     writes DIR/programs/NAME.py and NAME_compiled.py, prints how many

An example `>>> x + 1` whose value the console would show becomes `show(x + 1)`: the driver prints the value and a
digest of the bytes of its tensors. NAME.py runs as a script does. NAME_compiled.py holds the same statements in one
function, which the driver compiles; it gives back what its names hold at the end."""

import argparse
import ast
import builtins
import doctest
import hashlib
import importlib
import inspect
import pkgutil
import re
import sys
import warnings
from pathlib import Path

# Modules whose import starts something, or asks for what is not installed.
PASSED_OVER = re.compile(r"\b(__main__|testing|_inductor|_dynamo|contrib|backends\.xeon|onnx|utils\.(tensorboard|bottleneck|benchmark)|tests?)\b")


def modules_of(package):
    """A package and every module below it that can be imported."""
    root = importlib.import_module(package)
    yield root
    for found in pkgutil.walk_packages(getattr(root, "__path__", ()), package + ".", onerror=lambda name: None):
        if PASSED_OVER.search(found.name) or "._" in found.name:
            continue
        try:
            yield importlib.import_module(found.name)
        except BaseException:  # asks for what is not here; SystemExit too
            continue


def documented_of(module):
    """(name, docstring) of the functions and classes that are a module's own, and of the classes' methods."""
    for name, value in sorted(vars(module).items()):
        try:
            text = value.__doc__
            home = sys.modules.get(value.__module__)
        except Exception:
            continue
        if not isinstance(text, str) or inspect.ismodule(value):
            continue
        if home not in (None, module) and getattr(home, name, None) is value:
            continue  # only imported here
        yield module.__name__ + "." + name, text
        if inspect.isclass(value):
            for inner, method in sorted(vars(value).items()):
                text = getattr(method, "__doc__", None)
                if isinstance(text, str):
                    yield "%s.%s.%s" % (module.__name__, name, inner), text


def statements_of(text):
    """The statements of a docstring's examples that parse, one example's after the other's."""
    try:
        examples = doctest.DocTestParser().get_examples(text)
    except ValueError:  # prompts without a blank, uneven indents
        return []
    statements = []
    for example in examples:
        try:
            statements += ast.parse(example.source).body
        except SyntaxError:
            continue
    return statements


def shown(statement):
    """An expression as a console would treat it."""
    if not isinstance(statement, ast.Expr) or isinstance(statement.value, (ast.Constant, ast.Await)):
        return statement
    called = statement.value.func if isinstance(statement.value, ast.Call) else None
    if isinstance(called, ast.Name) and called.id == "print":
        return statement
    return ast.Expr(ast.Call(ast.Name("show", ast.Load()), [statement.value], []))


def names_bound(statements):
    """Names that plain assignments at the top of the program bind, in order."""
    names = {}
    for statement in statements:
        if isinstance(statement, ast.Delete):
            for target in statement.targets:
                names.pop(getattr(target, "id", None), None)
        for target in getattr(statement, "targets", ()) if isinstance(statement, ast.Assign) else ():
            for node in ast.walk(target):
                if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                    names[node.id] = None
    return list(names)


HEAD = "import math\nimport numpy as np\nimport torch\nimport torch.nn as nn\nimport torch.nn.functional as F\nfrom driver import show\n%s\n\n"


def imports_of(statements, module):
    """What the examples use and a reader of the module's documentation has: names of the module itself."""
    loaded = {n.id for s in statements for n in ast.walk(s) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
    stored = {n.id for s in statements for n in ast.walk(s) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    imported = {a.asname or a.name for s in statements for n in ast.walk(s) if isinstance(n, (ast.Import, ast.ImportFrom)) for a in n.names}
    known = stored | imported | set(dir(builtins)) | {"math", "np", "torch", "nn", "F"}
    names = sorted(n for n in loaded - known if n in vars(module))
    return "from %s import %s\n" % (module.__name__, ", ".join(names)) if names else ""


def script_of(statements, imports):
    return HEAD % imports + ast.unparse(ast.fix_missing_locations(ast.Module([shown(s) for s in statements], [])))


def function_of(statements, imports):
    """The same in one function; None where Python does not allow it (`from x import *`)."""
    names = names_bound(statements)
    body = [shown(s) for s in statements]
    body.append(ast.Return(ast.List([ast.Name(n, ast.Load()) for n in names], ast.Load())))
    nothing = ast.arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[])
    function = ast.FunctionDef("program", nothing, body, [], None, None)
    function.type_params = []
    text = HEAD % imports + ast.unparse(ast.fix_missing_locations(ast.Module([function], [])))
    try:
        compile(text, "program", "exec")
    except SyntaxError:
        return None
    return text


def write(packages, out):
    """Writes the programs of the packages; their names, in order. The same examples twice are one program."""
    folder = out / "programs"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "__init__.py").write_text("")
    seen, names = set(), []
    for package in packages:
        for module in modules_of(package):
            for name, text in documented_of(module):
                statements = statements_of(text) if ">>>" in text else []
                if not statements:
                    continue
                digest = hashlib.sha256("".join(map(ast.dump, statements)).encode()).hexdigest()
                if digest in seen:
                    continue
                seen.add(digest)
                imports = imports_of(statements, module)
                name = "p%04d_%s" % (len(names), re.sub(r"\W+", "_", name).strip("_"))
                names.append(name)
                (folder / (name + ".py")).write_text(script_of(statements, imports) + "\n")
                function = function_of(statements, imports)
                if function is not None:
                    (folder / (name + "_compiled.py")).write_text(function + "\n")
    return names


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("packages", nargs="+")
    options.add_argument("--out", type=Path, required=True)
    options = options.parse_args()
    warnings.simplefilter("ignore")
    names = write(options.packages, options.out)
    print("%d programs" % len(names))


if __name__ == "__main__":
    main()
