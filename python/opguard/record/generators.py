"""What random numbers come from: the generators' states, a few kilobytes, read at each step boundary and before
operators that draw from them.

    {"torch.cpu": a tensor of bytes, "torch.cuda:0": ..., "python": 5,009 bytes, "numpy": ...}

Equal bytes mean equal draws from there on. Counterexample: a torch.Generator of the program's own is not among them."""

import array
import struct
import sys


def collect(only_torch):
    """{name: bytes or tensor}. Draws nothing, imports nothing, waits for no device."""
    found = {}
    for read in (_torch,) if only_torch else (_torch, _python, _numpy):
        try:
            read(found)
        except Exception:
            continue  # a generator of the program's own kind, or a graph being captured
    return found


def _torch(found):
    """The processor's state and each device's. A device that was not initialised is not asked: that would start it."""
    torch = sys.modules.get("torch")
    if torch is None or not hasattr(torch, "default_generator"):
        return
    found["torch.cpu"] = torch.default_generator.get_state()
    cuda = getattr(torch, "cuda", None)
    if cuda is not None and cuda.is_initialized():
        # Seed and offset, kept on the host.
        for number, generator in enumerate(cuda.default_generators):
            found["torch.cuda:%d" % number] = generator.get_state()


def _python(found):
    """The 625 words of the Mersenne twister, and the second normal number that random.gauss() may hold back."""
    random = sys.modules.get("random")
    if random is not None:
        _, words, gauss = random.getstate()
        found["python"] = array.array("Q", words).tobytes() + struct.pack("<?d", gauss is not None, gauss or 0.0)


def _numpy(found):
    """The old global generator, whichever bit generator it has: its `key` as bytes, all else as text."""
    module = sys.modules.get("numpy.random.mtrand")
    if module is not None:
        state = module._rand.get_state(legacy=False)
        inner = state["state"]
        text = repr((state["bit_generator"], state["has_gauss"], state["gauss"], [inner[k] for k in inner if k != "key"]))
        key = inner.get("key")
        found["numpy"] = text.encode() + (key.tobytes() if key is not None else b"")
