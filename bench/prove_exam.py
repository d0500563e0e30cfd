"""`opguard prove` on plans with known answers: verdicts, the statement that is named, seconds.

    bench/prove_exam.py [--cases DIR] [--jobs N] [--json FILE] [--table DOCUMENT] [--mark NAME] [--by-base]

The cases are ../shared/cases/prove, or bench/plans/exam and exam2 (exam.json says what each is; one with edits is made of its base). A statement counts as named where a line that stands under "made", "fed", "passed" or "used", or
one of the two that called it, is within --near lines of the mutated one and in its file. It is within a hop where that holds, or where such a line read what a line
beside the mutated one wrote, or wrote what that one read, on some rank. With --table nothing runs: what --json has kept is written into the document.
"""

import argparse
import difflib
import json
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
CALLERS = 2  # that the text of a report shows with a statement


def mutated_lines(o, case):
    """Where a plan differs from the correct one that it was made of; without that, the lines that hold the statement."""
    if "edits" in case:
        return [case["line"]]
    lines = (o.cases / (case["case"] + ".py")).read_text().splitlines()
    base = o.cases / ((case["base"] or "") + ".py")
    if base.is_file():
        found = []
        for tag, _, _, begin, end in difflib.SequenceMatcher(None, base.read_text().splitlines(), lines, autojunk=False).get_opcodes():
            found += range(begin + 1, max(end, begin + 1) + 1) if tag != "equal" else []
        return found
    return [number for number, line in enumerate(lines, 1) if case["statement"] in line]


def plan_of(o, case, folder):
    """The case's file; one with edits is written into the folder, beside what it imports."""
    if "edits" not in case:
        return o.cases / (case["case"] + ".py")
    for file in o.cases.glob("*.py"):
        shutil.copy(file, folder)
    text = (o.cases / (case["base"] + ".py")).read_text()
    for number, (old, new) in enumerate(case["edits"]):
        assert old in text, (case["case"], old)
        text = text.replace(old, new, 1 if number == 0 else -1)
    path = Path(folder) / (case["case"] + ".py")
    path.write_text(text)
    return path


def tensors(argument):
    if isinstance(argument, dict):
        if "t" in argument:
            yield argument["t"][0]
        else:
            for value in argument.values():
                yield from tensors(value)
    elif isinstance(argument, list):
        for value in argument:
            yield from tensors(value)


def neighbours(work):
    """Pairs of lines of which one read what the other had written last: {(file, line): {(file, line), ...}} of all ranks."""
    found = {}
    for path in work.glob("rank-*.json"):
        side = json.loads(path.read_text())
        lines = [{(Path(file).name, line) for file, line, _ in stack[: 1 + CALLERS]} for stack in side["stacks"]]
        writer = {int(storage): lines[at] for storage, at in side.get("constants_at", {}).items()}
        for node in side["nodes"]:
            here = lines[node["at"]]
            for storage in tensors([node["args"], node["kwargs"]]):
                for line in writer.get(storage, ()):
                    for other in here:
                        found.setdefault(line, set()).add(other)
                        found.setdefault(other, set()).add(line)
            for storage in tensors(node["out"] + node["writes"]):
                writer[storage] = here
    return found


def try_case(o, case):
    with tempfile.TemporaryDirectory() as folder:
        path = plan_of(o, case, folder)
        begin = time.monotonic()
        ran = subprocess.run([o.opguard, "prove", path, "--python", o.python, "--work", Path(folder) / "work", "--json", Path(folder) / "result.json"], capture_output=True, text=True)
        seconds = time.monotonic() - begin
        written = Path(folder) / "result.json"
        found = json.loads(written.read_text()) if written.exists() else {"verdict": "bad input", "why": ran.stderr.replace(folder + "/", "").strip()[-300:]}
        beside = neighbours(Path(folder) / "work") if found["verdict"] == "refuted" else {}
    result = {"case": case["case"], "base": case["base"], "expect": case["expect"], "verdict": found["verdict"], "seconds": round(seconds, 1), "check_seconds": round(found.get("seconds", 0), 2)}
    if case["expect"] == "refuted" and found["verdict"] == "refuted":
        wanted = mutated_lines(o, case)
        difference = found.get("difference", {})
        told = [s for s in (found.get("at"), difference.get("made"), *difference.get("fed", []), difference.get("passed"), difference.get("used")) if s]
        said = [line for s in told for line in (s, *s.get("callers", [])[:CALLERS])]
        near = [abs(s["line"] - line) for s in said for line in wanted if Path(s["file"]).name == path.name]
        named = {(Path(s["file"]).name, s["line"]) for s in said}
        hop = any(other in named for line in wanted for at in (line - 1, line, line + 1) for other in beside.get((path.name, at), ()))
        result["within_a_hop"] = hop or min(near, default=o.near + 1) <= o.near
        result.update(statement=wanted, said=["%s:%d" % (Path(s["file"]).name, s["line"]) for s in said], lines_off=min(near, default=None))
    elif found.get("why"):
        result["why"] = found["why"]
    return result


def table(kept):
    rows = ["| plan | expected | verdict | s, of them checking | lines from the mutated statement | within a hop |", "|---|---|---|---|---|---|"]
    for r in kept["cases"]:
        off = r.get("lines_off")
        hop = {True: "yes", False: "no"}.get(r.get("within_a_hop"), "")
        rows.append("| %s | %s | %s | %.1f, %.2f | %s | %s |" % (r["case"], r["expect"], r["verdict"], r["seconds"], r["check_seconds"], "" if r["expect"] != "refuted" else "another file" if off is None else off, hop))
    return "\n".join(rows)


def table_by_base(kept):
    """A row for each correct plan: of those with a mistake and of the equal ones, how many are told right."""
    rows = ["| made of | with a mistake | refuted | proved | within a hop | equal | proved |", "|---|---|---|---|---|---|---|"]
    bases = sorted({r["base"] for r in kept["cases"]})
    for name, of in [(base, [r for r in kept["cases"] if r["base"] == base]) for base in bases] + [("all", kept["cases"])]:
        wrong, equal = [r for r in of if r["expect"] == "refuted"], [r for r in of if r["expect"] == "proved"]
        counts = [len(wrong), sum(r["verdict"] == "refuted" for r in wrong), sum(r["verdict"] == "proved" for r in wrong), sum(r.get("within_a_hop", False) for r in wrong), len(equal), sum(r["verdict"] == "proved" for r in equal)]
        rows.append("| " + " | ".join([name, *map(str, counts)]) + " |")
    return "\n".join(rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=Path, default=ROOT.parent / "shared" / "cases" / "prove")
    parser.add_argument("--opguard", type=Path, default=ROOT / "build" / "release" / "src" / "cli" / "opguard")
    parser.add_argument("--python", type=Path, default=ROOT / ".venv" / "bin" / "python")
    parser.add_argument("--jobs", type=int, default=1, help="cases at a time; their seconds are then those of a shared machine")
    parser.add_argument("--near", type=int, default=2)
    parser.add_argument("--expect", choices=("proved", "refuted"), help="these cases")
    parser.add_argument("--only", default="", help="these cases, separated by commas")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--table", type=Path, metavar="DOCUMENT")
    parser.add_argument("--by-base", action="store_true", help="a table of the correct plans that cases were made of, not of the cases")
    parser.add_argument("--mark", default="prove_exam", help="where in the document")
    o = parser.parse_args()
    if o.table:
        from marks import put

        put(o.table, o.mark, (table_by_base if o.by_base else table)(json.loads(o.json.read_text())))
        return 0
    if not (o.cases / "exam.json").is_file():
        print(f"skipped: no {o.cases / 'exam.json'}")
        return 77
    cases = [case for case in json.loads((o.cases / "exam.json").read_text()) if (not o.only or case["case"] in o.only.split(",")) and o.expect in (None, case["expect"])]
    results = []
    with ThreadPoolExecutor(o.jobs) as pool:
        for result in pool.map(lambda case: try_case(o, case), cases):
            results.append(result)
            print(result, flush=True)
    right = sum(r["verdict"] == r["expect"] for r in results)
    wrongly_proved = sum(r["verdict"] == "proved" != r["expect"] for r in results)
    refuted = [r for r in results if r["expect"] == "refuted"]
    named = sum(r.get("lines_off") is not None and r["lines_off"] <= o.near for r in refuted)
    summary = {"cases": len(results), "right": right, "wrongly_proved": wrongly_proved, "refuted": len(refuted), "statement_within": o.near, "statement_named": named, "within_a_hop": sum(r.get("within_a_hop", False) for r in refuted), "seconds": round(sum(r["seconds"] for r in results), 1)}
    print("%(right)d of %(cases)d verdicts as expected, %(wrongly_proved)d wrongly proved; of %(refuted)d mutated plans the statement within %(statement_within)d lines in %(statement_named)d, within a hop in %(within_a_hop)d; %(seconds).0f s" % summary)
    if o.json:
        o.json.write_text(json.dumps({"summary": summary, "cases": results}, indent=1) + "\n")
    return 0 if right == len(results) else 1


if __name__ == "__main__":
    sys.exit(main())
