"""How often `opguard check` catches a silent fault of training, where it points, and how often it is wrong about good programs.

  invariants.py [--set shared,tuning] [--json FILE] [--tier builtin,program] [--invariants FILE] [--clean PART] [--only NAME,...]
  invariants.py --infer FILE [--leave-out NAME,...] [--hypotheses FILE]      rules from the programs that may be learned from
  invariants.py --builtin                                                    the rules that come with the tool, looked at in these programs
  invariants.py --json FILE --table docs/results/invariants.md               from what --json wrote; runs nothing
  invariants.py --list                                                       the programs and their parts; runs nothing

The programs and their split: bench/invariants/README.md. Of --set exam only counts are printed and written, and no place or rule.
Tier builtin: the general rules (or --invariants) on both sides of each pair. Tier program: rules from two runs of the good side with
other seeds and lengths, on the good side again and on the bad one. A finding that the good side has too is a false alarm, and no catch.
--clean: which good programs are checked as well, by the general rules: learn, held_out, third, shared, none [by the set].
Runs are kept in --work by the digests of program and tool; what failed is run again after its folder is removed.
"""
import argparse
import concurrent.futures
import hashlib
import json
import sys
from pathlib import Path

from accuracy import ROOT, describe, tool_digest
from invariants import table
from invariants.programs import read_all
from invariants.recordings import Harness
from invariants.score import clean_figures, judge_clean, judge_pair, pair_figures, said

SETS = {"shared": "shared", "tuning": "learn", "opened": "none", "second": "held_out", "third": "third", "exam": "exam"}  # and the clean programs beside it
UNREAD = {"exam"}  # parts whose findings are not shown
RULES = ROOT / "src" / "invariants"
RUNS = [(1, 8), (2, 6), (3, 10), (4, 7)]  # seeds and steps of what is learned from; (0, 8) is checked


def words(text):
    return [word for word in text.split(",") if word]


def digest_of(opguard):
    """The tool's, and that of the files it reads as it runs: the builtin rules may be one of them."""
    found = hashlib.sha256(tool_digest(opguard).encode())
    for path in sorted((opguard.parents[2] / "share").rglob("*.json")):
        found.update(path.read_bytes())
    return found.hexdigest()


def program_rules(harness, pair, o):
    logs = [(pair.name, harness.record(pair.good, *run)) for run in RUNS[: o.runs]]
    return harness.infer(logs) if all(log for _, log in logs) else None


def try_pair(harness, pair, tier, o):
    """(the pair's row, the good side's row) of one tier; a row says why where there is no answer."""
    rules = o.invariants if tier == "builtin" else program_rules(harness, pair, o)
    if rules is None:
        answers = [(None, "no rules could be inferred")] * 2
    else:
        answers = [harness.check(rules, side, probes=o.way == "program") for side in (pair.good, pair.bad)]
    (good, good_error), (bad, bad_error) = answers
    row, clean = judge_pair(pair, bad, good), judge_clean(pair.good, good)
    for out, error in ((row, bad_error), (clean, good_error)):
        if error:
            out["error"] = error
    if pair.part not in UNREAD:
        row["told"] = [short(f) for f in (bad or {}).get("findings", [])[:5]]
        clean["told"] = [short(f) for f in (good or {}).get("findings", [])[:5]]
    return row, clean


def try_clean(harness, program, o):
    answer, error = harness.check(o.invariants, program, probes=False)
    row = judge_clean(program, answer)
    if error:
        row["error"] = error
    if program.part not in UNREAD:
        row["told"] = [short(f) for f in (answer or {}).get("findings", [])[:5]]
    return row


def short(finding):
    place = finding.get("place") or {}
    return {"step": finding["step"], "relation": finding["relation"], "says": finding["invariant"]["says"],
            "severity": finding["invariant"]["severity"], "name": finding.get("name"), "detail": finding.get("detail"),
            "at": f"{place.get('file')}:{place.get('line')}", "others": len(said(finding)) - 1}  # fmt: skip


def learned(clean, pairs, o):
    """What rules may be mined from: clean programs to learn from, and good sides of the first exam and before."""
    programs = [p for p in clean if p.part in ("learn", "shared")] + [p.good for p in pairs if p.part in ("tuning", "opened", "shared")]
    return [p for p in programs if p.name not in words(o.leave_out) and (not o.only or p.name in words(o.only))]


def infer(harness, clean, pairs, o):
    programs = learned(clean, pairs, o)
    jobs = [(p, run) for p in programs for run in RUNS[: o.runs]]
    with concurrent.futures.ThreadPoolExecutor(o.jobs) as pool:
        logs = list(pool.map(lambda job: harness.record(job[0], *job[1]), jobs))
    for (p, (seed, steps)), log in zip(jobs, logs, strict=True):
        if log is None:
            print(f"{p.name} ({p.side}), SEED={seed} STEPS={steps}: failed, left out", file=sys.stderr)
    extra = ["--hypotheses", o.hypotheses.resolve()] if o.hypotheses else []
    # A pair's name may be a clean program's as well.
    rules = harness.infer([(f"{p.side}-{p.name}", log) for (p, _), log in zip(jobs, logs, strict=True) if log], extra)
    if rules is None:
        sys.exit("invariants.py: error: opguard infer failed")
    found = json.loads(rules.read_text())
    if o.written:
        found["invariants"] = [rule for rule in found["invariants"] if rule["tier"] == "structural"]
    o.infer.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n")
    count = len(found["invariants"])
    print(f"{count} rules from {sum(log is not None for log in logs)} runs of {len(programs)} programs: {o.infer}")


def say(title, f):
    print(f"{title}: {f['pairs']} pairs, {f['caught']} caught, {f['in_time']} in time; the right relation among the first 3 findings: "
          f"{f['relation']} ({f['leads']} at the head of one); line exact {f['exact']}, within 3 {f['near']}, "
          f"module {f['module']} of {f['with_module']}; findings a fault: median {f['findings_median']}, most {f['findings_most']}")  # fmt: skip


def say_clean(title, f):
    share = "-" if f["share"] is None else f"{100 * f['share']:.2f} %"
    print(f"{title}: {f['programs']} programs, {f['violated']} of {f['applied']} applicable rules violated ({share}), "
          f"{f['with_any']} programs with any; {f['errors']} rules at severity error, {f['with_error']} programs"
          + (f"; no rule applied to {f['without_rules']}" if f["without_rules"] else ""))  # fmt: skip


def measure(harness, clean, pairs, o):
    result = {"describe": describe(o.opguard, o.python), "invariants": o.invariants if o.invariants == "builtin" else Path(o.invariants).name, "way": o.way, "sets": {}}
    for of in words(o.set):
        part = o.clean or SETS[of]
        chosen = [p for p in pairs if p.part == of and (not o.only or p.name in words(o.only))]
        others = [p for p in clean if p.part == part and (not o.only or p.name in words(o.only))]
        out = result["sets"][of] = {"tiers": {}}
        with concurrent.futures.ThreadPoolExecutor(o.jobs) as pool:
            for tier in words(o.tier):
                rows = list(pool.map(lambda p, tier=tier: try_pair(harness, p, tier, o), chosen))
                tiered = out["tiers"][tier] = {"pairs": [r for r, _ in rows], "good": [c for _, c in rows]}
                tiered["figures"], tiered["good_figures"] = pair_figures(tiered["pairs"]), clean_figures(tiered["good"])
                say(f"{of}, {tier}", tiered["figures"])
                say_clean(f"{of}, {tier}, good sides", tiered["good_figures"])
                missed = [r["name"] + (f" ({r['error']})" if "error" in r else "") for r in tiered["pairs"] if not r["in_time"]]
                if missed and of not in UNREAD:
                    print("  not in time:", ", ".join(missed))
            if "builtin" in words(o.tier) and others:
                out["clean"] = list(pool.map(lambda p: try_clean(harness, p, o), others))
                out["clean_figures"] = clean_figures(out["clean"])
                say_clean(f"{part} clean programs, builtin", out["clean_figures"])
                failed = [f"{r['name']} ({r['error']})" for r in out["clean"] if "error" in r]
                if failed:
                    print("  failed:", ", ".join(failed))
    return result


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--set", default="shared,tuning", help="shared, tuning, opened, second, third, separated by commas [shared,tuning]")
    p.add_argument("--tier", default="builtin,program")
    p.add_argument("--clean", choices=("learn", "held_out", "third", "shared", "none"))
    p.add_argument("--invariants", default="builtin", help="a file of rules in place of builtin")
    p.add_argument("--only", default="", help="these programs, separated by commas")
    p.add_argument("--way", choices=("program", "log"), default="program", help="pairs run with probes, or their logs without [program]")
    p.add_argument("--json", type=Path)
    p.add_argument("--table", type=Path, metavar="DOCUMENT", help="write what --json has kept into this document; runs nothing")
    p.add_argument("--mark", default="invariants", help="the table's place in the document [invariants]")
    p.add_argument("--infer", type=Path, help="write the general rules to this file, and check nothing")
    p.add_argument("--hypotheses", type=Path)
    p.add_argument("--builtin", action="store_true", help="write the rules that come with the tool: those of hypotheses.json, scored")
    p.add_argument("--leave-out", default="", help="with --infer: not these programs")
    p.add_argument("--runs", type=int, default=2, help="runs of a program that is learned from [2]")
    p.add_argument("--shared", type=Path, default=ROOT.parent / "shared" / "cases" / "invariants")
    p.add_argument("--opguard", type=Path, default=ROOT / "build" / "release" / "src" / "cli" / "opguard")
    p.add_argument("--python", type=Path, default=ROOT / ".venv" / "bin" / "python")
    p.add_argument("--work", type=Path, default=ROOT / "build" / "invariants")
    p.add_argument("--jobs", type=int, default=2)
    p.add_argument("--list", action="store_true")
    o = p.parse_args()
    if o.table:
        return table.put(json.loads(o.json.read_text()), o.table, o.mark)
    o.written = o.builtin
    if o.builtin:
        o.infer, o.hypotheses = RULES / "builtin.json", RULES / "hypotheses.json"
    clean, pairs = read_all(o.shared)
    if o.list:
        for kind, programs in (("clean", clean), ("pair", pairs)):
            for part in dict.fromkeys(x.part for x in programs):
                names = [x.name for x in programs if x.part == part]
                print(f"{kind} {part} ({len(names)}): {' '.join(names)}")
        return
    if unknown := set(words(o.set)) - set(SETS):
        sys.exit(f"invariants.py: error: no set {', '.join(sorted(unknown))}: {', '.join(SETS)}")
    if unknown := set(words(o.only)) - {x.name for x in [*clean, *pairs]}:
        sys.exit(f"invariants.py: error: no program {', '.join(sorted(unknown))} (--list)")
    if o.invariants != "builtin":
        o.invariants = Path(o.invariants).resolve()
    if not o.opguard.exists():
        sys.exit(f"invariants.py: error: no program {o.opguard}; build it, or name it with --opguard")
    # A virtual environment's python is a link, and what it links to has no torch.
    o.opguard, o.python = o.opguard.resolve(), o.python.absolute()
    harness = Harness(o.opguard, o.python, o.work.resolve(), digest_of(o.opguard))
    if o.infer:
        return infer(harness, clean, pairs, o)
    result = measure(harness, clean, pairs, o)
    if o.json:
        o.json.write_text(json.dumps(result, indent=1, ensure_ascii=False, default=str) + "\n")


if __name__ == "__main__":
    main()
