"""The CUDA table (tests/gpu/cuda_plugin.cc) for checks in Python, with torch tensors. No opguard extension is needed."""

import ctypes
import time

import torch

MASKS = {torch.float16: 1, torch.bfloat16: 2, torch.float32: 3, torch.float64: 4}
# opguard_element_type; a complex tensor has that of its parts.
ELEMENTS = {torch.bool: 1, torch.uint8: 2, torch.int8: 3, torch.int16: 5, torch.int32: 7, torch.int64: 9, torch.float16: 10, torch.bfloat16: 11,
            torch.float32: 12, torch.float64: 13, torch.complex64: 12, torch.complex128: 13}  # fmt: skip


class Tensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("element_bytes", ctypes.c_uint32), ("mask_type", ctypes.c_uint16), ("element_type", ctypes.c_uint16), ("dims", ctypes.c_uint32),
                ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)), ("ticket", ctypes.c_uint64)]


class Value(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint64) for name in ("ticket", "h", "m", "flat", "pattern", "start_ns", "end_ns", "flags", "digest")]

    def content(self):
        return self.h, self.m, self.flat, self.pattern, self.flags & 1, self.digest if self.flags & 2 else None


def tensor_of(x, ticket=1):
    array = ctypes.c_int64 * max(x.dim(), 1)
    strides = [s * x.element_size() for s in x.stride()]
    return Tensor(x.data_ptr(), x.element_size(), MASKS.get(x.dtype, 0), ELEMENTS.get(x.dtype, 0), x.dim(), array(*x.shape), array(*strides), ticket)


class Plugin:
    def __init__(self, path, driver=None, ring=0, blocks=0):
        self.library = library = ctypes.CDLL(path)
        library.opguard_test_options.argtypes = [ctypes.c_char_p, ctypes.c_uint64, ctypes.c_uint32]
        library.opguard_test_options(driver.encode() if driver else None, ring, blocks)
        library.opguard_test_xor64.restype = library.opguard_test_drain.restype = library.opguard_test_lost.restype = ctypes.c_uint64
        library.opguard_test_drain.argtypes = [ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint64]
        for name in ("opguard_test_fingerprint", "opguard_test_xor"):
            getattr(library, name).argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(Tensor), ctypes.c_uint32]
        library.opguard_device_plugin_v1.restype = ctypes.c_void_p
        # abi, size, device_type, open
        table = library.opguard_device_plugin_v1()
        entry = ctypes.c_void_p.from_address(table + 16).value
        error = ctypes.create_string_buffer(4096)
        code = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_char_p, ctypes.c_uint64)(entry)(ctypes.cast(error, ctypes.c_char_p), 4096)
        if code:
            raise OSError(code, error.value.decode())

    def problem(self):
        text = ctypes.create_string_buffer(4096)
        self.library.opguard_test_problem(text, ctypes.c_uint64(4096))
        return text.value.decode(errors="replace")

    def launch(self, tensors, stream=0, device=0, xor=False):
        """tensors: a ctypes array of Tensor. Raises if not all are launched."""
        call = self.library.opguard_test_xor if xor else self.library.opguard_test_fingerprint
        done = call(device, stream or None, tensors, len(tensors))
        if done != len(tensors):
            raise RuntimeError(f"{done} of {len(tensors)} tensors launched: {self.problem()}")

    def drain(self, count, seconds=30.0):
        """Exactly `count` values by ticket, or what came in so long."""
        values, buffer = {}, (Value * 4096)()
        end = time.monotonic() + seconds
        while len(values) < count and time.monotonic() < end:
            for i in range(self.library.opguard_test_drain(buffer, 4096, 1_000_000)):
                v = Value()
                ctypes.pointer(v)[0] = buffer[i]
                values[v.ticket] = v
        return values

    def here(self, x):
        """The processor's own value of a CPU tensor."""
        value = Value()
        self.library.opguard_test_digest(ctypes.byref(tensor_of(x)), ctypes.byref(value))
        return value

    def xor_here(self, x):
        return self.library.opguard_test_xor64(ctypes.byref(tensor_of(x)))
