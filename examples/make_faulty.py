"""make_faulty.py OUT: a copy of examples/minitrain with one wrong line, as a careless commit would leave it.

The fault: the RoPE tables are rounded to bfloat16 when they are built. Prints the edit as a diff.
"""
import difflib
import shutil
import sys
from pathlib import Path

GOOD = Path(__file__).resolve().parent / "minitrain"
FILE = "minigpt/model/rope.py"
OLD = "    return angles.cos(), angles.sin()\n"
NEW = "    return angles.cos().bfloat16().float(), angles.sin().bfloat16().float()\n"


def main(out):
    out = Path(out)
    if out.exists():
        sys.exit(f"make_faulty.py: {out} exists")
    shutil.copytree(GOOD, out, ignore=shutil.ignore_patterns("__pycache__"))
    before = (out / FILE).read_text()
    if before.count(OLD) != 1:
        sys.exit(f"make_faulty.py: {FILE} no longer holds the line to change")
    after = before.replace(OLD, NEW)
    (out / FILE).write_text(after)
    sys.stdout.writelines(
        difflib.unified_diff(before.splitlines(True), after.splitlines(True), f"a/{FILE}", f"b/{FILE}", n=1))


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: make_faulty.py OUT")
    main(sys.argv[1])
