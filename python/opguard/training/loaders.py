"""DataLoaders: what each batch holds, sample by sample, and how each pass ends.

A sample is told by a digest of its row in every tensor of the batch. The cost: a digest a sample, of at most _MOST rows
and _BYTES bytes a batch; a batch that is larger is told by its first rows. Nothing is kept but the digests."""

import functools
import itertools
import sys
import weakref

from opguard import _rt
from opguard.training import forms, objects, sink, where

_MOST = 4096
_BYTES = 1 << 24

_passes = {}  # loader's number -> passes begun
_iterators = weakref.WeakKeyDictionary()  # iterator -> [loader, pass, taken, told over]


def install(data):
    """data: torch.utils.data.dataloader"""
    loader, base = data.DataLoader, data._BaseDataLoaderIter
    original_iter, original_next = loader.__iter__, base.__next__

    @functools.wraps(original_iter)
    def __iter__(self):
        iterator = original_iter(self)
        _begun(self, iterator)
        return iterator

    @functools.wraps(original_next)
    def __next__(self):
        try:
            batch = original_next(self)
        except StopIteration:
            _over(self, True)
            raise
        _taken(self, batch)
        return batch

    loader.__iter__ = __iter__
    base.__next__ = __next__


@sink.guarded
def _begun(loader, iterator):
    number, fresh = objects.loaders.of(loader)
    if fresh:
        _say(loader, number)
    before = _iterators.get(iterator)
    if before is not None:  # persistent workers: one iterator for all passes
        before[1], before[2], before[3] = _next_pass(number), 0, False
        return
    for other, entry in list(_iterators.items()):
        if entry[0] == number and not entry[3]:
            entry[3] = True
            sink.see("pass", (number, entry[1], entry[2], False, where.place(3)))
    _iterators[iterator] = [number, _next_pass(number), 0, False]


def _next_pass(number):
    _passes[number] = _passes.get(number, -1) + 1
    return _passes[number]


def _length(thing):
    try:
        return len(thing)
    except Exception:
        return None


def _say(loader, number):
    sampler = getattr(getattr(loader, "batch_sampler", None), "sampler", None) or getattr(loader, "sampler", None)
    kind = type(sampler).__name__
    distributed = hasattr(sampler, "num_replicas")
    shuffled = bool(getattr(sampler, "shuffle", False)) if distributed else kind == "RandomSampler"
    if getattr(sampler, "replacement", False):
        kind, shuffled = kind + " with replacement", True
    iterable = hasattr(type(loader.dataset), "__iter__") and not hasattr(type(loader.dataset), "__getitem__")
    sink.see(
        "loader",
        (number, type(loader).__name__, loader.batch_size, bool(loader.drop_last), loader.num_workers, kind, shuffled, distributed,
         _length(loader.dataset), None if iterable else _length(loader), where.place(3)),
    )  # fmt: skip


@sink.guarded
def _taken(iterator, batch):
    entry = _iterators.get(iterator)
    if entry is None or entry[3]:
        return
    torch = sys.modules["torch"]
    found = []
    values = batch.items() if isinstance(batch, dict) else enumerate(batch) if isinstance(batch, (list, tuple)) else ((0, batch),)
    forms.tensors_in(list(values), found, "", torch.Tensor)
    index = entry[2]
    entry[2] += 1
    sink.see("batch", (entry[0], entry[1], index, _rows(torch, found), forms.described(found), where.place(3)))


def _rows(torch, found):
    readable = [t for _, t in found if t.dim() > 0 and t.device.type == "cpu" and t.layout is torch.strided]
    if not readable:
        return []
    count = readable[0].shape[0]
    readable = [t.detach() for t in readable if t.shape[0] == count]
    size = sum(t.numel() * t.element_size() for t in readable)
    if count > _MOST or size > _BYTES:
        count = min(count, _MOST, max(1, count * _BYTES // max(size, 1)))
    pieces = list(itertools.chain.from_iterable(t[:count].unbind(0) for t in readable))
    digests = _rt.hashes(pieces)
    rows = [0] * count
    for i, digest in enumerate(digests):
        row = i % count
        rows[row] = (rows[row] * 0x9E3779B97F4A7C15 + (digest or 0) + 1) & 0xFFFFFFFFFFFFFFFF
    return rows


@sink.guarded
def _over(iterator, ended):
    entry = _iterators.get(iterator)
    if entry is None or entry[3]:
        return
    entry[3] = True
    sink.see("pass", (entry[0], entry[1], entry[2], ended, where.place(3)))
