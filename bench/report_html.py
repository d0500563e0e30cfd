"""Writes the HTML report of a made-up pair of runs and measures it in headless Chromium.

  report_html.py [--pairs 100000] [--ranks 1] [--build build/release] [--json FILE]

load: from opening the file to the end of its script. wheel: 100 steps of 120 pixels; leap: 100 jumps that leave no row in sight where it was. frame: wall time until the
frame after the step is drawn (two frames at best: 33 ms); cpu: the page's main thread in that time, script, style, layout and paint, by its own clock, which other programs on the machine do not
disturb. Without a GPU. search: from the words to the rows found.
"""
import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "python"))
from browser import Browser, chromium  # noqa: E402

STEP = """new Promise(done => {
    const end = document.documentElement.scrollHeight - innerHeight, start = performance.now();
    window.scrollTo(0, %s);
    requestAnimationFrame(() => requestAnimationFrame(() => done(performance.now() - start)));
})"""

SEARCH = """(() => {
    const times = [];
    for (const words of ['softmax', 'block3.py:14 matmul', 'no such thing', data.values.slice(3200, 3216)]) {
        const start = performance.now();
        search(words);
        document.body.offsetHeight;
        times.push(performance.now() - start);
    }
    search('');
    return times;
})()"""


def p95(times):
    return round(statistics.quantiles(times, n=20)[18], 2)


def scroll(browser, place):
    """(wall, cpu) in ms of 100 steps; place: where step i leads, in JavaScript."""
    def busy():
        metrics = browser.send("Performance.getMetrics")["metrics"]
        return next(m["value"] for m in metrics if m["name"] == "TaskDuration") * 1000

    wall, cpu, before = [], [], busy()
    for i in range(100):
        wall.append(browser.evaluate(STEP % place.replace("I", str(i))))
        now = busy()
        cpu.append(now - before)
        before = now
    return wall, cpu


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--pairs", type=int, default=100_000, help="of each rank")
    p.add_argument("--ranks", type=int, default=1)
    p.add_argument("--build", type=Path, default=ROOT / "build" / "release")
    p.add_argument("--json", type=Path)
    o = p.parse_args()
    if not chromium():
        sys.exit("report_html.py: error: no Chromium")
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        a, b, page = folder / "a", folder / "b", folder / "report.html"
        subprocess.run([o.build / "tests/report/write_logs", "--pairs", str(o.pairs), str(o.ranks), a, b], check=True)
        start = time.monotonic()
        subprocess.run([o.build / "src/cli/opguard", "align", a, b, "--html", page], stdout=subprocess.DEVNULL)
        seconds = time.monotonic() - start
        with Browser() as browser:
            load = min(browser.open(page) for _ in range(3))
            listed = browser.evaluate("lanes.reduce((sum, lane) => sum + lane.size, 0)")
            elements = browser.evaluate("document.querySelectorAll('*').length")
            browser.send("Performance.enable", timeDomain="threadTicks")
            wheel_wall, wheel_cpu = scroll(browser, "end * .4 + I * 120")
            leap_wall, leap_cpu = scroll(browser, "end * I / 100")
            searches = browser.evaluate(SEARCH)
            heap = browser.evaluate("performance.memory.usedJSHeapSize")
        result = {"pairs": o.pairs, "ranks": o.ranks, "rows": listed, "align_and_write_s": round(seconds, 2),
                  "file_mb": round(page.stat().st_size / 1e6, 1), "load_ms": round(load * 1000), "elements": elements,
                  "wheel_frame_p95_ms": p95(wheel_wall), "wheel_cpu_p50_ms": round(statistics.median(wheel_cpu), 2),
                  "wheel_cpu_p95_ms": p95(wheel_cpu), "leap_frame_p95_ms": p95(leap_wall),
                  "leap_cpu_p50_ms": round(statistics.median(leap_cpu), 2), "leap_cpu_p95_ms": p95(leap_cpu),
                  "search_max_ms": round(max(searches), 1), "heap_mb": round(heap / 1e6)}
    for name, value in result.items():
        print(f"{name:20} {value}")
    if o.json:
        o.json.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
