"""DataLoaders: what their order and their workers' numbers come from, and whether `set_epoch` is called.

    loader = DataLoader(data, sampler=DistributedSampler(data))     made in train.py:20, two passes, both with epoch 0
    "order": [2631659181, ...]      crc32 of "[17, 3, 255, 8]", the indices of the first batch
    "batches": [...]                crc32 of each batch's bytes

The indices and the bytes of the first batches are kept as digests. Two runs of one program show by them an order that
comes from a set, from time, from a folder's listing. Nothing is drawn and no batch is changed; each pass costs the
reading of LOOKED batches.

Counterexample: a loader of the program's own, which is a plain loop. What it draws is seen by drawing.py, its order
not."""

import ctypes
import functools
import sys
import weakref
import zlib

from opguard.observe import facts, places

LOOKED = 16  # batches of a loader whose digests are kept

_entries = weakref.WeakKeyDictionary()  # loader -> entry
_iterators = weakref.WeakKeyDictionary()  # iterator -> entry
_samplers = weakref.WeakKeyDictionary()  # sampler -> (place, calls of set_epoch before its next pass)
_all = []
backward = 0  # backward passes begun
batches = 0
before_backward = 0  # batches taken before the first


def install(data):
    """data: torch.utils.data"""
    loader = data.DataLoader
    _after_init(loader, _made)
    _wrap_iter(loader)
    from torch.utils.data import dataloader

    base = dataloader._BaseDataLoaderIter
    _wrap_next(base)
    _after_init(data.distributed.DistributedSampler, _note_sampler)
    facts.put("worker_seeds_numpy", _worker_seeds_numpy())
    _watch_fetch()


def _worker_seeds_numpy():
    """Whether this torch seeds numpy in each worker: the source of the worker's loop tells. Where there is no source it
    is taken that it does."""
    import inspect

    from torch.utils.data._utils import worker

    try:
        return "numpy" in inspect.getsource(worker._worker_loop)
    except OSError:
        return True


def _after_init(kind, tell):
    original = kind.__init__

    @functools.wraps(original)
    def __init__(self, *args, **kwargs):
        original(self, *args, **kwargs)
        try:
            tell(self)
        except Exception as error:
            facts.put("loader_problem", "%s: %s" % (type(error).__name__, error))

    kind.__init__ = __init__


def _note_sampler(sampler):
    if sampler not in _samplers:
        _samplers[sampler] = {"place": places.caller(), "calls": 0}


def _with_epochs(loader):
    """What of a loader has `set_epoch`: sampler, batch sampler, its sampler, data set."""
    found = []
    for owner in (
        getattr(loader, "sampler", None),
        getattr(loader, "batch_sampler", None),
        getattr(getattr(loader, "batch_sampler", None), "sampler", None),
        getattr(loader, "dataset", None),
    ):
        if owner is not None and callable(getattr(owner, "set_epoch", None)) and not any(owner is f for f in found):
            found.append(owner)
    return found


def _wrap_set_epoch(kind):
    """Counts calls of set_epoch, on the class that defines it. A subclass that calls its base counts both, as only
    "called or not" is asked of the number."""
    for base in kind.__mro__:
        original = vars(base).get("set_epoch")
        if original is None or hasattr(original, "_opguard"):
            continue

        def told(self, *args, _original=original, **kwargs):
            result = _original(self, *args, **kwargs)
            try:
                _note_sampler(self)
                _samplers[self]["calls"] += 1
            except Exception:
                pass
            return result

        told = functools.wraps(original)(told)
        told._opguard = True
        setattr(base, "set_epoch", told)


def _made(loader):
    """What a loader was made of: one entry for each loader.

    `generator` and `sampler_generator` are seeds, None without one. `held`: generators in the data set, which each
    worker copies. `epochs`: what has set_epoch, and with which epoch each pass began."""
    if loader in _entries:
        return
    # Of a batch sampler of the program's own, the sampler below it.
    sampler = getattr(getattr(loader, "batch_sampler", None), "sampler", None) or loader.sampler
    entry = {
        "place": places.caller(), "workers": loader.num_workers, "sampler": type(sampler).__name__,
        "data": type(loader.dataset).__name__,
        "worker_init": getattr(loader, "worker_init_fn", None) is not None,
        "generator": _seed_of(getattr(loader, "generator", None)),
        "sampler_generator": _seed_of(getattr(sampler, "generator", None)), "held": [], "passes": 0, "order": [],
        "batches": [], "epochs": [],
        "method": str(getattr(getattr(loader, "multiprocessing_context", None), "_name", "") or ""),
    }  # fmt: skip
    if loader.num_workers > 0:
        entry["held"] = _held_generators(loader.dataset)
    for owner in _with_epochs(loader):
        _note_sampler(owner)
        _wrap_set_epoch(type(owner))
        entry["epochs"].append(
            {
                "kind": type(owner).__name__,
                "place": _samplers[owner]["place"],
                "shuffle": bool(getattr(owner, "shuffle", True)),
                "passes": [],
                "called": [],
            }
        )
    _entries[loader] = entry
    _all.append(entry)


def _seed_of(generator):
    return None if generator is None else str(generator.initial_seed())


def _held_generators(dataset):
    """Generators that a data set holds: each worker gets the same copy."""
    held = getattr(dataset, "__dict__", {})
    return sorted(name for name, value in held.items() if _is_generator(value))


def _is_generator(value):
    kind = type(value)
    return (kind.__module__, kind.__name__) in (
        ("numpy.random._generator", "Generator"), ("numpy.random.mtrand", "RandomState"), ("random", "Random"),
        ("torch._C", "Generator"),
    )  # fmt: skip


def _wrap_iter(loader):
    original = loader.__iter__

    @functools.wraps(original)
    def __iter__(self):
        entry = _entries.get(self)
        if entry is not None:
            _pass_begins(self, entry)
        iterator = original(self)
        if entry is not None:
            try:
                _iterators[iterator] = entry
            except TypeError:
                pass
        return iterator

    loader.__iter__ = __iter__


def _pass_begins(loader, entry):
    """Before the iterator is made, which asks for the first indices at once. `called`: calls of set_epoch since the
    pass before; 0 leaves the epoch, and so the order, as it was."""
    entry["passes"] += 1
    for owner, told in zip(_with_epochs(loader), entry["epochs"]):
        told["passes"].append(str(getattr(owner, "epoch", "")))
        told["called"].append(_samplers[owner]["calls"])
        _samplers[owner]["calls"] = 0


def _wrap_next(base):
    """Iterators of all loaders: batches are counted, the first LOOKED digested.

    before_backward: batches taken before the first backward pass."""
    inner, indices = base.__next__, base._next_index

    @functools.wraps(inner)
    def __next__(self):
        global batches, before_backward
        data = inner(self)
        batches += 1
        if backward == 0:
            before_backward += 1
        entry = _iterators.get(self)
        if entry is not None and len(entry["batches"]) < LOOKED:
            entry["batches"].append(digest(data))
        return data

    @functools.wraps(indices)
    def _next_index(self):
        index = indices(self)
        # The first are asked for while the iterator is made.
        entry = _iterators.get(self) or _entry_of(getattr(self, "_index_sampler", None))
        if entry is not None and len(entry["order"]) < LOOKED:
            entry["order"].append(zlib.crc32(repr(index).encode()))
        return index

    base.__next__, base._next_index = __next__, _next_index


def _entry_of(sampler):
    """The entry of the loader that has this sampler, while its iterator is being made and is not known yet."""
    for loader, entry in list(_entries.items()):
        if sampler is not None and sampler in (
            getattr(loader, "batch_sampler", None),
            getattr(loader, "sampler", None),
        ):
            return entry
    return None


def digest(data, depth=0, total=0):
    """One number of a batch: of its tensors' bytes and its plain values."""
    torch = sys.modules["torch"]
    if isinstance(data, torch.Tensor):
        return _digest_tensor(torch, data, total)
    if depth < 5 and isinstance(data, dict):
        for key, value in data.items():
            total = digest(value, depth + 1, zlib.crc32(str(key).encode(), total))
        return total
    if depth < 5 and isinstance(data, (list, tuple)):
        for value in data:
            total = digest(value, depth + 1, total)
        return total
    if isinstance(data, (int, float, str, bool, bytes)):
        return zlib.crc32(repr(data).encode(), total)
    if hasattr(data, "tobytes"):
        return zlib.crc32(data.tobytes(), total)
    return total


def _digest_tensor(torch, data, total):
    """A tensor's bytes, read where they lie. Left out are those on a device, not contiguous, of a subclass, or of 256
    MiB or more. To copy one would cost memory, and to wait for a device time."""
    if (
        type(data) is not torch.Tensor
        or data.device.type != "cpu"
        or data.layout is not torch.strided
        or not data.is_contiguous()
    ):
        return total
    size = data.numel() * data.element_size()
    return zlib.crc32(ctypes.string_at(data.data_ptr(), size), total) if 0 < size < 1 << 28 else total


def _watch_fetch():
    """In a worker: is it from a generator held by the data set that the numbers come?"""
    from torch.utils.data._utils import fetch, worker

    kind = fetch._MapDatasetFetcher
    original = kind.fetch

    @functools.wraps(original)
    def observed(self, index):
        held = _states(self.dataset) if worker.get_worker_info() is not None else {}
        data = original(self, index)
        for name, state in held.items():
            if state != _states(self.dataset).get(name):
                facts.add("worker_draws", {"held": name, "data": type(self.dataset).__name__})
        return data

    kind.fetch = observed


def _states(dataset):
    """{name: text of its state} of the generators that the data set holds, of each kind by its own way to be asked."""
    found = {}
    for name in _held_generators(dataset):
        value = dataset.__dict__[name]
        for read in ("bit_generator", "getstate", "get_state"):
            state = getattr(value, read, None)
            if state is not None:
                found[name] = (
                    repr(state.state)
                    if read == "bit_generator"
                    else repr(state())
                    if read == "getstate"
                    else repr(state() if not hasattr(value, "initial_seed") else state().tolist())
                )
                break
    return found


def backward_begins():
    global backward
    backward += 1


def gather():
    facts.put("loaders", _all)
    facts.put("batches_before_backward", before_backward)
    facts.put("mentions_set_epoch", _mentions("set_epoch"))


def _mentions(word):
    """Does a source file of the program's that is loaded say it?"""
    for module in list(sys.modules.values()):
        path = getattr(module, "__file__", None)
        if not isinstance(path, str) or not path.endswith(".py") or not places.is_users_file(path):
            continue
        try:
            with open(path, encoding="utf-8", errors="replace") as file:
                if word in file.read():
                    return True
        except OSError:
            continue
    return False
