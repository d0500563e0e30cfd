"""Tensors by which the extension finds where torch keeps a tensor's fields (src/runtime/host/tensor_layout.h).

    strided      sizes 3, 5, 7, strides 101, 17, 2, offset 11: numbers of which no two are equal
    written      a version counter at 23, and `shared`, which has the same counter
    other        a counter at 41

Made once, right after torch was imported: no mode of the program's is on yet, and nothing of it is disturbed.
Counterexample: a release that was not tried has the fields perhaps elsewhere. There tensors are asked by torch's
API."""

# The releases on which the finding was tried (tests/python/test_tensor_layout.py); any other is asked as before.
FIRST, UNKNOWN = (2, 1), (2, 14)
_DTYPES = ("float32", "bfloat16", "float16", "float64", "int64", "int32", "int16", "int8", "uint8", "bool", "uint16", "uint32", "uint64")


def known(torch):
    """Is this a release that was tried?"""
    try:
        return FIRST <= tuple(int(part) for part in torch.__version__.split(".")[:2]) < UNKNOWN
    except ValueError:
        return False


def probes(torch):
    """What TensorLayout::find wants."""
    plain = {"dtype": torch.float32, "device": "cpu"}
    # 3 * 5 * 7 = 105 elements at 11: no two of these numbers are equal.
    strided = torch.zeros(1024, **plain).as_strided((3, 5, 7), (101, 17, 2), 11)
    deep = torch.zeros(2, 1, 3, 1, 2, 1, 4, **plain).permute(6, 5, 4, 3, 2, 1, 0)
    memory = bytearray(64)
    foreign = torch.frombuffer(memory, dtype=torch.float32)
    written, other = torch.zeros(6, **plain), torch.zeros(6, **plain)
    shared = written.detach()
    for _ in range(23):
        written.zero_()
    for _ in range(41):
        other.zero_()
    leaf = torch.zeros(6, requires_grad=True, **plain)
    made = leaf * 2
    with torch.inference_mode():
        inference = torch.zeros(6, **plain)
    checked = None
    if hasattr(torch._C, "_set_throw_on_mutable_data_ptr"):
        checked = torch.zeros(6, **plain)
        torch._C._set_throw_on_mutable_data_ptr(checked)
    types = [torch.zeros(6, dtype=getattr(torch, name), device="cpu") for name in _DTYPES if hasattr(torch, name)]
    conjugate = torch.zeros(6, dtype=torch.complex64, device="cpu").conj()
    negated = conjugate.imag
    everything = [strided, deep, foreign, written, shared, other, leaf, made, inference, negated, conjugate, strided[1], deep[0, 0],
                  torch.zeros((), **plain), torch.zeros(0, 3, **plain), torch.nn.Parameter(torch.zeros(3, 4, **plain)), *types]  # fmt: skip
    return {
        "strided": strided, "types": types, "foreign": foreign, "written": written, "shared": shared, "other": other, "leaf": leaf,
        "checked": checked, "inference": inference, "negated": negated,
        "keys": _keys(torch, other=other, inference=inference, negated=negated),
        "ordinary": [other, inference], "all": everything,
    }  # fmt: skip


def _keys(torch, **tensors):
    """Torch's numbers of their dispatch keys; {} where it does not tell (before 2.5)."""
    keys_of = getattr(torch._C, "_dispatch_keys", None)
    if not hasattr(getattr(torch._C, "DispatchKeySet", None), "raw_repr"):
        return {}
    return {name: keys_of(tensor).raw_repr() for name, tensor in tensors.items()}


def install(torch, find):
    """find: _rt.tensor_layout. Whatever goes wrong, tensors are asked as without it."""
    if not known(torch):
        return
    try:
        find(probes(torch))
    except Exception:
        pass
