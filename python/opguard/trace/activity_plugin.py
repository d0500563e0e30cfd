"""A library that knows a device and hands over what it did: the activities_* part of src/device/plugin.h."""

import ctypes

_ENTRY = "opguard_device_plugin_v1"
# OPGUARD_DEVICE_OLDEST_ABI to OPGUARD_DEVICE_ABI: what activities need is the same in each.
_ABIS = range(1, 3)

KERNEL, MEMCPY, MEMSET, SYNCHRONIZE, COLLECTIVE = range(5)
HOST_CLOCK = 1


class Activity(ctypes.Structure):
    """struct opguard_activity."""

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
    """One library whose device's activities are collected."""

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
        text = ctypes.create_string_buffer(512)
        if self.table.activities_start(text, len(text)) != 0:
            raise OSError(text.value.decode(errors="replace") or "activities do not start")

    def describe(self):
        return {
            "type": self.type,
            "source": (self.table.activities_source() or b"").decode(errors="replace") if self.table.activities_source else self.type,
            "clock": "host" if self.host_clock else "device",
            "kernels": self.kernels,
            "dropped": self.table.activities_dropped() if self.table.activities_dropped else 0,
        }
