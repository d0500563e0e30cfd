"""Which tests every commit runs, chosen by what each was measured to cost.

Most of the suite's time is `import torch` in programs that tests start: 1.5 s of processor time each, 3 s with an
optimizer. So most tests take milliseconds, and a few hundred take ten seconds each.
`--size commit` runs every cheap test (1 s at most), and of each file the dear ones that fit in its budget.
Example: of test_modes.py's 60 optimizers the first runs with each commit, and all of them with `make test-all`.
A test that costs.tsv does not know (a new one) always runs. `--costs FILE` measures; docs: CONTRIBUTING.md.
"""
import os
import sys
from collections import defaultdict
from pathlib import Path

CHEAP = 1.0  # seconds of processor time, of the test and of the programs it waited for
COSTS = Path(__file__).with_name("costs.tsv")


def read_costs(path=None):
    """{test id without its folder: seconds}, of the tests above CHEAP. A bad line is an error that names it."""
    costs = {}
    path = path or COSTS
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if line.startswith("#"):
            continue
        seconds, tab, name = line.partition("\t")
        if not tab or not name:
            raise ValueError(f"{path}:{number}: expected SECONDS<tab>TEST")
        costs[name] = float(seconds)
    return costs


def chosen(names, costs, budget):
    """Those of `names` (in the order of collection) that a commit runs.

    In every file each function's first dear case comes before any function's second: breadth first.
    Where none fits, the cheapest of the file runs, since no file may go unseen.
    """
    kept = {name for name in names if costs.get(name, 0) <= CHEAP}
    dear = defaultdict(lambda: defaultdict(list))  # file -> function -> cases
    for name in names:
        if name not in kept:
            dear[name.partition("::")[0]][name.partition("[")[0]].append(name)
    for functions in dear.values():
        left = budget
        taken = []
        rounds = max(len(cases) for cases in functions.values())
        order = [cases[i] for i in range(rounds) for cases in functions.values() if i < len(cases)]
        for name in order:
            if costs[name] <= left:
                taken.append(name)
                left -= costs[name]
        kept.update(taken or [min(order, key=lambda name: costs[name])])
    return kept


def dearest_file_first(named, costs):
    """The items of (item, name) pairs, a file's in their order. A worker takes a file whole (--dist loadfile): where a
    long one comes last, the others wait for it."""
    files = defaultdict(list)
    for item, name in named:
        files[name.partition("::")[0]].append((item, costs.get(name, 0)))
    by_cost = sorted(files.values(), key=lambda file: -sum(cost for _, cost in file))
    return [item for file in by_cost for item, _ in file]


def test_name(item):
    """Its id without the folder and without this machine's interpreter, by which some cases are called."""
    return item.nodeid.removeprefix("tests/python/").replace(sys.executable, "python")


def add_options(parser):
    parser.addoption("--size", choices=["all", "commit"], default="all", help="commit: the cheap tests, and of each "
                     "file the dear ones that fit in --budget")
    parser.addoption("--budget", type=float, default=4.0, help="seconds of processor time of a file's dear tests")
    parser.addoption("--costs", metavar="FILE", help="append each test's processor time to FILE (then: sizes.py FILE)")


def deselect(config, items):
    if config.getoption("--size") != "commit":
        return
    names, costs = [test_name(item) for item in items], read_costs()
    keep = chosen(names, costs, config.getoption("--budget"))
    config.hook.pytest_deselected(items=[i for i, name in zip(items, names) if name not in keep])
    items[:] = dearest_file_first([(i, name) for i, name in zip(items, names) if name in keep], costs)


def seconds_so_far():
    """Processor time of this process and of the children that ended."""
    return sum(os.times()[:4])


def note(config, item, seconds):
    if path := config.getoption("--costs"):
        with open(path, "a") as out:  # one short write: the workers' lines do not mix
            out.write(f"{seconds:.1f}\t{test_name(item)}\n")


def main():
    """sizes.py FILE [--keep]: costs.tsv from what `pytest --costs FILE` measured; of a test measured twice the last.

    --keep: what was not measured keeps its row, as where --size commit left it out.
    """
    measured = read_costs() if sys.argv[2:] == ["--keep"] else {}
    for line in Path(sys.argv[1]).read_text().splitlines():
        seconds, _, name = line.partition("\t")
        measured[name] = float(seconds)
    dear = sorted((name, seconds) for name, seconds in measured.items() if seconds > CHEAP)
    COSTS.write_text(f"# Seconds of processor time of each test above {CHEAP:g} s: tests/python/sizes.py\n"
                     + "".join(f"{seconds:.1f}\t{name}\n" for name, seconds in dear))
    print(f"{len(measured)} tests, {sum(measured.values()):.0f} s; {len(dear)} are dear, "
          f"{sum(s for _, s in dear):.0f} s")


if __name__ == "__main__":
    main()
