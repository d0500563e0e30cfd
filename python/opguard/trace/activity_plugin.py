"""A library that knows a device and hands over what it did: the activities_* part of src/device/plugin.h.

    push(7)        around aten::mm, on the thread that runs it
    flush(...)     Activity(name="ampere_sgemm_128x64_nn", correlation=7, kind=KERNEL, start_ns=..., end_ns=...)
    stop()         nothing is collected any more; what was, a flush still gives

The structures repeat the header's field by field, in its order. Counterexample: the header's fingerprint part (open,
capture, drain, close) is for the runtime in C++. Here its members are untyped pointers that only keep the offsets
right."""

import ctypes

_ENTRY = "opguard_device_plugin_v1"
# OPGUARD_DEVICE_OLDEST_ABI to OPGUARD_DEVICE_ABI: what activities need is the same in each.
_ABIS = range(1, 3)

# enum opguard_activity_kind. COLLECTIVE is a kernel of the communication library.
KERNEL, MEMCPY, MEMSET, SYNCHRONIZE, COLLECTIVE = range(5)
# A flag: start_ns and end_ns are the host's at the launch, where the device's clock cannot be read.
HOST_CLOCK = 1


class Activity(ctypes.Structure):
    """struct opguard_activity: one thing that the device did.

    correlation: the innermost number pushed on the launching thread, 0 for none. graph: the number of the device graph
    that launched it, 0 for none. `name` is valid during the sink's call alone, so it is decoded there."""

    _fields_ = [
        ("name", ctypes.c_char_p), ("correlation", ctypes.c_uint64), ("start_ns", ctypes.c_uint64), ("end_ns", ctypes.c_uint64),
        ("kind", ctypes.c_uint32), ("device", ctypes.c_uint32), ("stream", ctypes.c_uint32), ("graph", ctypes.c_uint32),
        ("flags", ctypes.c_uint32), ("reserved", ctypes.c_uint32),
    ]  # fmt: skip


Sink = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.POINTER(Activity))
_Start = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_char_p, ctypes.c_uint64)
# Around every operator, and short: the interpreter's lock stays.
_Push = ctypes.PYFUNCTYPE(None, ctypes.c_uint64)
_Pop = ctypes.PYFUNCTYPE(None)
# It may wait for the device, which may wait for a thread of Python's.
_Flush = ctypes.CFUNCTYPE(ctypes.c_uint64, Sink, ctypes.c_void_p, ctypes.c_int)
_Count = ctypes.CFUNCTYPE(ctypes.c_uint64)
_Stop = ctypes.CFUNCTYPE(None)
_Text = ctypes.CFUNCTYPE(ctypes.c_char_p)


class Table(ctypes.Structure):
    """struct opguard_device_plugin."""

    _fields_ = [
        ("abi", ctypes.c_uint32), ("size", ctypes.c_uint32), ("device_type", ctypes.c_char_p),
        ("open", ctypes.c_void_p), ("fingerprint", ctypes.c_void_p), ("capture", ctypes.c_void_p), ("drain", ctypes.c_void_p),
        ("lost", ctypes.c_void_p), ("close", ctypes.c_void_p),
        ("activities_start", _Start), ("activities_push", _Push), ("activities_pop", _Pop), ("activities_flush", _Flush),
        ("activities_dropped", _Count), ("activities_stop", _Stop), ("activities_source", _Text),
    ]  # fmt: skip


class Plugin:
    """One library whose device's activities are collected.

    kernels: how many of its launches came back so far, collectives among them. host_clock: one of them had
    HOST_CLOCK."""

    def __init__(self, path):
        self.library = ctypes.CDLL(path)
        entry = getattr(self.library, _ENTRY)
        entry.restype = ctypes.POINTER(Table)
        table = entry()
        if not table or table.contents.abi not in _ABIS:
            raise OSError("%s: of another version of the device interface" % path)
        self.table = table.contents
        # A table of an earlier build ends before the members it did not know.
        whole = self.table.size >= ctypes.sizeof(Table)
        self.collects = whole and bool(self.table.activities_start)
        self.type = (self.table.device_type or b"").decode()
        self.kernels = 0
        self.host_clock = False

    def start(self):
        """Once, before or after the device is first used. The library says in `text` why it cannot; the caller goes on
        without it."""
        text = ctypes.create_string_buffer(512)
        if self.table.activities_start(text, len(text)) != 0:
            raise OSError(text.value.decode(errors="replace") or "activities do not start")

    def describe(self):
        """An entry of the trace's `devices`. The source is asked anew each time: what activities come from may change
        while the program runs, as when torch.profiler takes CUPTI."""
        return {
            "type": self.type,
            "source": (self.table.activities_source() or b"").decode(errors="replace") if self.table.activities_source else self.type,
            "clock": "host" if self.host_clock else "device",
            "kernels": self.kernels,
            "dropped": self.table.activities_dropped() if self.table.activities_dropped else 0,
        }
