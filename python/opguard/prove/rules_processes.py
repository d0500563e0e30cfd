"""Runs the cases of rules_collectives.py: on gloo's processes for numbers, and as one rank's capture for the operators.

    real-3-1.json               what rank 1 of three processes got in each case, or why gloo has no such collective
    collective-7-rank-1.json    case 7 as rank 1 of a plan would be captured

Counterexample: both in one process. The fake group stays in torch's tables, and gloo's is not found there any more.
"""

import datetime
import importlib
import inspect
import json
import os
import re
import sys
import traceback
import warnings

import torch
import torch.distributed as dist

from . import world
from .problem import said
from .rules_case import recorded
from .rules_collectives import SETTINGS, listed

SECONDS = 60  # until a process that waits gives up


def inputs_of(number, rank, size):
    """The same on gloo and where the rank is captured."""
    torch.manual_seed(1000 * number + rank)
    return {"x": torch.randn(2 * size, 3, dtype=torch.float64), "y": torch.randn(2, 3, dtype=torch.float64)}


def _group(ranks, processes):
    """The group of a case. sort_ranks=False keeps the order of its ranks, where torch would sort them otherwise."""
    if ranks == tuple(range(processes)):
        return dist.group.WORLD
    unsorted = {"sort_ranks": False} if "sort_ranks" in inspect.signature(dist.new_group).parameters else {}
    return dist.new_group(list(ranks), **unsorted)


def _stepped(function, group, state):
    """A rank outside of the group does nothing. Inputs are copied: a case may write them."""
    if group is dist.GroupMember.NON_GROUP_MEMBER:
        return {}
    found = function(dist.get_rank(group), dist.get_world_size(group), group, *[tensor.clone() for tensor in state.values()])
    return {"out%d" % n: torch.ops._c10d_functional.wait_tensor(tensor) if type(tensor).__name__ == "AsyncCollectiveTensor" else tensor for n, tensor in enumerate(found)}


def _ran(function, group, state):
    """What gloo gives: numbers, or why it has none."""
    try:
        return {name: tensor.detach().double().reshape(-1).tolist() for name, tensor in _stepped(function, group, state).items()}
    except Exception as error:
        return re.sub(r"\[rank\d+\]:\[[^]]*\] ", "", said(error))  # the rank and the time of a check in C++


def _real(rank, processes, folder):
    """One of gloo's processes: all cases of so many processes, one after the other. They find one another by a file."""
    dist.init_process_group("gloo", rank=rank, world_size=processes, init_method="file://%s/store-%d" % (folder, processes), timeout=datetime.timedelta(seconds=SECONDS))
    groups = {}
    found = {}
    for number, (_, count, ranks, function, _) in enumerate(listed()):
        if count != processes:
            continue
        if ranks not in groups:
            groups[ranks] = _group(ranks, processes)
        found[number] = _ran(function, groups[ranks], inputs_of(number, rank, len(ranks)))
    with open(os.path.join(folder, "real-%d-%d.json" % (processes, rank)), "w", encoding="utf-8") as file:
        json.dump(found, file)
    dist.destroy_process_group()


def _captured(rank, processes, folder):
    """One rank under the fake group, as a plan's rank is captured. A case that cannot be captured is told in its
    file."""
    world.before_plan()
    world.start(rank, processes)
    groups = {}
    for number, (_, count, ranks, function, _) in enumerate(listed()):
        if count != processes:
            continue
        if ranks not in groups:
            groups[ranks] = _group(ranks, processes)
        state = inputs_of(number, rank, len(ranks))
        try:
            found, _ = recorded(lambda function=function, group=groups[ranks], state=state: _stepped(function, group, state), state)
            found.update(rank=rank, world=processes)
        except BaseException as error:  # NotCaptured too
            found = {"raised": "the capture of rank %d raises %s" % (rank, said(error))}
        with open(os.path.join(folder, "collective-%d-rank-%d.json" % (number, rank)), "w", encoding="utf-8") as file:
            json.dump(found, file, allow_nan=False, separators=(",", ":"))


def _fork(function, *args):
    """The child's process number. What the child raises is printed, and it ends with 1; it runs nothing of the
    parent's."""
    warnings.simplefilter("ignore")  # that names of collectives are old ones
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        function(*args)
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def write(folder):
    """Before torch has computed anything: a process that is forked later may hang. Returns what rules.json says of them."""
    os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")
    if sys.platform == "linux":
        os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    importlib.import_module("torch._dynamo")  # functional collectives do, for seconds: once here
    failed = set()
    for processes in sorted({count for count, _ in SETTINGS}):
        real = [_fork(_real, rank, processes, folder) for rank in range(processes)]
        if any([os.waitpid(child, 0)[1] for child in real]):
            failed.add(processes)
        for child in [_fork(_captured, rank, processes, folder) for rank in range(processes)]:
            if os.waitpid(child, 0)[1]:
                raise SystemExit("rules.py: the collectives of %d ranks cannot be captured" % processes)
    return [_about(folder, number, one, failed) for number, one in enumerate(listed())]


def _about(folder, number, one, failed):
    """What rules.json says of a case: "expected" with each rank's numbers, "lacking" why gloo has none, "raised" for a
    mistake.

    Only where every rank that raised said what the case allows it is lacking."""
    name, processes, _, _, lacking = one
    about = {"name": name, "world": processes}
    if processes in failed:
        return dict(about, lacking="gloo's processes have not come to their end")
    answers = []
    for rank in range(processes):
        with open(os.path.join(folder, "real-%d-%d.json" % (processes, rank)), encoding="utf-8") as file:
            answers.append(json.load(file)[str(number)])
    why = [answer for answer in answers if isinstance(answer, str)]
    if not why:
        return dict(about, expected=answers)
    return dict(about, **{"lacking" if lacking and all(lacking in answer for answer in why) else "raised": why[0]})
