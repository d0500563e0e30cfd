"""What `opguard diff` says of a drawn pair, and what `opguard align` says of logs that were kept."""
import json
import os
import shutil
import signal
import subprocess
import time

from mutants.judge import judge, proof
from mutants.programs import environment


RUNNING = set()  # processes, each the first of its group


def run(command, cwd, env, timeout):
    """(exit code, or None after the time limit; all that was printed). Nothing is left running."""
    process = subprocess.Popen(command, cwd=cwd, env=env, text=True, errors="replace", start_new_session=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    RUNNING.add(process)
    try:
        output, _ = process.communicate(timeout=timeout)
        return process.returncode, output
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        return None, process.communicate()[0]
    finally:
        RUNNING.discard(process)


def stop(*_):
    """Ends what runs, and this program with it: for a signal."""
    for process in list(RUNNING):
        os.killpg(process.pid, signal.SIGKILL)
    os._exit(1)


def ask(opguard, program, folder, venv, timeout, options=()):
    """Runs `opguard diff` on folder/a and folder/b; writes its report, its answer and its logs beside them."""
    work, out = folder / "work", folder / "answer.json"
    shutil.rmtree(work, ignore_errors=True)
    out.unlink(missing_ok=True)
    command = [opguard, "diff", folder / "a", folder / "b", "--json", out, "--work", work, *options, "--", *program.command()]
    start = time.monotonic()
    code, report = run([str(c) for c in command], folder, environment(venv), timeout)
    (folder / "report.txt").write_text(report)
    return read_answer(out), code, time.monotonic() - start


def kept_logs(folder):
    """The log folders of both sides; None where a run did not get that far."""
    logs = [folder / "work" / f"run_{side}" / "log" for side in "ab"]
    return logs if all((log / "sites.json").is_file() for log in logs) else None


def ask_again(opguard, folder, timeout):
    """Judges the logs that `ask` kept once more."""
    out = folder / "rejudged.answer.json"
    out.unlink(missing_ok=True)
    start = time.monotonic()
    code, report = run([str(c) for c in (opguard, "align", *kept_logs(folder), "--json", out)], folder, dict(os.environ), timeout)
    (folder / "rejudged.txt").write_text(report)
    return read_answer(out), code, time.monotonic() - start


def read_answer(path):
    return json.loads(path.read_text()) if path.is_file() else None


def place(location):
    return f"{location['file']}:{location['line']}" if location else "-"


def result_of(entry, answer, code, seconds):
    """One entry of the results: entry is what `keep_draw` wrote."""
    pivot = (answer or {}).get("pivot") or {}
    return {
        **{k: entry[k] for k in ("name", "program", "operator", "note", "refactorings", "beside")},
        "class": "time_limit" if answer is None and code is None else judge(entry["truth"], answer),
        "verdict": (answer or {}).get("verdict", f"none (exit {code})"),
        "kind": pivot.get("kind", ""),
        "operator_named": pivot.get("operator", ""),
        "a": place(pivot.get("a")),
        "b": place(pivot.get("b")),
        "true": {side: [f"{p['file']}:{p['first_line']}-{p['last_line']}" for p in found["statement"]] for side, found in entry["truth"].items()},
        "proof": proof(answer),
        "seconds": round(seconds, 1),
    }
