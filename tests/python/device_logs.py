"""Programs whose tensors are read by the example plugin (tests/device/example_values.c), and what their logs have in common with those of
the same programs without it."""

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


def without_last_repeats(events):
    """Buffers that kernels write uncounted are read once more when the log ends. On the host their values tell that nothing changed;
    a device's come too late for that, so that its log may end with a `<buffers>` event that repeats what the one before holds."""
    if not events or events[-1].boundary != "<buffers>":
        return events
    held = {slot.name: slot.value for e in events[:-1] if e.boundary == "<buffers>" for slot in e.slots}
    repeats = all(held.get(slot.name) == slot.value for slot in events[-1].slots)
    return events[:-1] if repeats else events


def assert_equal_logs(here, there):
    """There: what the plugin has read."""
    expected, told = here.events, without_last_repeats(there.events)
    assert there.closed and there.lost == 0 and not there.gaps
    assert there.settings["device.cpu"] == "values" and "opguard_faults" not in there.settings
    for mine, theirs in zip(expected, told):
        assert without_times(mine) == without_times(theirs)
    assert len(expected) == len(told)
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
