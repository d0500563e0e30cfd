"""safetensors files read and written by the letter of the format, without the tool and without a library."""

import json
import struct
from pathlib import Path

import torch

DTYPES = {
    "F64": torch.float64, "F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16,
    "F8_E4M3": torch.float8_e4m3fn, "F8_E5M2": torch.float8_e5m2, "C64": torch.complex64, "BOOL": torch.bool,
    "I64": torch.int64, "I32": torch.int32, "I16": torch.int16, "I8": torch.int8, "U8": torch.uint8,
}  # fmt: skip


def read(path):
    """-> ({name: tensor}, metadata)"""
    data = Path(path).read_bytes()
    (length,) = struct.unpack_from("<Q", data)
    header = json.loads(data[8 : 8 + length])
    metadata, tensors = header.pop("__metadata__", {}), {}
    assert (8 + length) % 8 == 0
    for name, entry in header.items():
        first, last = (8 + length + offset for offset in entry["data_offsets"])
        raw = torch.frombuffer(bytearray(data[first:last]), dtype=torch.uint8) if last > first else torch.empty(0, dtype=torch.uint8)
        dtype, shape = DTYPES[entry["dtype"]], entry["shape"]
        if f"dtype:{name}" in metadata:
            dtype, shape = getattr(torch, metadata[f"dtype:{name}"]), shape[:-1]
        tensors[name] = raw.view(dtype).view(shape)
    return tensors, metadata


def write(path, tensors):
    names = {dtype: name for name, dtype in DTYPES.items()}
    header, data = {}, b""
    for name, tensor in tensors.items():
        raw = bytes(tensor.detach().contiguous().reshape(-1).view(torch.uint8).tolist()) if tensor.numel() else b""
        header[name] = {"dtype": names[tensor.dtype], "shape": list(tensor.shape), "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    Path(path).write_bytes(struct.pack("<Q", len(text)) + text + data)
    return path


def captured(folder):
    """Of every file in a log folder: {(boundary, kind, phase, occurrence): (tensors, metadata)}"""
    found = {}
    for path in sorted(Path(folder).glob("*.safetensors")):
        tensors, metadata = read(path)
        key = (metadata["boundary"], metadata["kind"], metadata["phase"], int(metadata["occurrence"]))
        while key in found:  # another node of the site
            key += (metadata["node"],)
        found[key] = tensors, metadata
    assert not list(Path(folder).glob("*.safetensors.incomplete"))
    return found


def bits_equal(a, b):
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    a, b = (t.detach().resolve_conj().resolve_neg().contiguous().reshape(-1) for t in (a, b))
    return a.numel() == 0 or torch.equal(a.view(torch.uint8), b.view(torch.uint8))
