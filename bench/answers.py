"""What programs that score opguard's answers share: answers kept while the tool stays the same, and their file.

    result(path, digest, fresh, make)   make()'s answer, or the one that is kept there of the same tool
    keep(file, answer, commit, first)   into the file, in place of the earlier answer to the same case and seed

A case that is held out was not looked at while the tool was written: the first answer to it stays, as `first`.
"""
import json
import subprocess


def result(path, digest, fresh, make):
    """`path`: a file of this case and seed. `digest`: of the tool (accuracy.tool_digest)."""
    if path.is_file() and not fresh:
        kept = json.loads(path.read_text())
        if kept.get("tool") == digest:
            return kept
    found = {**make(), "tool": digest}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(found, indent=1) + "\n")
    return found


def keep(file, answer, commit, first):
    """`answer` has case, seed and held_out. `first`: the fields of a first answer that stay."""
    rows = {(r["case"], r["seed"]): r for r in json.loads(file.read_text())["results"]} if file.is_file() else {}
    now = {k: v for k, v in answer.items() if k != "tool"} | {"commit": commit}
    if answer["held_out"]:
        before = rows.get((answer["case"], answer["seed"]))
        now["first"] = before["first"] if before else {k: now[k] for k in (*first, "commit")}
    rows[answer["case"], answer["seed"]] = now
    file.write_text(json.dumps({"results": [rows[k] for k in sorted(rows)]}, indent=1) + "\n")


def commit_of(opguard):
    """That of its build: the tree may have gone on since."""
    said = subprocess.run([opguard, "--version"], capture_output=True, text=True).stdout
    return said.strip().partition(" (")[2].rstrip(")") or "unknown"
