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


def fuzz(found):
    """Inputs of each target, and how long 10^8 of them take."""
    rows = {row["test"].removeprefix("fuzz "): row for row in found if row["test"].startswith("fuzz ")}
    whole = rows.pop("in all")
    each = ", ".join(f"{name} {row['runs']:,}" for name, row in rows.items())
    rate = whole["runs"] / whole["processor_s"]
    bad = sum(row["bad"] for row in rows.values())
    slowest = max(row["slowest_s"] for row in rows.values())
    return f"{each}: {bad} bad, the slowest {slowest} s; {rate:,.0f} a second of a processor, so that 1e8 take {1e8 / rate / 3600:.1f} hours"


def on_gpu(found, *checks):
    """The checks of tests/gpu by name; with what run_checks.py wrote of them, where one has run."""
    ended = {check["name"]: check["exit"] for check in found["checks"]}
    words = {0: "passed", 2: "could not tell", 77: "not tried", None: "not run"}
    return ", ".join(f"`{name}` {words.get(ended.get(name), 'failed')}" for name in checks) + "".join(measured_on_gpu(c) for c in found["checks"] if c["name"] in checks)


def measured_on_gpu(check):
    if "least_of_torch_sum" in check:
        each = ", ".join(f"{row['tensor']} {row['of_torch_sum']['og1']:.2f}" for row in check["rows"] if row["bytes"] >= 1 << 26)
        return f": {check['least_of_torch_sum']:.2f} of torch.sum. Each: {each}. A launch takes {check['host_microseconds_a_launch']['1']:.0f} us of the program's thread"
    if "times" in check:
        return "".join(f": {kind}, full {times['full']:.2f}, default {times['default']:.2f}, sdc {times['sdc']:.2f}" for kind, times in check["times"].items() if times)
    return ""


def pairing(found, rows, beside=""):
    """align.py: true pairs found / wrong ones / pivots of `opguard` in rows of these numbers ("0,1,2"), and of the others in one of them."""
    own = [row for row in found["rows"] if row["matcher"] == "opguard"]
    share = lambda value: f"{value:.2f}".rstrip("0").rstrip(".")
    words = [f"{share(r['found'])} % / {share(r['wrong'])}{' %' if r['wrong'] else ''} / {r['pivots']} of {r['seeds']}" for r in map(own.__getitem__, map(int, rows.split(",")))]
    text = f"{words[0]} each" if len(words) > 1 and len(set(words)) == 1 else "; ".join(words)
    if beside:
        others = [r for r in found["rows"] if r["row"] == own[int(beside)]["row"] and r["matcher"] != "opguard" and "found" in r]
        each = lambda words: ", ".join(map(str, words))
        text += f"; in the same run {each(r['matcher'] for r in others)}"
        text += f": {each(round(r['found']) for r in others)} %, pivots {each(r['pivots'] for r in others)}"
    return text


def align_scale(found, what, change=""):
    rows = [row for row in found["rows"] if row["change"] == change]
    if what == "most":
        return f"{rows[-1]['cpu_seconds']:.1f} s, {rows[-1]['peak_mb']:,.0f} MB ({rows[-1]['seconds']:.1f} s of wall time)"
    if what == "rates":
        rates, peaks = [f"{r['records_per_second'] / 1e6:.1f}" for r in rows], [f"{r['peak_mb']:,.0f}" for r in rows]
        return f"{', '.join(rates)}; {', '.join(peaks)}"
    if what == "ranks":
        return "; ".join(f"{r['cpu_seconds']:.1f} s of CPU, {r['peak_mb']:,.0f} MB" for r in found["rows"])
    return "; ".join(f"{slope:.2f}" for slope in found["slopes"].values() if slope is not None)


def fingerprint(found, what):
    rows = {(row["dtype"], row["shape"]): row for row in found["rows"]}
    if what == "all":
        of = {d: [r["ratio"]["sum"] for r in found["rows"] if r["goal"] and r["dtype"] == d] for d in ("float32", "bfloat16")}
        spans = ", ".join(f"{d} {min(v):.2f} to {max(v):.2f}" for d, v in of.items())
        return f"{found['least']['all of sum']:.2f}; {spans}"
    if what == "og1":
        return f"{found['least']['og1 of sum']:.2f}, {found['least']['og1 of hash_tensor']:.1f}"
    outside = [rows["float32", shape]["ratio"]["sum"] for shape in ("in cache: 1 MiB", "rows of 16 B", "odd rows")]
    return "; ".join(f"{ratio:.2f}" for ratio in outside)


def overhead(found, size):
    """A step's factors, with what the bare step beside itself gives where that ran; or one probe's time."""
    if size == "wrapper":
        us = {row["mode"]: row["us"] for row in found["wrapper"]}
        bare = min(row["bare_us"] for row in found["wrapper"])
        return f"{us['default']:.2f}, {us['full']:.2f} us (beside an operator of {bare:.2f} us)"
    cpu = {row["mode"]: row["cpu"] for row in found["steps"] if row["size"] == size}
    text = f"{cpu['default']['x']:.3f}, {cpu['full']['x']:.3f} (ratio of the minima {cpu['default']['min_x']:.3f}, {cpu['full']['min_x']:.3f})"
    if "noise" in cpu:
        low, high = cpu["noise"]["quartiles"]
        text += f"; the bare step twice gave {cpu['noise']['x']:.2f} (quartiles {low} to {high})"
    return text


def speed(found, renamed=""):
    rows = {row["what"]: row for row in found}
    row = rows["parse, match, diff" + (", one function renamed" if renamed else "")]
    text = f"{row['one_core']['cpu_s']:.2f} CPU s, {row['one_core']['peak_mb']:.0f} MB"
    if not renamed:
        text += f"; tree-sitter alone {rows['tree-sitter alone']['one_core']['cpu_s']:.2f} CPU s in the same run"
    return text + f"; {row['wall_share']:.2f}"


def injected(found):
    at = Counter(row["class"] for row in found)
    controls = [row for row in found if row["suite"] == "control"]
    faults = [row for row in found if row["suite"] != "control"]
    kinds = sum(bool(row["kind_right"]) for row in faults)
    equal = [row for row in found if row["losses_equal"] is not None]
    return (f"{at['exact']} / {at['near'] + at['candidate']} / {len(faults) - at['exact'] - at['near'] - at['candidate']}; {kinds} of {len(faults)}; "
            f"{sum(row['class'] == 'right' for row in controls)} of {len(controls)} identical; losses bit-equal {sum(row['losses_equal'] for row in equal)} of {len(equal)}")


def wrap_all(found):
    return f"{found['files']:,} files, {found['bytes'] / 1e6:.0f} MB, {found['probes']:,} probes: {len(found['faults']) or 'no'} faults, {len(found['refused']) or 'none'} refused"


def single(found, what):
    count = found["counts"]
    if what == "found":
        return f"{count['found']} of {count['found'] + count['missed']}"
    return f"{count['silent']} of {count['silent'] + count['alarm'] + count['blind']}"


def compile_cost(found):
    dearest = found["dearest"][0]
    return f"{found['cpu_s']:.0f} s in {sum(room['units'] for room in found['rooms'].values())} commands; the dearest of them {dearest['cpu_s']:.0f} s, {dearest['peak_mb']} MB"


def first_demo(found, what):
    """The slowest of the rounds."""
    each = {"whole": [r["seconds"] for r in found["rounds"]], "demo": [r["parts"]["demo"] for r in found["rounds"]],
            "again": [r["again_seconds"] for r in found["rounds"]]}
    return f"{max(each[what]):.3g} s" + (f" ({len(each[what])} rounds)" if len(each[what]) > 1 else "")
