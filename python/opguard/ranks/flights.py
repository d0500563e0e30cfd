"""Flights: what is known of the collectives of this process, whoever sees their calls (collectives.py, functional.py,
ddp.py, fsdp.py). These are their groups' names, their numbers, and which have been launched and not yet landed.

    work = dist.all_reduce(g, async_op=True)      flight 7 of group "0-3" is launched
    work.wait()                                   it lands: its outputs may be read

A group is named by its members, so that all ranks and both runs name it alike. Counterexample: torch's own name
of a group is a counter, which differs where one run makes a group more.

The cost: a weak table; a flight that nobody waits for is kept until its work has ended (_MANY)."""

import functools
import sys
import weakref

from opguard import _rt
from opguard.load import messages

_MANY = 256  # works nobody has waited for, before the ended ones are looked for

_world = None  # torch.distributed.distributed_c10d
_names = weakref.WeakKeyDictionary()  # process group -> its name
_made = {}  # members -> groups made of them
_called = {}  # group's name -> what the program calls it
_count = {}  # group's name -> collectives launched
observers = {}  # of training/exchange.py: what stands for a flight that is observed too
_works = {}  # id(work) -> (work, flights), until somebody waits for it
_coalescing = {}  # id(process group) -> flights
_place = {}  # as place() said last
_unknown = 0  # collectives whose end nobody in Python waited for


def settings():
    found = {"group." + members: name for members, name in _called.items()}
    if _unknown:
        found["collectives_not_waited"] = str(_unknown)
    return found


def place():
    """{"rank": ..., "world": ...} of the default process group, also once it is destroyed; {} before there is one."""
    distributed = sys.modules.get("torch.distributed")
    try:
        if distributed is not None and distributed.is_available() and distributed.is_initialized():
            _place.update(rank=str(distributed.get_rank()), world=str(distributed.get_world_size()))
    except Exception:
        pass  # a half-made process group has no rank yet
    return dict(_place)


def guarded(function):
    """What we do beside the program's call must not fail it."""

    @functools.wraps(function)
    def safe(*args):
        try:
            return function(*args)
        except Exception as error:
            if not getattr(guarded, "told", False):
                guarded.told = True
                messages.complain("warning: a collective is not recorded: %s: %s" % (type(error).__name__, error))
            return None

    return safe


def set_world(module):
    global _world
    _world = module


def world():
    """torch.distributed.distributed_c10d, None before it is imported."""
    return _world


def tracing():
    compiler = getattr(sys.modules["torch"], "compiler", None)
    return bool(compiler and getattr(compiler, "is_compiling", bool)())


# --- names and numbers ---


def ranges(ranks):
    """[0, 1, 2, 5] -> "0-2,5". [3, 11, 19, 27] -> "3-27/8", so that one of 10,000 ranks is not named by a thousand numbers."""
    ranks, words, at = sorted(ranks), [], 0
    while at < len(ranks):
        end = at + 1
        stride = ranks[end] - ranks[at] if end < len(ranks) else 1
        while end < len(ranks) and ranks[end] - ranks[end - 1] == stride:
            end += 1
        if end - at < (2 if stride == 1 else 4):
            words.append(str(ranks[at]))
            at += 1
            continue
        words.append("%d-%d" % (ranks[at], ranks[end - 1]) + ("/%d" % stride if stride > 1 else ""))
        at = end
    return ",".join(words)


def group_name(group):
    """The same on every member, since groups of the same ranks are made in the same order on all of them.

        "0-3" for ranks 0 to 3; "0-3#1" for a second group of the same"""
    name = _names.get(group)
    if name is None:
        # All that exist, in order of creation: first use may differ between ranks.
        for known, members in list(getattr(_world, "_world", _world).pg_group_ranks.items()):
            if isinstance(known, _world.ProcessGroup) and known not in _names:  # not a group without this rank
                members = ranges(members)
                number = _made[members] = _made.get(members, -1) + 1
                _names[known] = own = members + ("#%d" % number if number else "")
                if word := called(known):
                    _called[own] = word
        name = _names.get(group)
    if name is None:
        name = _names[group] = str(getattr(group, "group_name", "") or "?")
    return name


def called(group):
    """What the program calls a group: "tp" for a dimension of a DeviceMesh, "TENSOR_MODEL_PARALLEL_GROUP" in Megatron; "" where it calls it nothing."""
    name = str(getattr(group, "group_desc", "") or "")
    return "" if name in ("undefined", "default_pg", "mesh_default") else name.removeprefix("mesh_")


def next_number(group):
    """From 1, in the order of calls on this rank, which is that of the group's other ranks too."""
    _count[group] = _count.get(group, 0) + 1
    return _count[group]


def last_number(group):
    return _count.get(group, 0)


def launch(boundary, group, inputs=(), outputs=(), scalars="", structure=False, numbered=True):
    """The flight of a collective that is called next; None where nothing is recorded. Names and values of
    inputs and outputs: ((name, tensors, flags), ...).

        numbered=False    it belongs to a collective that gets the number itself
        structure         what goes in and out are no values of the program, as a pickled object's bytes"""
    number = next_number(group) if numbered else 0
    flight = _rt.collective(boundary, group, number, tuple(inputs), tuple(outputs), scalars, structure)
    if observers:
        return observers["launched"](flight, boundary, group, number, inputs, outputs, scalars, structure)
    return flight


def channel_name(group, sending, peer, tag):
    """"0-3:0>1/5": from rank 0 to rank 1 of the group "0-3", with tag 5. Without a tag it is "0-3:0>1". Both ends name
    it alike."""
    ends = (group.rank(), peer) if sending else (peer, group.rank())
    return "%s:%d>%d%s" % (group_name(group), *ends, "/%d" % tag if tag else "")


class FromAnySource:
    """The flight of a recv from whoever sends. Who did is known as it lands: then it gets its channel, and a number there.

    Counterexample: one that was posted before a recv of a named rank, and is waited for behind it. Its number is the later one."""

    def __init__(self, flight, group, tag):
        self.flight, self.group, self.tag, self.work = flight, group, tag, None
        self.cancel = flight.cancel

    def land(self, late):
        try:
            channel = channel_name(self.group, False, self.work._source_rank(), self.tag)
            self.flight.channel(channel, next_number(channel))
        except Exception:
            pass  # not every backend tells
        self.flight.land(late)


def coalesce(group):
    """From now on the group's collectives end together."""
    _coalescing[id(group)] = []


def coalesced(group):
    """What was launched since, and no more."""
    return _coalescing.pop(id(group), ())


@guarded
def track(flight, work, group=None):
    """work: what the launch returned; None where it had ended by then."""
    if flight is None:
        return
    if isinstance(flight, FromAnySource):
        flight.work = work
    together = _coalescing.get(id(group))
    if together is not None:
        together.append(flight)
    elif work is None or not hasattr(work, "wait"):
        flight.land(False)
    else:
        if len(_works) >= _MANY:
            sweep()
        _works.setdefault(id(work), (work, []))[1].append(flight)


def waiting():
    """Is there a flight that a wait may land?"""
    return bool(_works)


def tracked(work):
    return id(work) in _works


@guarded
def landed(key):
    """key: the id of the work that was waited for; None is nobody's."""
    for flight in _works.pop(key, (None, ()))[1]:
        flight.land(False)


@guarded
def sweep():
    """At a step boundary: what nobody in Python has waited for, but has ended; never waits."""
    global _unknown
    for key, (work, _) in list(_works.items()):
        completed = getattr(type(work).is_completed, "_opguard", type(work).is_completed)
        if not completed(work):
            continue
        for flight in _works.pop(key, (None, ()))[1]:
            _unknown += 1
            flight.land(True)


def close(functional):
    """functional: how many functional collectives were never waited for."""
    global _unknown
    sweep()
    _unknown += functional + sum(len(flights) for _, flights in _works.values())
