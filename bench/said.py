"""What the programs of bench/ measured, in the words of docs/results: from the form of their --json output.

Each function takes the output and the words behind its name in a row's "say" (figures.py).
"""
from collections import Counter

import coverage as real_programs


def percent(share):
    return f"{100 * share:.2f} %"


def parses(found):
    return f"{found['files']:,} files, {found['skipped'] or 'none'} skipped (`bench/results/parses.json`)"


def refactor(found, name):
    (row,) = (r for r in found["sets"] if r["set"] == name)
    o, c = row["operators"], row["calls"]
    return f"{percent(o['recall'])} / {o['wrong']} of {o['sites']:,} (all calls {percent(c['recall'])} / {c['wrong']} of {c['sites']:,})"


def refactor_removed(found, name):
    (row,) = (r for r in found["sets"] if r["set"] == name)
    lost = {k: f"{row[k]['removed_not_bound']} of {row[k]['removed']}" for k in ("operators", "calls")}
    return f"{lost['operators']} (all calls {lost['calls']}), wrong {row['operators']['wrong']}, recall {percent(row['operators']['recall'])}"


def refactor_wrong(found, name):
    (row,) = (r for r in found["sets"] if r["set"] == name)
    return f"{row['calls']['wrong']} wrong of {row['calls']['sites']:,} calls, recall {percent(row['calls']['recall'])}"


def accuracy(found, what):
    of = lambda suite, *classes: sum(r["suite"] == suite and (not classes or r["class"] in classes) for r in found["results"])
    if what == "minitrain":
        return str(of("minitrain", "exact", "right"))
    if what == "verdicts":
        return str(sum(r["suite"] == "library" and r["answer"] is not None for r in found["results"]))
    return f"{of('library', 'exact', 'near')} ({of('library', 'exact')} at the statement)"


def coverage(found, what):
    rows = found["rows"]
    if what == "reached":
        least = min(share for row in rows for share in real_programs.shares(row).values() if share is not None)
        reached = sum(real_programs.passes(row) for row in rows)
        return f"{reached} of {len(rows)}, {real_programs.percent(least)} {'each' if least == 1 else 'at least'}"
    if what == "equal":
        return f"{sum(real_programs.passes(row) for row in rows)} of {len(rows)}"
    medians = Counter(row["sharing"]["execution"]["median"] for row in rows).most_common()
    others = ", ".join(f"{real_programs.number(median)} in {'one program' if count == 1 else f'{count} programs'}" for median, count in medians[1:])
    worst = sorted(row["sharing"]["execution"]["worst"] for row in rows)
    return f"{real_programs.number(medians[0][0])}{f' ({others})' if others else ''}; {real_programs.number(worst[0])} to {real_programs.number(worst[-1])}"


def blindspots(found):
    """og1's misses, then those of the others in the order of the columns, and who takes equal tensors for different."""
    parts = []
    for column, missed in found["missed"].items():
        alarms = sum(row[column] for row in found["equal"].values())
        parts.append(str(missed) + (f" (which also take {alarms} of {len(found['equal'])} equal pairs for different)" if alarms else ""))
    return f"{parts[0]}; {', '.join(parts[1:])}"


def read_log(found):
    whole, quarter = found["rows"][-1], found["rows"][0]
    text = f"{whole['read_s']:.2f} s, {whole['peak_bytes'] / 1e6:.0f} MB"
    taken = [f"{whole[k]:.1f} s" for k in ("numpy_s", "pandas_s", "parquet_s") if k in whole]
    text += f"; {', '.join(taken)}" + (f" ({whole['parquet_peak_bytes'] / 1e6:.0f} MB in all)" if "parquet_peak_bytes" in whole else "")
    return text + f"; a quarter of it: {quarter['read_s']:.2f} s, {quarter['peak_bytes'] / 1e6:.0f} MB"


def equal_sites(found):
    spans = []
    for lines in ("own", "one"):
        slopes = sorted(row["slope"] for row in found if row["lines"] == lines)
        spans.append(f"{slopes[0]:.2f} to {slopes[-1]:.2f}" if slopes[0] != slopes[-1] else f"{slopes[0]:.2f}")
    most = [row["cpu_s"][-1] for row in found if row["lines"] == "one"]
    return f"slopes {' and '.join(spans)}; {found[0]['sites'][-1]:,} on one line {' and '.join(f'{s:.1f}' for s in most)} CPU s"


def drift(found):
    each = [f"{row['rebound']:,} of {row['expected']:,} ({row['moved_line']:,} moved line)" for row in found]
    return "; ".join(each) + f"; {sum(row['wrong'] for row in found)} wrong"


def environments(found):
    right = [row for row in found if row["pivot"] and row["exit_code"] == 1 and row["losses_equal"]]
    return f"{len(right)} of {len(found)}"


def bombs(found):
    read = found["results"]
    slowest, most = max(r["seconds"] for r in read), max(r["factor"] for r in read)
    above = sum(r["factor"] > 100 for r in read)
    return f"{len(read)} readings: the slowest {slowest:.1f} s, the most memory {most} times; {above or 'none'} above 100 times (`bench/results/bombs.json`)"


def torture(found, *tests):
    """What torture.py told of some of its tests: "kills 1000, events 541121: 0 bad"."""
    told = [row for row in found if row["test"] in tests]
    return "; ".join(f"{row['text'].strip()}: {row['bad']} bad" if "bad" in row else f"{row['test']} skipped: {row['skipped']}" for row in told)


def on_gpu(found, *checks):
    """The checks of tests/gpu by name; with what run_checks.py wrote of them, where one has run."""
    ended = {check["name"]: check["exit"] for check in found["checks"]}
    words = {0: "passed", 2: "could not tell", 77: "not tried", None: "not run"}
    return ", ".join(f"`{name}` {words.get(ended.get(name), 'failed')}" for name in checks)
