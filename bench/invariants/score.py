"""How an answer of `opguard check --json` is scored against a pair's expect.json; and the figures of many."""
import statistics

FIRST = 3  # findings that a person reads


def said(finding):
    """The finding's violations: the first, and the rules that the same cause breaks as well."""
    return [finding, *finding.get("others", [])]


def rule_and_name(violation):
    return violation["invariant"]["id"], violation.get("name") or ""


def news(bad, good):
    """The bad side's findings without those that the good side has too: these are false alarms, and no catch."""
    usual = {rule_and_name(v) for f in (good or {}).get("findings", []) for v in said(f)}
    return [f for f in bad["findings"] if rule_and_name(f) not in usual]


def places(finding):
    return [p for p in [finding.get("place"), *finding.get("places", [])] if p]


def paths_in(told):
    """Every run of names in a dotted one: "a.b.c" holds a, b, c, a.b, b.c and itself."""
    names = told.split(".")
    return {".".join(names[i:j]) for i in range(len(names)) for j in range(i + 1, len(names) + 1)}


def names_module(finding, words):
    """Whether a name or module that is told is one of the words or lies below it: "fc1.weight" below "fc1"."""
    for violation in said(finding):
        told = f"{violation.get('name') or ''} {violation.get('module') or ''}"
        for part in told.replace("(", " ").replace(")", " ").replace(",", " ").split():
            if not paths_in(part).isdisjoint(words):
                return True
    return False


def judge_pair(pair, bad, good):
    """What is figured of one pair. bad, good: the answers of the two sides, None where there is none."""
    row = {"name": pair.name, "part": pair.part, "caught": False, "in_time": False, "relation": False, "leads": False,
           "exact": False, "near": False, "module": None, "findings": 0}  # fmt: skip
    if bad is None:
        return row
    found = news(bad, good)
    in_time = [f for f in found if f["step"] is not None and f["step"] <= pair.expect["by_step"]]
    first, kinds, lines, words = found[:FIRST], set(pair.kinds()), pair.lines(), pair.modules()
    distances = []
    for finding in first:
        for place in places(finding):
            file = place["file"]
            if place.get("line") and (file == pair.expect["file"] or file.endswith("/" + pair.expect["file"])):
                distances.append(min(abs(place["line"] - line) for line in lines))
    row.update(
        caught=bool(found), in_time=bool(in_time), findings=len(found),
        relation=any(v["relation"] in kinds for f in first for v in said(f)),
        leads=any(f["relation"] in kinds for f in first),  # not only below another one
        exact=0 in distances, near=any(d <= 3 for d in distances),
        module=any(names_module(f, words) for f in first) if words else None,
    )  # fmt: skip
    return row


def judge_clean(program, answer):
    row = {"name": program.name, "side": program.side, "part": program.part, "applied": 0, "violated": 0, "errors": 0}
    if answer is not None:
        errors = {rule_and_name(v)[0] for f in answer["findings"] for v in said(f) if v["invariant"]["severity"] == "error"}
        row.update(applied=answer["rules"]["applied"], violated=answer["rules"]["violated"], errors=len(errors))
    return row


def pair_figures(rows):
    count = {key: sum(bool(row[key]) for row in rows) for key in ("caught", "in_time", "relation", "leads", "exact", "near", "module")}
    caught = [row["findings"] for row in rows if row["caught"]]
    return {"pairs": len(rows), **count, "with_module": sum(row["module"] is not None for row in rows),
            "findings_median": statistics.median(caught) if caught else 0, "findings_most": max(caught, default=0)}  # fmt: skip


def clean_figures(rows):
    total = {key: sum(row[key] for row in rows) for key in ("applied", "violated", "errors")}
    return {"programs": len(rows), **total, "share": total["violated"] / total["applied"] if total["applied"] else None,
            "with_any": sum(row["violated"] > 0 for row in rows), "with_error": sum(row["errors"] > 0 for row in rows),
            "without_rules": sum(row["applied"] == 0 for row in rows)}  # fmt: skip
