"""Runs a training program some times in one process, and writes the processor time of its steps.

  step_times.py FILE REPEAT PROGRAM [ARGUMENTS...]

A step's time lies between two ends of `optimizer.step()` in one pass, so that start and first step are left out. It is
that of all threads of the process, in ms: what others do on the machine reaches it least.
"""
import json
import runpy
import sys
import time
from pathlib import Path

from torch.optim.optimizer import register_optimizer_step_post_hook


def main():
    file, repeat, program = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    sys.argv = sys.argv[3:]
    sys.path[0] = str(Path(program).resolve().parent)
    ends, steps = [], []
    register_optimizer_step_post_hook(lambda *_: ends.append(time.process_time()))
    for _ in range(repeat):
        ends.clear()
        try:
            runpy.run_path(program, run_name="__main__")
        except SystemExit as end:
            if end.code:
                raise
        steps += [(after - before) * 1e3 for before, after in zip(ends, ends[1:])]
    file.write_text(json.dumps(steps))


if __name__ == "__main__":
    main()
