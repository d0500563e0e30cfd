"""OPGUARD_OBSERVATIONS=1: the recording of this process observes its training too."""

import sys

from opguard.load import importing
from opguard.training import calls, checkpoints, library, loaders, ranks, steps, told, waiting, where

_installed = []


def begin(options):
    """Before torch is imported, or after."""
    where.begin(options.tree, options.packages)
    waiting.begin(options.check, options.check_stop)
    importing.when_imported("torch", on_torch)


def on_torch(torch):
    if _installed:
        return
    _installed.append(torch)
    calls.install(torch)
    steps.install(torch)
    library.install(torch)
    checkpoints.install(torch)
    ranks.install()
    for name, meet in (
        ("torch.utils.data.dataloader", loaders.install), ("torch.utils.data.distributed", library.on_samplers),
        ("torch.nn.parallel.distributed", library.on_ranks), ("torch._dynamo", calls.skip_frames),
    ):  # fmt: skip
        if name in sys.modules:
            meet(sys.modules[name])
        else:
            importing.when_imported(name, meet)
