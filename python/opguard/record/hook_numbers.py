"""A hook of ours takes no number that the program's would have had: as src/runtime/host/hook_numbers.h, which says why.

    with apart():
        optim.register_optimizer_step_post_hook(f)      number 2^41
    model.register_forward_hook(g)                      the program's number is the one that it has without us"""

import contextlib
import itertools
import sys

_own = itertools.count(1 << 41)


@contextlib.contextmanager
def apart():
    """What is registered within has a number of our row."""
    handles = getattr(sys.modules.get("torch.utils.hooks"), "RemovableHandle", None)
    if handles is None:
        yield
        return
    programs, handles.next_id = handles.next_id, next(_own)
    try:
        yield
    finally:
        handles.next_id = programs
