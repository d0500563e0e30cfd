"""Runs programs one after the other in one process, and says of each what it printed, what it left and how it ended.

  driver.py RESULTS [--compile BACKEND] NAME...

RESULTS gets one JSON line a program: name, stdout, values (name -> digest of what it holds), error (type and first
line), rng (digest of the generators' states), seconds. A program starts from the same seeds and defaults whatever ran before."""

import argparse
import contextlib
import gc
import hashlib
import importlib.util
import io
import json
import random
import re
import resource
import signal
import sys
import time
import warnings

import numpy
import torch

SECONDS = 120  # a program that takes longer ends with TimeoutError
LARGE = 30_000_000  # parameters of a model; more cost time and show nothing more
MEMORY = 8 << 30  # of the process: more is a MemoryError, and the machine goes on
# What differs from process to process: addresses, and the seconds that pytest says.
ADDRESS = re.compile(r"0x[0-9a-f]{6,}|(?<= in )\d+\.\d+s.*")


def tensors_in(value, depth=0):
    """The tensors that a value holds, in order: containers, modules, optimizers."""
    if isinstance(value, torch.Tensor):
        yield value
        if value.is_leaf and value.grad is not None:
            yield value.grad
    elif isinstance(value, torch.nn.Module):
        yield from tensors_in([*value.parameters(), *value.buffers()], depth + 1)
    elif isinstance(value, torch.optim.Optimizer):
        yield from tensors_in(value.state_dict(), depth + 1)
    elif isinstance(value, dict) and depth < 6:
        for key in value:
            yield from tensors_in(value[key], depth + 1)
    elif isinstance(value, (list, tuple)) and depth < 6:
        for item in value:
            yield from tensors_in(item, depth + 1)


def bytes_of(tensor):
    """What a tensor holds, to the bit; of one without memory of its own, its text."""
    with torch.no_grad():
        try:
            plain = tensor.detach().cpu().contiguous()
            return plain.view(-1).view(torch.uint8).numpy().tobytes() if plain.numel() else b""
        except (RuntimeError, TypeError, NotImplementedError, ValueError):
            return ADDRESS.sub("0x", repr(tensor)).encode()


def digest(value):
    found = hashlib.sha256()
    for tensor in tensors_in(value):
        found.update(("%s %s %s" % (tensor.dtype, tuple(tensor.shape) if not tensor.is_nested else "nested", tensor.requires_grad)).encode())
        found.update(bytes_of(tensor))
    if isinstance(value, (bool, int, float, complex, str, bytes, type(None))):
        found.update(repr(value).encode())
    return found.hexdigest()[:16]


@torch.compiler.disable
def show(value):
    """What the console does with an expression's value."""
    if value is not None:
        print(repr(value), digest(value))


BACKEND = ""


def prepared(model):
    """A model as the mode wants it: compiled, or as it is."""
    return torch.compile(model, backend=BACKEND) if BACKEND else model


def ends_if_large(make):
    """Ends a program whose model has more than LARGE parameters; told by the model without memory."""
    states = torch.get_rng_state(), random.getstate(), numpy.random.get_state()
    try:
        with torch.device("meta"):
            size = sum(p.numel() for p in make().parameters())
    except Exception:  # reads a number while it is built
        size = 0
    torch.set_rng_state(states[0]), random.setstate(states[1]), numpy.random.set_state(states[2])
    if size > LARGE:
        raise SystemExit("too large: %d parameters" % size)


def random_states():
    return hashlib.sha256(torch.get_rng_state().numpy().tobytes() + repr(random.getstate()).encode() + repr(numpy.random.get_state()).encode()).hexdigest()[:16]


def begin():
    """The state that a new process has, as far as programs of documentation change it."""
    torch.manual_seed(0)
    random.seed(0)
    numpy.random.seed(0)
    torch.set_default_dtype(torch.float32)
    torch.set_default_device(None)
    torch.set_grad_enabled(True)
    torch.use_deterministic_algorithms(False)
    torch.set_printoptions(profile="default")
    torch.autograd.set_detect_anomaly(False)
    torch._dynamo.reset()


def first_line(error):
    lines = str(error).strip().splitlines()
    return ADDRESS.sub("0x", lines[0])[:300] if lines else ""


def run(name):
    """A program of NAME_compiled.py is a function to compile; one without that file asks `prepared`."""
    global BACKEND
    function = BACKEND and importlib.util.find_spec("programs.%s_compiled" % name)
    out, values, error = io.StringIO(), {}, None
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
        try:
            signal.alarm(SECONDS)
            if function:
                program = importlib.import_module("programs.%s_compiled" % name).program
                values = {str(i): digest(v) for i, v in enumerate(torch.compile(program, backend=BACKEND)())}
            else:
                module = importlib.import_module("programs." + name)
                values = {n: digest(v) for n, v in vars(module).items() if not n.startswith("__") and any(True for _ in tensors_in(v))}
        except BaseException as problem:  # SystemExit and KeyboardInterrupt are endings like others
            error = [type(problem).__name__, first_line(problem)]
        finally:
            signal.alarm(0)
    return {"name": name, "stdout": ADDRESS.sub("0x", out.getvalue()), "values": values, "error": error, "rng": random_states()}


def late(*_):
    raise TimeoutError("more than %d s" % SECONDS)


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("results")
    options.add_argument("--compile", default="")
    options.add_argument("names", nargs="+")
    options = options.parse_args()
    warnings.simplefilter("ignore")
    global BACKEND
    BACKEND = options.compile
    signal.signal(signal.SIGALRM, late)
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
    with open(options.results, "a") as results:
        for name in options.names:
            begin()
            began = time.monotonic()
            said = run(name)
            results.write(json.dumps({**said, "seconds": round(time.monotonic() - began, 2)}) + "\n")
            results.flush()
            # What a program holds goes with it.
            for module in [m for m in sys.modules if m.startswith("programs.")]:
                del sys.modules[module]
            gc.collect()


if __name__ == "__main__":
    sys.modules.setdefault("driver", sys.modules["__main__"])
    main()
