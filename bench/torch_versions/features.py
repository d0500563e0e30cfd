"""What of opguard is at work in this interpreter. Run by `opguard run --mode full`; prints one line of JSON behind a mark."""

import json

import torch
import torch._dynamo
from opguard import _rt, og
from opguard.compiled import probes, unprobed

MARK = "torch-versions:"


def used():
    """More tensors than are compared before torch's own functions are trusted, and a backward pass."""
    w = torch.nn.Parameter(torch.randn(4, 4))
    for _ in range(100):
        x = og("features.relu", torch.relu)(w)
    x.sum().backward()


def in_a_graph():
    """Does a probe in a compiled function break its graph, and is it in it?"""

    @torch.compile(backend="eager")
    def function(x):
        return og("features.sin", torch.sin)(x) * 2

    function(torch.ones(3))
    return sum(torch._dynamo.utils.counters["graph_break"].values())


def main():
    used()
    found = {
        "torch": str(torch.__version__),
        "native": bool(_rt.torch_native(True)),
        "layout": bool(_rt.tensor_layout(None)["trusted"]),
        "dlpack_table": hasattr(torch.Tensor, "__dlpack_c_exchange_api__"),
        "handlers": probes.problem(),
        "substitutes": hasattr(torch.compiler, "substitute_in_graph"),
        "graph_breaks": in_a_graph(),
        "unprobed": sorted(unprobed.counts()),
    }
    print(MARK + json.dumps(found))


if __name__ == "__main__":
    main()
