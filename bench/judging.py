"""Judging an answer of `opguard diff --json` against a case's expect.json, by the rules of the cases' INDEX.md.

exact: the pivot's location on a side lies in one of that side's statements; near: in one of its functions;
candidate: one of the other candidates is exact; wrong: none of these. The kind is scored apart.
"""
import re


def lies_in(location, place):
    """Whether a location of the tool ({"file", "line", "column", ...}) lies in a statement or function."""
    if not location:
        return False
    if location.get("package") is not None and location["package"] != place["package"]:
        return False
    file, wanted = location["file"], place["file"]
    if file != wanted and not file.endswith("/" + wanted):
        return False
    if not place["first_line"] <= location["line"] <= place["last_line"]:
        return False
    # Several statements on one line: the columns (from 0, last one included) tell them apart.
    if "first_column" in place and location["line"] == place["first_line"]:
        if location["column"] < place["first_column"]:
            return False
    if "last_column" in place and location["line"] == place["last_line"]:
        if location["column"] > place["last_column"]:
            return False
    return True


def named(pivot, places):
    """Whether a side of the pivot lies in one of that side's places."""
    return any(lies_in(pivot.get(place["side"]), place) for place in places)


def judge(expect, answer):
    """The class of an answer: exact, near, candidate, wrong; for a control right or wrong.

    answer: the JSON of `opguard diff`, or None when it gave none.
    """
    if answer is None:
        return "wrong"
    if expect["verdict"] == "identical":
        return "right" if answer["verdict"] == "identical" else "wrong"
    if answer["verdict"] != "diverged" or not answer.get("pivot"):
        return "wrong"
    if named(answer["pivot"], expect["statements"]):
        return "exact"
    if named(answer["pivot"], expect["functions"]):
        return "near"
    if any(named(c, expect["statements"]) for c in answer.get("candidates", [])[:5]):
        return "candidate"
    return "wrong"


def kind_is_right(expect, answer):
    """None where no kind is expected."""
    if expect["verdict"] == "identical":
        return None
    return bool(answer and answer.get("pivot") and answer["pivot"]["kind"] in expect["kinds"])


# Timings that a program prints on the line of its losses, as Hugging Face's Trainer does.
TIMING = re.compile(r"""['"]?\w*(?:runtime|per_second|seconds|elapsed)['"]?\s*[:=]\s*['"]?[\d.]+['"]?,?""")


NUMBER = re.compile(r"-?\d+\.\d+(?:e[-+]?\d+)?|\bnan\b|-?\binf\b")


RANK = re.compile(r"(?=\[?\brank\W{0,2}\d)|(?<=\d)(?=rank\W{0,2}\d)", re.IGNORECASE)


def loss_values(output):
    """{rank's label: numbers of its lines that hold "loss", in their order, as text and without timings}.

    Ranks print in any order, and now and then two of them on one line; what one rank prints has an order. Lines without
    a label are one stream."""
    streams = {}
    for line in output.splitlines():
        if "loss" not in line.lower():
            continue
        for part in RANK.split(TIMING.sub("", line)):
            label = re.match(r"\[?rank\W{0,2}\d+", part, re.IGNORECASE)
            numbers = NUMBER.findall(part)
            if numbers:
                streams.setdefault(label.group().lower() if label else "", []).extend(numbers)
    return streams


def losses_equal(bare, instrumented):
    """None where the bare run prints no loss."""
    values = loss_values(bare)
    return values == loss_values(instrumented) if values else None
