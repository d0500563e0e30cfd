"""Two recorded calls -> the first operator where they part, in the lines of both.

    they part first at softmax in a, amax in b, forward: from equal values on, other operators
      a  test_attention.py:7:7: in reference
            p = torch.softmax(s, dim=-1)
                ^~~~~~~~~~~~~~~~~~~~~~~~

The comparison is `opguard align`'s: values are followed back through the calls, so nothing needs to match by source.
What it answers by boundary, phase and occurrence is a key of `Calls.sites`. Counterexample: in a session that is
recorded itself nothing is looked for."""

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


def find(call_a, call_b):
    """-> (text, pivot as in JSON or None)"""
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
        for event in [pivot, *verdict["candidates"]]:
            if event[side] is not None:
                event[side]["site"] = _site_of(event, event[side], one.sites)
    return _text(pivot, _meanwhile(pivot, verdict["candidates"])), pivot


def _meanwhile(pivot, candidates):
    """What the side without the pivot's operator runs in its place, as far as that is known: {side: event}."""
    for event in candidates:
        for side, other in ("ab", "ba"):
            if pivot[side] is None and event[side] is not None and event[side]["site"] is not None:
                return {side: event[side]}
    return {}


def _site_of(pivot, side, known):
    """Of a backward node the line of its forward operator, whose phase and occurrence the answer has too."""
    forward = side.get("forward")
    phase, occurrence = (forward["phase"], forward["occurrence"]) if forward else (pivot["phase"], side["occurrence"])
    return known.get((side["boundary"], phase, occurrence))


# -- words


def _text(pivot, meanwhile):
    if pivot["boundary"].startswith("<"):
        return _unmade(pivot)
    what = "backward node %s of %s" % (pivot["node"], pivot["boundary"]) if pivot["node"] else pivot["boundary"]
    if pivot["a"] and pivot["b"] and pivot["a"]["boundary"] != pivot["b"]["boundary"]:
        what = "%s in a, %s in b" % (pivot["a"]["boundary"], pivot["b"]["boundary"])
    lines = ["they part first at %s, %s: %s" % (what, pivot["phase"], _kind(pivot))]
    for side in "ab":
        lines += _side(side, pivot[side], meanwhile.get(side))
    lines += _slots(pivot)
    return "\n".join(lines)


def _unmade(pivot):
    """No operator: a value that was made out of sight, or a gradient as it is added to its leaf."""
    names = [(pair["a"] or pair["b"])["name"] for pair in pivot["differs"]]
    if pivot["event"] == "accumulate":
        leaf = next((name for name in names if name.startswith("grad:")), "grad:a tensor")[len("grad:") :]
        return "no operator is named: they part first in the gradients added to %s" % leaf
    return "no operator is named: what differs was made where no function of torch is seen (numpy, an extension, a thread, vmap and torch.func)"


def _kind(pivot):
    if pivot["kind"] in _KINDS:
        return _KINDS[pivot["kind"]]
    if pivot["a"] and pivot["b"]:
        if pivot["a"]["boundary"] != pivot["b"]["boundary"]:
            return "from equal values on, other operators"
        results = all((pair["a"] or pair["b"])["name"].startswith("out") for pair in pivot["differs"])
        return "equal inputs, a result of another type or shape" if results else "inputs of other types or shapes"
    return "only %s has it, on values both hold" % ("a" if pivot["a"] else "b")


def _side(side, event, instead):
    """The lines of one side: its place, or that it has no such operator and where it parts next. Puts the place into
    the event too."""
    if event is None and instead is None:
        return ["  %s  has no such operator" % side]
    if event is None:
        return ["  %s  has no such operator, and parts next at %s:" % (side, instead["boundary"])] + _places(" ", instead["site"])
    site = event.pop("site", None)
    if site is None:
        return ["  %s  %s, called by no line outside torch" % (side, event["boundary"])]
    lines = _places(side, site)
    event.update(file=_shown(site.path), path=site.path, line=site.line, column=max(site.column, 0), end_line=site.end_line,
                 end_column=max(site.end_column, 0), function=site.function)  # fmt: skip
    return lines


def _places(side, site):
    """In an installed package, and the line of the program's that led there."""
    return _place(side, site) + (["  called at"] + _place(" ", site.caller) if site.caller is not None else [])


def _place(side, site):
    text = linecache.getline(site.path, site.line).rstrip()
    indent = len(text) - len(text.lstrip())
    column = ":%d" % (site.column + 1) if site.column >= 0 else ""
    lines = ["  %s  %s:%d%s: in %s" % (side, _shown(site.path), site.line, column, site.function.replace("<locals>.", ""))]
    if not text:
        return lines
    first = site.column if site.column >= 0 else indent
    last = site.end_column if site.end_line == site.line and site.end_column > 0 else len(text)
    lines.append("        " + text[indent:])
    lines.append("        " + " " * (first - indent) + "^" + "~" * (last - first - 1))
    return lines


def _shown(path):
    here = os.path.relpath(path) if os.path.isabs(path) else path
    return path if here.startswith("..") else here


def _slots(pivot):
    """At most four tensors that differ, by type and shape, and arguments that do."""
    lines = []
    scalars = [side and side["scalars"] for side in (pivot["a"], pivot["b"])]
    if pivot["kind"] == "scalar" or (scalars[0] != scalars[1] and all(scalars)):
        lines.append("  arguments: %s in a, %s in b" % tuple(_cut(text or "none") for text in scalars))
    for pair in pivot["differs"][:4]:
        a, b = (_slot(pair[side]) for side in "ab")
        name = (pair["a"] or pair["b"])["name"]
        lines.append("  %s: %s" % (name, "another value, %s" % a if a == b else "%s in a, %s in b" % (a or "none", b or "none")))
    return lines


def _cut(text):
    return text if len(text) <= 120 else text[:117] + "..."


def _slot(slot):
    return slot and "%s%s" % (slot.get("dtype", "?"), slot.get("shape") if slot.get("shape") is not None else "")
