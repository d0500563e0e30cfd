"""Loaders: what is taken from them, sample for sample.

    for x, y in loader:      loader 0, batch 0 of pass 0 with a digest a row, ..., pass 0 with 12 batches taken, ended
    break after 3            pass 0 with 3 batches taken, not ended: said as the next pass begins, or the process ends

A row's digest is of all tensors of a batch that have as many rows. A row of more than 64 KiB is read in part. Nothing
of a worker's is observed: what it made is seen where it is taken. Counterexample: a loader that is no DataLoader, as a
generator of the program's, has no row here.

The cost: 0.1 us a row, and the reading of at most 64 KiB of it."""

import functools
import sys
import weakref
import zlib

from opguard import _rt
from opguard.load import importing
from opguard.training import api, hooks, kinds, tensors, where

_MOST_ROWS, _MOST_ROW_BYTES, _MOST_TOKENS = 4096, 1 << 16, 1 << 18
_IGNORED = -100  # the label that a loss leaves out, by torch's default


class Pass:
    """A pass over a loader that goes on.

    number: which pass of its loader, from 0. taken: batches so far. place: where the last one was taken. The iterator
    is held weakly, since a program that drops it ends its workers by that."""

    __slots__ = ("loader", "number", "taken", "place", "ref", "over")

    def __init__(self, loader, number, iterator, place):
        self.loader, self.number, self.taken, self.place, self.over = loader, number, 0, place, False
        self.ref = weakref.ref(iterator)


_loaders = {}  # id -> [weak reference, number, passes begun, the pass that goes on]
_passes = {}  # id of an iterator -> Pass
_state = {"next": 0}


def reset():
    _loaders.clear()
    _passes.clear()
    _state["next"] = 0


def _known(loader):
    """A loader's entry; its row is said as it is met. An id may be another loader's by now: the weak reference
    tells."""
    known = _loaders.get(id(loader))
    if known is None or known[0]() is not loader:
        known = _loaders[id(loader)] = [weakref.ref(loader), _state["next"], 0, None]
        _state["next"] += 1
        _say_loader(loader, known[1])
    return known


def _say_loader(loader, number):
    """Length and batches are asked of torch's own samplers only: to ask another's __len__ would run the program's
    code."""
    data = sys.modules["torch.utils.data"]
    batches = loader.batch_sampler
    sampler = getattr(batches, "sampler", None) or loader.sampler
    distributed = isinstance(sampler, data.distributed.DistributedSampler) or hasattr(sampler, "num_replicas")
    random = isinstance(sampler, (data.RandomSampler, data.WeightedRandomSampler, data.SubsetRandomSampler))
    shuffled = bool(getattr(sampler, "shuffle", False)) or random
    for owner in (sampler, batches, loader.dataset):
        if callable(getattr(type(owner), "set_epoch", None)):
            api.wrap_set_epoch(type(owner))
    plain = not isinstance(loader.dataset, data.IterableDataset)
    # Of torch's own samplers only: the length of another one is the program's code.
    known = plain and type(sampler).__module__.startswith("torch.") and (batches is None or type(batches).__module__.startswith("torch."))
    kinds.say("loader", (
        number, type(loader).__name__, loader.batch_size if loader.batch_size is not None else getattr(batches, "batch_size", None),
        bool(getattr(loader, "drop_last", False) or getattr(batches, "drop_last", False)), loader.num_workers, type(sampler).__name__,
        shuffled, distributed, len(sampler) if known else None, len(batches if batches is not None else sampler) if known else None, where.here(),
    ))  # fmt: skip


def _begins(token, iterator, args, kwargs):
    """Behind __iter__. A pass of the same loader that was left in the middle is given up by that."""
    known = _known(args[0])
    _give_up(known[3])
    # A loader that keeps its workers gives the same iterator again.
    known[3] = _passes[id(iterator)] = Pass(known[1], known[2], iterator, where.here())
    known[2] += 1


def _give_up(running):
    if running is not None and not running.over:
        running.over = True
        kinds.say("pass", (running.loader, running.number, running.taken, False, running.place))


def close():
    """The process ends."""
    if _rt.observing() and kinds.watching():
        for known in list(_loaders.values()):
            _give_up(known[3])


def _of(iterator):
    """The pass of an iterator that goes on; None of one that was made before a log began, or that is over."""
    found = _passes.get(id(iterator))
    return found if found is not None and found.ref() is iterator and not found.over else None


def _taken(iterator, data):
    """One batch. The place may be None where a library takes it, as a trainer does: then that of the pass stays."""
    running = _of(iterator)
    if running is None:
        return
    running.place = where.here() or running.place
    torch = sys.modules["torch"]
    with torch._C.DisableTorchFunction():
        shapes = tensors.forms(data, "batch")
        kinds.say("batch", (running.loader, running.number, running.taken, rows(data), shapes, running.place, _ends_are_targets(data)))
    running.taken += 1


def _ended(iterator):
    running = _of(iterator)
    if running is not None:
        running.over = True
        kinds.say("pass", (running.loader, running.number, running.taken, True, running.place))


def rows(data):
    """A digest of each sample of a batch."""
    found = []
    tensors.collect(data, "", found)
    held = [t for _, t in found if t.dim() and tensors.is_plain(t)]
    if not held:
        return _plain_rows(data)
    with tensors.quietly():
        return _rt.row_hashes(tuple([_thinned(t.detach()) for t in held if t.numel()]), _MOST_ROWS)


def _ends_are_targets(data):
    """Of texts padded with the token that ends them: is an end that is attended to a label? None where it cannot be told."""
    if not hasattr(data, "get"):
        return None
    torch = sys.modules["torch"]
    tokens, mask, labels = (data.get(name) for name in ("input_ids", "attention_mask", "labels"))
    if not all(isinstance(t, torch.Tensor) and tensors.is_plain(t) and t.device.type == "cpu" and t.dim() == 2 for t in (tokens, mask, labels)):
        return None
    if not tokens.shape == mask.shape == labels.shape or tokens.numel() > _MOST_TOKENS:
        return None
    with tensors.quietly():
        attended, ignored = mask != 0, labels == _IGNORED
        if not torch.equal(labels[~ignored], tokens[~ignored]):
            return None  # shifted already: behind an end comes nothing
        padding = tokens[~attended].unique()
        if padding.numel() != 1:
            return None
        ends = attended & (tokens == padding)
        ends &= (~ignored).any(1, keepdim=True)
        return bool((~ignored[ends]).any()) if bool(ends.any()) else None


def _thinned(tensor):
    """Of rows that are long, some elements each."""
    size = tensor[0].numel() * tensor.element_size()
    if size <= _MOST_ROW_BYTES:
        return tensor
    return tensor[:_MOST_ROWS].reshape(min(tensor.shape[0], _MOST_ROWS), -1)[:, :: size // _MOST_ROW_BYTES + 1]


def _plain_rows(data):
    """Of a list of texts or numbers."""
    if isinstance(data, dict):
        data = next(iter(data.values()), ())
    if not isinstance(data, (list, tuple)) or not all(isinstance(item, (str, bytes, int, float)) for item in data[:_MOST_ROWS]):
        return []
    return [zlib.crc32(repr(item).encode("utf-8", "replace")) for item in data[:_MOST_ROWS]]


def _wrap_next(base):
    """On the base class of all iterators. StopIteration ends the pass; any other error is the program's, and leaves it
    open."""
    original = base.__next__
    if getattr(original, "_opguard_training", False):
        return
    taken, ended = hooks.guarded(_taken), hooks.guarded(_ended)

    @functools.wraps(original)
    def __next__(self, *args, **kwargs):
        if not kinds.watching() or hooks.compiling():
            return original(self, *args, **kwargs)
        try:
            data = original(self, *args, **kwargs)
        except StopIteration:
            hooks.unwatched(ended, self)
            raise
        hooks.unwatched(taken, self, data)
        return data

    hooks.replace(base, "__next__", original, __next__)


def _on_data(data):
    hooks.around(data.DataLoader, "__iter__", end=_begins, family="loader")
    _wrap_next(sys.modules["torch.utils.data.dataloader"]._BaseDataLoaderIter)
    api.wrap_set_epoch(data.distributed.DistributedSampler)


def install(torch):
    kinds.at_begin(reset)
    importing.when_imported("torch.utils.data", _on_data)
