"""Files of tensors: what torch.save and safetensors are about to write is recorded, wherever they are called.

    torch.save(net.state_dict(), "c.pt")      an event <saved> with each tensor of it, before the file is written

Recorded before: so a file that cannot be written has been recorded all the same. Counterexample: a file that
pickle or numpy writes."""

import functools

from opguard import _rt
from opguard.load import importing


def _recording(original):
    @functools.wraps(original)
    def save(*args, **kwargs):
        # The first parameter, whatever it is called there: obj, tensors.
        value = args[0] if args else next(iter(kwargs.values()), None)
        if _rt.recording() and value is not None:
            _rt.saved(value)
        return original(*args, **kwargs)

    save._opguard = True
    return save


def _wrap(name, holders):
    original = getattr(holders[0], name, None)
    if original is None or getattr(original, "_opguard", False):
        return
    wrapped = _recording(original)
    for holder in holders:
        # Pickled by its module and name, it must be the same function there.
        if getattr(holder, name, None) is original:
            setattr(holder, name, wrapped)


def install(torch):
    _wrap("save", (torch.serialization, torch))
    importing.when_imported("safetensors.torch", lambda module: [_wrap(name, (module,)) for name in ("save_file", "save")])
