"""The processes of a program: forked children, workers, one that is killed, one whose log cannot be written."""

import re
import signal

import pytest

from runtime_log import Log, logs_in, run_program

pytest.importorskip("torch")

TORCH = "import torch\ntorch.manual_seed(0)\n"


FORKED = TORCH + """
import os
x = og("parent", torch.ones(3).sum)()
pid = os.fork()
if pid == 0:
    og("child", torch.ones(4).sum)()
    {end}
os.waitpid(pid, 0)
og("parent2", torch.ones(5).sum)()
"""


@pytest.mark.parametrize("end", ["os._exit(0)", "raise SystemExit(0)", "og('leave', os._exit)(0)"])
def test_forked_child_has_its_own_log(tmp_path, end):
    run_program(FORKED.format(end=end), tmp_path)
    logs = logs_in(tmp_path)
    assert len(logs) == 2 and all(log.closed for log in logs)
    names = sorted(log.boundaries() for log in logs)
    assert names == [["child"], ["parent", "parent2"]]
    assert logs[0].pid != logs[1].pid


def test_fork_through_a_probe(tmp_path):
    run_program(TORCH + """
import os
pid = og("fork", os.fork)()
og("after", torch.ones(3).sum)()
if pid: os.waitpid(pid, 0)
""", tmp_path)  # fmt: skip
    names = sorted(log.boundaries() for log in logs_in(tmp_path))
    assert names == [["after"], ["fork", "after"]]


def test_data_loader_workers(tmp_path):
    source = TORCH + """
class Data(torch.utils.data.Dataset):
    def __len__(self): return 8
    def __getitem__(self, i): return og("item", torch.full)((3,), float(i))
loader = torch.utils.data.DataLoader(Data(), batch_size=2, num_workers=2)
for batch in og("loader", loader): pass
"""
    run_program(source, tmp_path)
    logs = logs_in(tmp_path)
    assert sorted(len(log.of("item")) for log in logs) == [0, 4, 4]
    (main,) = [log for log in logs if log.of("loader")]
    assert [e.get("out", "out0").shape for e in main.of("loader")] == [(2, 3)] * 4
    assert all(log.closed for log in logs)


def test_a_child_is_not_inside_what_its_parent_was_doing(tmp_path):
    run_program(TORCH + """
import os
w = torch.ones(3, requires_grad=True)
def load():
    child = os.fork()
    if child == 0:
        (w * 2).sum().backward()  # no probe of its own: told by the innermost operator that runs
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
og("loader", load)()
""", tmp_path)  # fmt: skip
    (child,) = [log for log in logs_in(tmp_path) if not log.of("loader")]
    (loss,) = [e for e in child.events if e.kind == "loss"]
    assert loss.boundary != "loader"


def test_no_event_no_file(tmp_path):
    run_program("import torch\ntorch.ones(2)\n", tmp_path / "log")
    assert not (tmp_path / "log").exists()


def test_killed_process_leaves_an_incomplete_log(tmp_path):
    source = TORCH + """
import os, signal
x = torch.ones(3)
for _ in range(5000): x = og("work", x) + 1
os.kill(os.getpid(), signal.SIGKILL)
"""
    run_program(source, tmp_path, status=-signal.SIGKILL)
    (path,) = tmp_path.glob("*.log.incomplete")
    log = Log(path)
    assert not log.closed and 1000 < len(log.of("work")) <= 5000


def test_folder_that_cannot_be_written_never_stops_the_program(tmp_path):
    (tmp_path / "file").write_text("")
    result = run_program(TORCH + "for i in range(3): print(og('a', torch.ones(2).sum)().item())", tmp_path / "file" / "log")
    assert result.stdout == "2.0\n" * 3
    assert result.stderr.count("opguard: warning:") == 1 and "file/log" in result.stderr
    # Made = written + lost: three events of one slot, and the random states before them.
    lost, made = re.search(r"opguard: (\d+) of (\d+) records were lost", result.stderr).groups()
    assert lost == made and int(lost) > 3
