"""Programs whose tensors are read by the example plugin (tests/device/example_values.c), and what their logs have in common with those of
the same programs without it."""

import copy

from conftest import build_dir
from runtime_log import CARRIED, ON_DEVICE, UNREADABLE, logs_in

PLUGIN = str(build_dir() / "tests" / "device" / "opguard_example_values.so")
EVENT = "boundary kind phase flags step micro_batch occurrence thread begin forward node scalars results group sequence".split()
SLOT = "kind name index flags version storage dtype device shape value flat digest pattern size_bytes".split()


def served(**settings):
    """Environment of a program whose tensors the plugin reads; settings: "ring" is OPGUARD_EXAMPLE_RING."""
    return {"OPGUARD_DEVICE_PLUGIN": PLUGIN, **{"OPGUARD_EXAMPLE_" + name.upper(): str(value) for name, value in settings.items()}}


def without_times(event):
    """Every field of an event and of its slots but times and where in memory the tensors happened to lie."""
    fields = tuple(getattr(event, field) & ~ON_DEVICE if field == "flags" else getattr(event, field) for field in EVENT)
    slots = [tuple(getattr(slot, field, 0) for field in SLOT) + (slot.address != 0,) for slot in event.slots]
    return fields, slots


def without_repeats(events):
    """The events but buffers that a `<buffers>` event says again. A value still in flight cannot be compared with the last one, so a device's
    log holds a buffer at each step whether or not it changed (docs/design/device-runtime.md); the processor's holds it only where it did."""
    kept, before, last = [], [0], {}
    for event in map(copy.copy, events):
        if event.boundary == "<buffers>" and event.flags & ON_DEVICE:
            fresh = [copy.copy(slot) for slot in event.slots if last.get(slot.name) != known(slot)]
            last.update((slot.name, known(slot)) for slot in fresh)
            for number, slot in enumerate(fresh):
                slot.index = number
            event.slots = fresh
        stays = event.slots or event.boundary != "<buffers>"
        before.append(before[-1] + bool(stays))
        kept += [event] if stays else []
    for event in kept:  # numbers of other events
        event.begin, event.forward = before[event.begin], None if event.forward is None else before[event.forward]
    return kept


def known(slot):
    return slot.value, slot.dtype, slot.device, slot.shape


def assert_equal_logs(here, there):
    """There: what the plugin has read."""
    assert there.closed and there.lost == 0 and not there.gaps
    assert there.settings["device.cpu"] == "values" and "opguard_faults" not in there.settings
    said_once = without_repeats(there.events)
    for mine, theirs in zip(here.events, said_once):
        assert without_times(mine) == without_times(theirs)
    assert len(here.events) == len(said_once)
    assert not any(e.flags & ON_DEVICE for e in here.events)
    for e in there.events:
        read = [s for s in e.slots if not s.flags & (UNREADABLE | CARRIED) and s.size_bytes and (s.address or e.kind == "state")]
        if e.flags & ON_DEVICE:
            assert e.stream == 1 and e.device_start_ns <= e.device_end_ns and read
            # The example's clock is the host's. A collective has what its site has read before.
            assert e.start_ns <= e.device_start_ns or e.kind == "collective"
        elif e.kind in ("node", "accumulate", "loss"):
            assert not read
    assert any(slot.value for event in here.events for slot in event.slots)


def only_log(folder):
    (log,) = logs_in(folder)
    return log
