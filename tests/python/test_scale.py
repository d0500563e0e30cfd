"""Runs of hundreds of ranks, and of more rows than a report lists."""
import json
import re
import resource
import subprocess
import time

import pytest
from browser import Browser, chromium
from report_logs import write_logs

PAGE_ROWS = 200_000


def made_up(folder, pairs, ranks):
    """The folders of two runs that part after two fifths, `pairs` events a rank."""
    sides = folder / "a", folder / "b"
    subprocess.run([write_logs(), "--pairs", str(pairs), str(ranks), *sides], check=True)
    return sides


def test_a_folder_of_256_ranks(tmp_path, opguard):
    a, b = made_up(tmp_path, 1500, 256)
    assert len(list(a.glob("*.log"))) == 256
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    start = time.perf_counter()
    result = opguard("align", a, b, "--json", tmp_path / "verdict.json")
    wall, cpu = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before
    print(f"256 ranks: {wall:.1f} s, {cpu:.1f} s of CPU")
    assert result.returncode == 1, result.stderr
    verdict = json.loads((tmp_path / "verdict.json").read_text())
    assert verdict["verdict"] == "diverged" and verdict["lost_records"] == 0
    assert verdict["records"]["a"] == 3 * 1500 * 256
    assert verdict["certified_prefix"] > 0 and verdict["pivot"]["rank"] == 0
    assert "\nand 240 more\n" in result.stdout  # ranks
    assert cpu < 60  # 3 s on a free machine

    same = opguard("align", a, a)
    assert same.returncode == 0 and same.stdout.startswith("identical")


@pytest.fixture(scope="module")
def long_runs(tmp_path_factory):
    return made_up(tmp_path_factory.mktemp("long"), PAGE_ROWS + 20_000, 1)


@pytest.mark.skipif(not chromium(), reason="no Chromium: apt install chromium")
def test_the_page_says_what_it_leaves_out(long_runs, tmp_path, opguard):
    path = tmp_path / "page.html"
    result = opguard("align", *long_runs, "--html", path, "--perfetto", tmp_path / "trace")
    assert result.returncode == 1, result.stderr
    # Fields of the trace are plain bytes: the slice's name is there once a side.
    assert b"left out: 1" in (tmp_path / "trace").read_bytes()
    with Browser(height=900) as browser:
        browser.open(path)
        assert browser.errors == []
        listed = browser.evaluate("lanes.map(lane => lane.state.length)")
        gaps = browser.evaluate("data.gaps")
        counts = browser.evaluate("lanes[0].head.counts")
        assert len(listed) == 1 and PAGE_ROWS <= listed[0] <= PAGE_ROWS + 1000
        assert sum(counts) == listed[0] - len(gaps) + sum(map(sum, gaps)) > PAGE_ROWS
        # The row that stands for the first ones left out says so.
        text = browser.evaluate("describeGap(0, lanes[0].state.indexOf(kLeftOut))")
        assert text.endswith("not listed in this page")
        assert re.sub(r"\D", "", text) == "".join(str(n) for n in gaps[0] if n), text
