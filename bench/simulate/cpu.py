"""megatron-core asks CUDA for streams and generators: on a processor there is one stream, and torch's own generator."""

import contextlib
import warnings

import torch

warnings.filterwarnings("ignore")
cuda = torch.cuda


class Stream:
    def __init__(self, *args, **kwargs):
        pass

    def __getattr__(self, name):
        return lambda *args, **kwargs: self


cuda.current_device = lambda: torch.device("cpu")
cuda.Stream = Stream
cuda.current_stream = cuda.default_stream = lambda *args: Stream()
cuda.stream = lambda stream: contextlib.nullcontext()
cuda.synchronize = cuda.empty_cache = lambda *args, **kwargs: None
cuda.manual_seed = torch.manual_seed
cuda.get_rng_state = cuda.random.get_rng_state = lambda *args, **kwargs: torch.get_rng_state()
cuda.set_rng_state = cuda.random.set_rng_state = lambda state, *args, **kwargs: torch.set_rng_state(state)
cuda._lazy_call = lambda call, **kwargs: call()
cuda.default_generators = type("Generators", (), {"__getitem__": lambda self, index: torch.default_generator})()
torch.Tensor.cuda = lambda tensor, *args, **kwargs: tensor
_type = torch.Tensor.type
torch.Tensor.type = lambda tensor, *args: (
    _type(tensor, *args) if args else _type(tensor).replace("torch.", "torch.cuda.")
)


def _here(make):
    def made(*args, **kwargs):
        if not str(kwargs.get("device", "cpu")).startswith("cpu"):
            kwargs["device"] = "cpu"
        return make(*args, **kwargs)

    return made


for name in ("zeros", "ones", "empty", "full", "tensor", "arange", "rand", "randn"):
    setattr(torch, name, _here(getattr(torch, name)))
