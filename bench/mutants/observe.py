"""observe.py OUT [--trace DIR] -- PROGRAM ARGS: runs a program and writes what it left; with --trace also what it ran.

What it left: a digest of its output, of parameters and optimizer state after every optimizer step, of every module's buffers at the end and of
the tensors of whatever its globals can give a state of. A number of such a state is often an argument kept (`decay=0.99`) that nothing has used yet;
one that was used shows in tensors or in the output. What it ran: the lines of each file below DIR, and what the names in each function held.
Runs in the program's own interpreter, so it needs nothing but torch. OUT gets the process's rank appended.

observe.py --serve: reads requests, a JSON line each ({"cwd", "arguments": as above, "ranks", "output", "timeout"}), runs each in forked children and
answers with their exit codes. Importing torch takes longer than such a program runs; it is then done once.
"""
import ast
import builtins
import hashlib
import importlib
import io
import json
import os
import runpy
import sys
import threading
import time
import traceback


def describe(value, torch):
    if isinstance(value, torch.Tensor):
        dtype = str(value.dtype).removeprefix("torch.")
        layout = "contiguous" if value.layout == torch.strided and value.is_contiguous() else "strided"
        return f"tensor {dtype} {value.dim()} {layout} {'x'.join(map(str, value.shape))}"
    if isinstance(value, torch.nn.Module):
        return f"module {type(value).__name__}"
    if isinstance(value, (bool, int, float, str)) or value is None:
        return type(value).__name__
    return "object"


class Tracer:
    """Lines and kinds of names; a line is looked at when it runs first, and once more when its function returns."""

    def __init__(self, folder, torch):
        self.folder, self.torch = os.path.realpath(folder) + os.sep, torch
        self.files, self.chains, self.seen, self.entries = {}, {}, set(), {}
        self.depth = 0  # of imports under way

    def chains_of(self, filename):
        """First line of a function -> the dotted chains that start at self in it."""
        if filename not in self.chains:
            found = self.chains[filename] = {}
            try:
                tree = ast.parse(open(filename, "rb").read())
            except (OSError, SyntaxError):
                return found
            for function in ast.walk(tree):
                if not isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
                    continue
                first = min([function.lineno] + [d.lineno for d in function.decorator_list])
                chains = set()
                for node in ast.walk(function):
                    parts, at = [], node
                    while isinstance(at, ast.Attribute):
                        parts.append(at.attr)
                        at = at.value
                    if parts and isinstance(at, ast.Name) and len(parts) < 3:
                        chains.add((at.id, *reversed(parts)))
                found[first] = chains
        return self.chains[filename]

    def follow(self, value, parts):
        """The value of a chain, by plain attributes only: a property may do anything."""
        for part in parts:
            state = getattr(value, "__dict__", None)
            if state is None:
                return None
            for held in (state, *(state.get(n) or {} for n in ("_parameters", "_buffers", "_modules"))):
                if part in held:
                    value = held[part]
                    break
            else:
                return None
        return value

    def look(self, frame, names):
        values = frame.f_locals
        for name, value in values.items():
            # A later look replaces "NoneType" alone: a name's first kind is the one its first use sees.
            if names.get(name, "NoneType") == "NoneType":
                names[name] = describe(value, self.torch)
        for chain in self.chains_of(frame.f_code.co_filename).get(frame.f_code.co_firstlineno, ()):
            text = ".".join(chain)
            if text not in names and chain[0] in values and (value := self.follow(values[chain[0]], chain[1:])) is not None:
                names[text] = describe(value, self.torch)

    def __call__(self, frame, event, arg):
        name = frame.f_code.co_filename
        if name not in self.entries:
            path = os.path.realpath(name)
            inside = path.startswith(self.folder)
            self.entries[name] = self.files.setdefault(path[len(self.folder) :], {"lines": set(), "names": {}}) if inside else None
        entry = self.entries[name]
        if entry is None:
            return None
        lines = entry["lines"]
        names = entry["names"].setdefault(str(frame.f_code.co_firstlineno), {})

        def local(frame, event, arg):
            if event == "line" and (frame.f_code, frame.f_lineno) not in self.seen:
                self.seen.add((frame.f_code, frame.f_lineno))
                lines.add(frame.f_lineno)
                self.look(frame, names)
            elif event == "return" and (frame.f_code, 0) not in self.seen:
                self.seen.add((frame.f_code, 0))
                self.look(frame, names)
            return local

        return local

    def pass_over_imports(self):
        """What runs while a module is loaded is not traced: it is most of the time, and its lines are known without."""
        for module, name in ((builtins, "__import__"), (importlib, "import_module")):

            def load(*args, _original=getattr(module, name), **kwargs):
                sys.settrace(None)
                try:
                    return _original(*args, **kwargs)
                finally:
                    self.depth -= 1
                    if not self.depth:
                        sys.settrace(self)

            def counted(*args, _load=load, **kwargs):
                self.depth += 1
                return _load(*args, **kwargs)

            setattr(module, name, counted)

    def add_top_level(self):
        """The lines of modules and classes that were loaded."""
        for path in loaded_files():
            if not path.startswith(self.folder) or not path.endswith(".py"):
                continue
            entry = self.files.setdefault(path[len(self.folder) :], {"lines": set(), "names": {}})
            stack = [ast.parse(open(path, "rb").read())]
            while stack:
                node = stack.pop()
                if isinstance(node, ast.stmt):
                    entry["lines"].add(node.lineno)
                if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                    stack += [n for n in ast.iter_child_nodes(node) if isinstance(n, ast.stmt)]

    def result(self):
        self.add_top_level()
        return {name: {"lines": sorted(e["lines"]), "names": e["names"]} for name, e in sorted(self.files.items())}


class Outcome:
    """Digests of everything that counts, in order."""

    def __init__(self, torch):
        self.torch, self.parts, self.modules = torch, [], {}
        importlib.import_module("torch.optim.optimizer").register_optimizer_step_post_hook(self.after_step)
        torch.nn.modules.module.register_module_forward_hook(self.after_forward)

    def add(self, name, value, digest, numbers=True):
        torch = self.torch
        if isinstance(value, torch.Tensor):
            value = value.detach()
            digest.update(f"{name} {value.dtype} {tuple(value.shape)}".encode())
            digest.update(value.contiguous().reshape(-1).view(torch.uint8).numpy().tobytes() if value.numel() else b"")
        elif isinstance(value, dict):
            for key in value:
                self.add(f"{name}.{key}", value[key], digest, numbers)
        elif isinstance(value, (list, tuple)):
            for i, item in enumerate(value):
                self.add(f"{name}.{i}", item, digest, numbers)
        elif numbers and isinstance(value, (bool, int, float, str)):
            digest.update(f"{name} {value!r}".encode())

    def after_step(self, optimizer, args, kwargs):
        digest = hashlib.sha256()
        for i, group in enumerate(optimizer.param_groups):
            for j, p in enumerate(group["params"]):
                self.add(f"{i}.{j}", p, digest)
                self.add(f"{i}.{j}", dict(optimizer.state.get(p, {})), digest)
        self.parts.append(digest.hexdigest())

    def after_forward(self, module, args, result):
        self.modules.setdefault(id(module), module)

    def result(self, globals_, output):
        digest = hashlib.sha256("".join(self.parts).encode())
        for module in self.modules.values():
            for name, buffer in module.named_buffers(recurse=False):
                self.add(name, buffer, digest)
        for name in sorted(globals_):
            value = globals_[name]
            if callable(getattr(value, "state_dict", None)) and not isinstance(value, type):
                try:
                    # A module's own tables: whether a buffer is saved (`persistent`) is no outcome of a run.
                    module = isinstance(value, self.torch.nn.Module)
                    state = dict([*value.named_parameters(), *value.named_buffers()]) if module else value.state_dict()
                    self.add(name, state, digest, numbers=False)
                except Exception as error:  # a state that cannot be read is the same on both sides
                    digest.update(type(error).__name__.encode())
        digest.update(output.encode())
        return digest.hexdigest()


class Tee(io.TextIOBase):
    def __init__(self, out):
        self.out, self.text = out, []

    def write(self, text):
        self.text.append(text)
        return self.out.write(text)

    def flush(self):
        self.out.flush()


def loaded_files():
    found = set()
    for module in list(sys.modules.values()):
        try:
            found.add(os.path.realpath(module.__file__))
        except Exception:  # modules without a file; lazy ones raise what they like
            continue
    return sorted(f for f in found if os.path.isfile(f))  # some make their name up


def serve():
    import torch

    # What the libraries load besides themselves; they are loaded from each request's own tree.
    for name in ("torch.distributed", "torch.utils.data", "torch.optim.lr_scheduler", "numpy", "huggingface_hub", "safetensors.torch", "tokenizers"):
        try:
            importlib.import_module(name)
        except ImportError:
            pass
    torch.set_num_threads(1)
    for line in sys.stdin:
        request = json.loads(line)
        port = 20000 + os.getpid() % 20000
        children = [run_child(request, rank, port) for rank in range(request["ranks"])]
        deadline, codes = time.monotonic() + request["timeout"], {}
        while len(codes) < len(children):
            for child in children:
                if child not in codes and (done := os.waitpid(child, os.WNOHANG))[0]:
                    codes[child] = os.waitstatus_to_exitcode(done[1])
            if time.monotonic() > deadline or any(codes.values()):
                for child in children:
                    if child not in codes:
                        os.kill(child, 9)
            time.sleep(0.02)
        sys.stdout.write(json.dumps([codes[c] for c in children]) + "\n")
        sys.stdout.flush()


def run_child(request, rank, port):
    child = os.fork()
    if child:
        return child
    try:
        os.chdir(request["cwd"])
        out = os.open(request["output"], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        for number, file in ((0, os.open(os.devnull, os.O_RDONLY)), (1, out), (2, out)):
            os.dup2(file, number)
        sys.stdout, sys.stderr = os.fdopen(1, "w", closefd=False), os.fdopen(2, "w", closefd=False)
        if request["ranks"] > 1:
            world = str(request["ranks"])
            os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=world, LOCAL_WORLD_SIZE=world, MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
        run(request["arguments"])
        code = 0
    except SystemExit as stop:
        code = stop.code if isinstance(stop.code, int) else 1 if stop.code else 0
    except BaseException:
        traceback.print_exc()
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def run(arguments):
    out, rest = arguments[0], arguments[1:]
    folder = rest[1] if rest[0] == "--trace" else None
    rest = rest[rest.index("--") + 1 :]
    import torch

    outcome = Outcome(torch)
    tracer = Tracer(folder, torch) if folder else None
    sys.argv = rest
    sys.path[0] = os.path.dirname(os.path.abspath(rest[0]))
    sys.stdout = tee = Tee(sys.stdout)
    if tracer:
        tracer.pass_over_imports()
        threading.settrace(tracer)
        sys.settrace(tracer)
    try:
        globals_ = runpy.run_path(rest[0], run_name="__main__")
    finally:
        sys.settrace(None)
        threading.settrace(None)
    found = {"outcome": outcome.result(globals_, "".join(tee.text)), "steps": len(outcome.parts), "files": loaded_files()}
    if tracer:
        found["ran"] = tracer.result()
    with open(f"{out}.{os.environ.get('RANK', '0')}", "w") as file:
        json.dump(found, file)


if __name__ == "__main__":
    serve() if sys.argv[1:] == ["--serve"] else run(sys.argv[1:])
