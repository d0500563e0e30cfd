"""Which configurations a tuner has chosen, as the log's settings say it. Stand-ins of what Inductor and Triton hold: neither tunes on a CPU."""
from runtime_log import run_program

HELD = """
import sys, types
class Config:
    def __init__(self, warps, **kwargs):
        self.kwargs, self.num_warps, self.num_stages = kwargs, warps, 2
class CachingAutotuner:
    def __init__(self, *configs):
        self.launchers = [types.SimpleNamespace(config=config) for config in configs]
generated = types.ModuleType("generated")
generated.triton_poi_fused_add_0 = CachingAutotuner(Config(4, XBLOCK=128))
generated.triton_red_fused_sum_1 = CachingAutotuner(Config(4, XBLOCK=1), Config(8, XBLOCK=2))  # has not chosen yet
codecache = sys.modules["torch._inductor.codecache"] = types.ModuleType("torch._inductor.codecache")
codecache.PyCodeCache = types.SimpleNamespace(modules=[generated])
autotuner = sys.modules["triton.runtime.autotuner"] = types.ModuleType("triton.runtime.autotuner")
class Autotuner:
    def __init__(self, function, **cache):
        self.base_fn, self.cache = function, cache
autotuner.Autotuner = Autotuner
def matmul(): pass
held = Autotuner(matmul, small=Config(4, BLOCK_M=64), large=Config(8, BLOCK_M=128))
from opguard.record import settings
print(settings.collect().get("inductor_tuned"), "|", settings.collect().get("triton_tuned"))
generated.triton_poi_fused_add_0.launchers.clear()
print("inductor_tuned" in settings.collect())
"""


def test_what_was_chosen_is_a_setting(tmp_path):
    out = run_program(HELD, tmp_path).stdout.splitlines()
    assert out[0] == (
        "triton_poi_fused_add_0=XBLOCK:128,num_stages:2,num_warps:4 | "
        "matmul=BLOCK_M:128,num_stages:2,num_warps:8; matmul=BLOCK_M:64,num_stages:2,num_warps:4"
    )
    assert out[1] == "False", "what has no choice left says nothing"
