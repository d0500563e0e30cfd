"""Each operator form recorded with real torch: the same result as bare, and an event with its inputs and outputs."""

import pytest
from runtime_log import record

torch = pytest.importorskip("torch")


def test_marks_are_probes_and_writes_reads_arguments_again(tmp_path):
    log = record(
        """
import torch, ctypes
def kernel(x, y):  # behind the version counter, as a raw pointer would
    ctypes.memset(x.data_ptr(), 0, x.numel() * x.element_size())
x, y = torch.ones(4), torch.ones(4)
og("plain", kernel)(x.clone(), y)
og.writes("kernel", kernel)(x, y)
og.step("step", torch.add)(x, y)
og.micro_batch("micro", torch.mul)(x, y)
""",
        tmp_path / "log",
    )
    assert log.of("plain")[0].names("written") == []
    (event,) = log.of("kernel")
    assert event.names("written") == ["arg0"] and event.get("written", "arg0").value != event.get("in", "arg0").value
    assert [log.of(b)[0].names("out") for b in ("step", "micro")] == [["out0"], ["out0"]]
