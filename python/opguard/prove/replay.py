"""Runs what `opguard prove` has refuted: the model on one process and the plan on its ranks, from the input in case.json.

    python replay.py                   both sides; prints the two numbers beside those that were predicted
    python replay.py --side logical    the model alone, as a program of one process
    python replay.py --side plan       the plan alone: starts its ranks; under torchrun it is one of them

Exit 0: both sides did what was predicted. 1: they did not. 3: they could not be run.
It needs torch and what the plan imports, but neither opguard nor a GPU: ranks talk by gloo.
`opguard prove --replay DIR` copies this file into DIR, and beside it lib/ with placement.py and what that imports.
"""

import argparse
import importlib.util
import json
import math
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
import types
import warnings

HERE = os.path.dirname(os.path.abspath(__file__))
CLOSE = {"float64": 1e-6, "float32": 1e-3}  # relative to the larger of both predicted magnitudes


def line_of(file, number):
    try:
        with open(file, encoding="utf-8") as lines:
            return lines.read().splitlines()[number - 1].strip()
    except (OSError, IndexError, UnicodeDecodeError):
        return ""


class Case:
    """What was refuted, and from which input: the fields of case.json.

        plan                 the plan's file, relative to this one's folder
        dims, world, names   as in plan.json
        values               {input: the model's numbers, flat}
        difference           {"output", "rank", "logical_index", "plan_index", "logical", ...}; None for a deadlock"""

    def __init__(self):
        with open(os.path.join(HERE, "case.json"), encoding="utf-8") as file:
            self.__dict__.update(json.load(file))
        self.file = os.path.join(HERE, self.plan)

    def module(self):
        """The plan's. Its folder comes first on the path, as where it was proved."""
        sys.path[:] = [path for path in sys.path if os.path.abspath(path or os.curdir) != HERE]
        sys.path.insert(0, os.path.dirname(self.file))
        name = os.path.splitext(os.path.basename(self.file))[0]
        name = name if name not in sys.modules else "opguard_plan"
        spec = importlib.util.spec_from_file_location(name, self.file)
        module = sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module


class Process:
    """One side, in the process that is its own. rank None: the model.

        found    {"value": the number} and "done", or "raised": [file, line, words], or "waits": [file, line]
        over     the step has ended, well or not: the watching thread has nothing to tell any more"""

    def __init__(self, case, rank, options):
        self.case, self.rank, self.options = case, rank, options
        self.found, self.over = {}, False

    def run(self):
        """Builds the side, puts the case's numbers in, steps, and tells. The seeds are those of the capture, so that
        what a plan draws as it is built is the same."""
        import torch
        from torch.optim.optimizer import register_optimizer_step_post_hook

        library = types.ModuleType("opguard_prove")
        library.__path__ = [os.path.join(HERE, "lib")]
        sys.modules["opguard_prove"] = library
        from opguard_prove import placement

        torch.set_num_threads(1)
        torch.set_default_dtype(getattr(torch, self.options.dtype))
        torch.manual_seed(0)
        random.seed(0)
        try:
            module = self.case.module()
            built = module.logical(dict(self.case.dims)) if self.rank is None else module.plan(self.rank, dict(self.case.dims))
            self._fill(torch, placement, module, built)
            stepped = []
            register_optimizer_step_post_hook(lambda *_: stepped.append(True))
            if self.rank is not None:
                self._watch()
            outputs = built["step"]()
            self.over = True
            self._read(placement, outputs)
            if not stepped and not self.options.numbers:
                self._end_step(torch, built["state"], outputs)
            self.found["done"] = True
        except BaseException as error:
            self.found["raised"] = self._where(sys.exc_info()[2]) + [" ".join(("%s: %s" % (type(error).__name__, error)).split())[:300]]
            if self.options.verbose:
                raise
        finally:
            self.over = True
            self.tell()

    def _fill(self, torch, placement, module, built):
        """Every tensor of state and tokens gets its part of the model's."""
        for name, tensor in [*built["state"].items(), *built["tokens"].items()]:
            whole, held = self.case.values[name], placement.local(tensor)
            if self.rank is None:
                part = whole
            else:
                part = [whole[i] for i in placement.place("rank %d" % self.rank, module.plan, built, name, tensor, self.case.names[name]["shape"])]
            with torch.no_grad():
                held.copy_(torch.tensor(part, dtype=torch.float64).reshape(held.shape))

    def _read(self, placement, outputs):
        """The one number that differs, on the model and on the rank that has it. In its own order on each side: two
        indices."""
        wrong = self.case.difference
        if wrong is None or self.rank not in (None, wrong["rank"]):
            return
        tensor = placement.local(outputs[wrong["output"]]).detach()
        self.found["value"] = tensor.reshape(-1)[wrong["logical_index" if self.rank is None else "plan_index"]].double().item()

    def _end_step(self, torch, state, outputs):
        """A step without an optimizer of torch's ends in none that `opguard diff` sees, and gradients are what it judges.

        So one that changes nothing steps here. A group for each name, since ranks may lack some."""
        optimizer = None
        for name in self.case.names:
            tensor = state.get(name)
            if tensor is not None and tensor.is_leaf and tensor.is_floating_point():
                if tensor.grad is None and "grad:" + name in outputs and outputs["grad:" + name].shape == tensor.shape:
                    tensor.grad = outputs["grad:" + name].detach().to(tensor.dtype)
                group = {"params": [tensor]}
            else:
                group = {"params": []}
            if optimizer is None:
                optimizer = torch.optim.SGD([group], lr=0.0, foreach=False)
            else:
                optimizer.add_param_group(group)
        if optimizer is not None:
            optimizer.step()

    def _where(self, traceback):
        """The innermost line of the plan's folder: [file, line]."""
        found = [None, 0]
        while traceback is not None:
            file = os.path.abspath(traceback.tb_frame.f_code.co_filename)
            if file.startswith(os.path.dirname(self.case.file) + os.sep):
                found = [file, traceback.tb_lineno]
            traceback = traceback.tb_next
        return found

    def _watch(self):
        """A rank that waits for ever is told by where it waits."""
        main = threading.main_thread().ident

        def told():
            time.sleep(self.options.timeout)
            if self.over:
                return
            frame = sys._current_frames().get(main)
            while frame is not None and not os.path.abspath(frame.f_code.co_filename).startswith(os.path.dirname(self.case.file) + os.sep):
                frame = frame.f_back
            self.found["waits"] = [frame.f_code.co_filename, frame.f_lineno] if frame else [None, 0]
            self.tell()
            os._exit(1)

        threading.Thread(target=told, daemon=True).start()

    def tell(self):
        """Its result as a file; then it stays until all ranks have theirs. Those that wait for it do not see it go."""
        if self.options.out is None:
            return
        path = os.path.join(self.options.out, "logical" if self.rank is None else "rank-%d" % self.rank)
        with open(path + ".part", "w", encoding="utf-8") as file:
            json.dump(self.found, file)
        os.replace(path + ".part", path)
        end = time.monotonic() + 2 * self.options.timeout
        while self.rank is not None and time.monotonic() < end:
            if all(os.path.exists(os.path.join(self.options.out, "rank-%d" % rank)) for rank in range(self.case.world)):
                return
            time.sleep(0.02)


def as_rank(case, options):
    """One rank of the plan."""
    import torch.distributed as dist

    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    if world != case.world:
        sys.exit("replay.py: the plan has %d ranks, and %d were started" % (case.world, world))
    where = {"init_method": "file://" + os.path.join(options.out, "store")} if options.out else {}
    dist.init_process_group("gloo", rank=rank, world_size=world, **where)
    process = Process(case, rank, options)
    process.run()
    if not options.out and process.found.get("done"):
        print(number_line(case, "rank %d" % rank, process.found), flush=True)
    if dist.is_initialized() and process.found.get("done"):
        dist.destroy_process_group()


def start(case, options, side, folder):
    """What each process of a side found, in order."""
    words = [sys.executable, os.path.abspath(__file__), "--side", side, "--dtype", options.dtype, "--timeout", str(options.timeout), "--out", folder]
    words += [word for word, given in (("--verbose", options.verbose), ("--numbers", options.numbers)) if given]
    ranks = [None] if side == "logical" else range(case.world)
    running = []
    for rank in ranks:
        environment = dict(os.environ)
        if rank is not None:
            environment.update(RANK=str(rank), WORLD_SIZE=str(case.world), LOCAL_RANK=str(rank), LOCAL_WORLD_SIZE=str(case.world))
            if sys.platform == "linux":
                environment.setdefault("GLOO_SOCKET_IFNAME", "lo")
        running.append(subprocess.Popen(words, env=environment))
    found = []
    for rank, process in zip(ranks, running):
        process.wait()
        path = os.path.join(folder, "logical" if rank is None else "rank-%d" % rank)
        if os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                found.append(json.load(file))
        else:
            found.append({"raised": [None, 0, "it ended with %d" % process.returncode]})
    return found


def number_line(case, who, found):
    """"rank 1: loss is 0.25", or "rank 1: done" for one that has no such output."""
    if "value" in found:
        return "%s: %s is %.9g" % (who, case.difference["output"], found["value"])
    return "%s: done" % who


def fate_line(who, found):
    """'rank 1 waits at plan/pp.py:42: dist.recv(x, 0)'"""
    if "done" in found:
        return "%s ended its step" % who
    how = "waits" if "waits" in found else "raised"
    file, line = found[how][:2]
    text = "%s %s" % (who, how)
    if file:
        text += " at %s:%d" % (os.path.relpath(file, HERE), line)
    return text + ": " + (found[how][2] if how == "raised" else line_of(file, line) if file else "outside of the plan")


def compare(case, options, dtype):
    """Both sides: 0 as predicted, 1 not, 3 not run. -> (code, lines to print).

    A number is as predicted within CLOSE of the larger of the two predicted ones."""
    options.dtype, options.numbers = dtype, True
    with tempfile.TemporaryDirectory() as folder:
        logical = start(case, options, "logical", folder)[0]
        ranks = start(case, options, "plan", folder)
    wrong = case.difference
    lines = [fate_line("the model", logical)] if "done" not in logical else []
    stuck = [rank for rank, found in enumerate(ranks) if "done" not in found]
    if wrong is None or stuck:
        lines += [fate_line("rank %d" % rank, found) for rank, found in enumerate(ranks)]
    if wrong is None:
        as_told = bool(stuck) and "done" in logical
        lines.append("confirmed: the plan does not come to its end" if as_told else "not confirmed: every rank ended its step" if not stuck else "not confirmed")
        return (0 if as_told else 1), lines
    plan = ranks[wrong["rank"]]
    if "value" not in logical or "value" not in plan:
        return 3, lines
    magnitude = max(abs(wrong["logical"]), abs(wrong["plan"]))
    close = all(math.isfinite(x["value"]) and abs(x["value"] - wrong[side]) <= CLOSE[options.dtype] * magnitude for side, x in (("logical", logical), ("plan", plan)))
    lines.append("%s at %s of rank %d, in %s" % (wrong["output"], wrong["position"], wrong["rank"], options.dtype))
    for side, who, found in (("logical", "model", logical), ("plan", "plan", plan)):
        lines.append("  the %-5s predicted %.9g, replayed %.9g" % (who, wrong[side], found["value"]))
    lines.append("confirmed: the two sides part as predicted" if close else "not confirmed: other numbers than predicted")
    return (0 if close else 1), lines


def main():
    parser = argparse.ArgumentParser(description="Runs a refutation of opguard prove: see README.md.")
    parser.add_argument("--side", choices=("logical", "plan"), help="this side alone")
    parser.add_argument("--dtype", choices=("float64", "float32"), help="torch's default type [both sides: float64, and float32 where that does not do; one side: float32]")
    parser.add_argument("--timeout", type=float, default=60, metavar="S", help="a rank whose step takes longer waits for ever [60]")
    parser.add_argument("--verbose", action="store_true", help="show whole tracebacks")
    parser.add_argument("--out", help=argparse.SUPPRESS)  # a folder for results, of processes that this program starts
    parser.add_argument("--numbers", action="store_true", help=argparse.SUPPRESS)  # nobody watches: no optimizer ends the step
    options = parser.parse_args()
    sys.dont_write_bytecode = True
    os.environ["TORCHDYNAMO_DISABLE"] = "1"  # as where it was proved
    os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")
    warnings.simplefilter("ignore")
    case = Case()
    if options.side is None:
        asked = options.dtype
        code, lines = compare(case, options, asked or "float64")
        if code and case.difference and not asked:
            again, narrow = compare(case, options, "float32")
            if again == 0:
                code, lines = again, narrow
        print("\n".join(lines))
        return code
    options.dtype = options.dtype or "float32"
    if options.side == "logical":
        process = Process(case, None, options)
        process.run()
        found = [process.found]
    elif "RANK" in os.environ:
        as_rank(case, options)
        return 0
    else:
        with tempfile.TemporaryDirectory() as folder:
            found = start(case, options, "plan", folder)
    if options.out is None:
        for rank, one in enumerate(found):
            who = "the model" if options.side == "logical" else "rank %d" % rank
            print(number_line(case, who, one) if "done" in one else fate_line(who, one))
    return 0 if all("done" in one for one in found) else 3


if __name__ == "__main__":
    sys.exit(main())
