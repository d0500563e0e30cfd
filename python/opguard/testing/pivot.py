"""Two recorded calls -> the first operator where they part, in the lines of both.

The comparison is `opguard align`'s: values are followed back through the calls, so nothing needs to match by source. What it
answers by boundary, phase and occurrence is a key of `Calls.sites`."""

import json
import linecache
import os
import subprocess
import tempfile

from opguard import command
from opguard.testing import calls

_KINDS = {
    "value": "equal inputs, another result",
    "scalar": "equal tensors, other arguments",
    "input": "it reads a value that no operator seen here made",
    "race": "the memory it reads was overwritten unseen",
}


def find(call_a, call_b, names):
    """-> (text, pivot as in JSON or None). names: of the sides, for people."""
    if calls.busy():
        return "where they part was not looked for: this process is itself being recorded by opguard", None
    program = command.program()
    if program is None:
        return "where they part was not looked for: this package has no program opguard with it", None
    with tempfile.TemporaryDirectory(prefix="opguard-test-") as folder:
        found = [calls.record_call(os.path.join(folder, side), call) for side, call in (("a", call_a), ("b", call_b))]
        answer = os.path.join(folder, "verdict.json")
        ran = subprocess.run(
            [program, "align", os.path.join(folder, "a"), os.path.join(folder, "b"), "--json", answer],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, errors="replace",
        )  # fmt: skip
        try:
            with open(answer, encoding="utf-8") as file:
                verdict = json.load(file)
        except (OSError, ValueError):
            return "where they part could not be told: %s" % (ran.stderr.strip() or "opguard ended with %d" % ran.returncode), None
    pivot = verdict.get("pivot")
    if pivot is None:
        return "no operator is named: %s" % verdict.get("why", verdict["verdict"]), None
    for side, one in zip("ab", found):
        if pivot[side] is not None:
            pivot[side]["site"] = _site_of(pivot, pivot[side], one.sites)
    return _text(pivot, names), pivot


def _site_of(pivot, side, known):
    forward = side.get("forward")
    phase, occurrence = (forward["phase"], forward["occurrence"]) if forward else (pivot["phase"], side["occurrence"])
    return known.get((side["boundary"], phase, occurrence))


# -- words


def _text(pivot, names):
    what = "backward node %s of %s" % (pivot["node"], pivot["boundary"]) if pivot["node"] else pivot["boundary"]
    if pivot["a"] and pivot["b"] and pivot["a"]["boundary"] != pivot["b"]["boundary"]:
        what = "%s in {a}, %s in {b}" % (pivot["a"]["boundary"], pivot["b"]["boundary"])
    lines = ["they part first at %s, %s: %s" % (what, pivot["phase"], _kind(pivot))]
    for side in "ab":
        lines += _side(side, pivot[side], names)
    lines += _slots(pivot)
    return "\n".join(lines).format(**names)


def _kind(pivot):
    if pivot["kind"] in _KINDS:
        return _KINDS[pivot["kind"]]
    if pivot["a"] and pivot["b"]:
        return "from equal values on, other operators"
    return "only {%s} has it, on values both hold" % ("a" if pivot["a"] else "b")


def _side(side, event, names):
    if event is None:
        return ["  %s  has no such operator" % side]
    site = event.pop("site", None)
    if site is None:
        return ["  %s  %s, called by no line outside torch" % (side, event["boundary"])]
    lines = _place(side, site)
    if site.caller is not None:
        lines += ["  called at"] + _place(" ", site.caller)
    event.update(file=_shown(site.path), path=site.path, line=site.line, column=max(site.column, 0), end_line=site.end_line,
                 end_column=max(site.end_column, 0), function=site.function)  # fmt: skip
    return lines


def _place(side, site):
    text = linecache.getline(site.path, site.line).rstrip()
    indent = len(text) - len(text.lstrip())
    column = ":%d" % (site.column + 1) if site.column >= 0 else ""
    lines = ["  %s  %s:%d%s: in %s" % (side, _shown(site.path), site.line, column, site.function.replace("<locals>.", ""))]
    if not text:
        return [_braced(line) for line in lines]
    first = site.column if site.column >= 0 else indent
    last = site.end_column if site.end_line == site.line and site.end_column > 0 else len(text)
    lines.append("        " + text[indent:])
    lines.append("        " + " " * (first - indent) + "^" + "~" * (last - first - 1))
    return [_braced(line) for line in lines]


def _braced(line):
    return line.replace("{", "{{").replace("}", "}}")


def _shown(path):
    here = os.path.relpath(path) if os.path.isabs(path) else path
    return path if here.startswith("..") else here


def _slots(pivot):
    lines = []
    scalars = [side and side["scalars"] for side in (pivot["a"], pivot["b"])]
    if pivot["kind"] == "scalar" or (scalars[0] != scalars[1] and all(scalars)):
        lines.append("  arguments: %s in {a}, %s in {b}" % tuple(_braced(text or "none") for text in scalars))
    for pair in pivot["differs"][:4]:
        a, b = (_slot(pair[side]) for side in "ab")
        name = (pair["a"] or pair["b"])["name"]
        lines.append("  %s: %s" % (_braced(name), "another value, %s" % a if a == b else "%s in {a}, %s in {b}" % (a or "none", b or "none")))
    return lines


def _slot(slot):
    return slot and "%s%s" % (slot.get("dtype", "?"), slot.get("shape") if slot.get("shape") is not None else "")
