"""The map of a fleet's ranks (`opguard align --merge PART... --html`), panned in headless Chromium.

    bench/fleet_page.py [--ranks N] [--steps N] [--frames N] [--json FILE] [--table DOCUMENT]

Parts of N ranks are made up: one on which it began, seven that got it in their group, others a step later, some without a
log. The map is dragged with the pointer and turned with the wheel, a frame an event. Told are the bytes of the page, and the
milliseconds of the page's own drawing, the median and the slowest of 100.
Exit code 0 if 99 of 100 frames are drawn within 1/60 s. With --table nothing runs.
"""
import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "python"))

from browser import Browser, chromium  # noqa: E402
from fleet_parts import write_parts  # noqa: E402
from marks import put, wrapped  # noqa: E402

# Once; then so many frames at a time, as the browser's answer must come within seconds.
PREPARE = """(() => {
  const map = document.getElementById("map"), box = map.getBoundingClientRect(), own = draw;
  window.took = [];
  draw = () => { const start = performance.now(); own(); took.push(performance.now() - start); };
  map.setPointerCapture = () => {};
  window.pointer = (type, x, y) =>
    map.dispatchEvent(new PointerEvent(type, {clientX: box.left + x, clientY: box.top + y, pointerId: 1, bubbles: true}));
  for (let i = 0; i < 8; ++i)
    map.dispatchEvent(new WheelEvent("wheel", {deltaY: -60, clientX: box.left + 400, clientY: box.top + 200, cancelable: true}));
  pointer("pointerdown", 400, 200);
})()"""
PAN = """(async () => {
  for (let i = %d; i < %d; ++i) {
    pointer("pointermove", 400 + 150 * Math.sin(i / 9), 200 + 120 * Math.cos(i / 7));
    await new Promise(requestAnimationFrame);
  }
})()"""
AT_ONCE = 20


def said(found):
    return wrapped(
        f"The map of {found['ranks']:,} ranks and {found['steps']:,} steps is a page of {found['page_bytes'] / 1000:.0f} kB. "
        f"A frame of panning it in headless Chromium is drawn in {found['median_ms']} ms, of 100 the slowest in {found['of_100_slowest_ms']} ms. "
        f"60 frames a second leave 16.7 ms."
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, default=10_000)
    parser.add_argument("--steps", type=int, default=100_000)
    parser.add_argument("--frames", type=int, default=300)
    parser.add_argument("--opguard", type=Path, default=ROOT / "build" / "release" / "src" / "cli" / "opguard")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--table", type=Path, metavar="DOCUMENT")
    o = parser.parse_args()
    if o.table:
        put(o.table, "fleet_page", said(json.loads(o.json.read_text())))
        return 0
    if not chromium():
        sys.exit("fleet_page: error: no Chromium: apt install chromium")
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "fleet.html"
        parts = write_parts(Path(folder), o.ranks, o.steps, files=16)
        start = time.perf_counter()
        merged = subprocess.run([o.opguard, "align", "--merge", *parts, "--html", page], capture_output=True, text=True)
        seconds = time.perf_counter() - start
        if merged.returncode != 1:
            sys.exit("fleet_page: error: " + merged.stderr)
        with Browser(width=1440, height=900) as browser:
            browser.open(page)
            browser.evaluate(PREPARE)
            for first in range(0, o.frames, AT_ONCE):
                browser.evaluate(PAN % (first, min(o.frames, first + AT_ONCE)))
            took = sorted(browser.evaluate("took"))
            errors = browser.errors
        slowest = took[int(len(took) * 0.99)]
        result = {"ranks": o.ranks, "steps": o.steps, "page_bytes": page.stat().st_size, "merge_s": round(seconds, 2), "frames": len(took),
                  "median_ms": round(took[len(took) // 2], 2), "of_100_slowest_ms": round(slowest, 2), "errors": errors}  # fmt: skip
    print(json.dumps(result))
    if o.json:
        o.json.write_text(json.dumps(result, indent=1) + "\n")
    return 0 if slowest <= 1000 / 60 and not errors and len(took) >= o.frames // 2 else 1


if __name__ == "__main__":
    sys.exit(main())
