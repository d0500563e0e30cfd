"""docs/results/invariants.md: what bench/invariants.py kept, as tables. Runs nothing."""
import marks


def of(count, all_):
    return f"{count} of {all_}"


def caught_row(part, tier, f):
    return [part, tier, of(f["in_time"], f["pairs"]), of(f["relation"], f["pairs"]), of(f["exact"], f["pairs"]), of(f["near"], f["pairs"]),
            of(f["module"], f["with_module"]), f"{f['findings_median']:g}, {f['findings_most']}"]  # fmt: skip


def either(tiers):
    """Counts of what one of the tiers at least tells, pair by pair."""
    names = [row["name"] for row in next(iter(tiers.values()))["pairs"]]
    rows = [[row for t in tiers.values() for row in t["pairs"] if row["name"] == name] for name in names]
    return [of(sum(any(row[key] for row in held) for held in rows), len(names)) for key in ("in_time", "relation", "exact", "near")]


def clean_row(what, tier, f):
    share = "-" if f["share"] is None else f"{100 * f['share']:.2f} %"
    return [what, tier, str(f["programs"]), of(f["violated"], f["applied"]), share, str(f["with_any"]), str(f["errors"])]


def put(kept, document, mark="invariants"):
    caught, clean = [], []
    for part, held in kept["sets"].items():
        for tier, tiered in held["tiers"].items():
            caught.append(caught_row(part, tier, tiered["figures"]))
            clean.append(clean_row(f"good sides, {part}", tier, tiered["good_figures"]))
        if len(held["tiers"]) > 1:
            caught.append([part, " or ".join(held["tiers"]), *either(held["tiers"]), "", ""])
        if "clean_figures" in held:
            clean.append(clean_row(f"clean programs beside {part}", "builtin", held["clean_figures"]))
    heads = ["pairs", "rules", "told in time", "relation among the first 3", "line exact", "within 3 lines", "module", "findings a fault: median, most"]
    text = marks.table(heads, caught) + "\n"
    text += marks.table(["good programs", "rules", "programs", "rules violated of those that apply", "share", "programs with any", "severity error"], clean)
    marks.put(document, mark, text)
