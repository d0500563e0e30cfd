"""The report on a terminal: colours only there, NO_COLOR honoured, nothing of the user's drives it."""
import os
import pty
import re
import select
import subprocess

import pytest
from conftest import binary, clean_environment
from report_logs import IN, OUT, Runs, runs, sides, slot  # noqa: F401 (a fixture)

# C0 and C1 controls (raw and as UTF-8), titles, links, clipboard, clearing, bidi, invisible and no UTF-8 at all.
CONTROLS = [bytes([c]) for c in [*range(0x20), 0x7F, *range(0x80, 0xA0)]] + [chr(c).encode() for c in range(0x80, 0xA0)] + [
    b"\x1b]8;;http://evil.example\x1b\\link\x1b]8;;\x1b\\", b"\x1b]52;c;ZXZpbA==\x07", b"\x1b]0;title\x07", b"\x1b[2J\x1b[H", b"\x1bP+q\x1b\\",
    b"\xc2\x9b31m", b"\x9d8;;x\x9c", b"\x1b[6n", b"\x08\x08\x08", b"\r", *[chr(c).encode() for c in
    (0x061C, 0x200B, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A), 0xFEFF, 0xFFF9, 0xE0001)], b"\xff\xfe", b"\xed\xa0\x80", b"\xc0\x9b"]
SGR = re.compile(rb"\x1b\[[0-9;]*m")
FORBIDDEN = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff\ufff9\U000e0001]")


def hostile(tmp_path, opguard, control):
    """Two runs with a control sequence in every name, argument, setting and in the sources themselves."""
    text = {"hex": (b"x" + control + b"y").hex()}
    specs = sides(tmp_path)
    for side, spec in specs.items():
        process = spec["processes"][0]
        process["settings"] = [["torch", {"hex": (side.encode() + control).hex()}]]
        for at in process["locations"]:
            at["function"] = at["callee"] = at["package"] = text
        for event in process["events"]:
            event["boundary"] = {"hex": (event["boundary"].encode() + control).hex()}
            event["node"] = text
            event["scalars"] = {"hex": (side.encode() + control).hex()}
            for item in event["slots"]:
                item["name"] = {"hex": (item["name"].encode() + control).hex()}
                item["dtype"] = "x"
        for at in process["locations"]:
            at["boundary"] = {"hex": (at["boundary"].encode() + control).hex()}
        path = tmp_path / f"tree_{side}" / "model.py"
        path.write_bytes(path.read_bytes().replace(b"k\n", b"k  # " + control.replace(b"\n", b"") + b"\n"))
    return Runs(tmp_path, opguard).write(**specs)


def test_control_characters_never_reach_the_terminal_raw(tmp_path, opguard):
    for number, control in enumerate(CONTROLS):
        folder = tmp_path / str(number)
        folder.mkdir()
        both = hostile(folder, opguard, control)
        command = [binary("opguard"), "align", folder / "a", folder / "b", "--color", "always", "--explain"]
        done = subprocess.run(command, capture_output=True, env=clean_environment())
        assert done.returncode in (1, 2), (control, done.stderr)
        for output in (SGR.sub(b"", done.stdout), done.stderr):
            assert not FORBIDDEN.search(output.decode()), (control, output)  # and it is UTF-8
        assert b"diverged" in done.stdout, control
        assert both


def on_terminal(command, **variables):
    """What a program writes to a terminal of its own."""
    main, side = pty.openpty()
    env = {k: v for k, v in clean_environment().items() if k not in ("NO_COLOR", "TERM")}
    process = subprocess.Popen([str(c) for c in command], stdout=side, stderr=side, stdin=side, env={**env, "TERM": "xterm", **variables})
    os.close(side)
    output = b""
    while True:
        ready, _, _ = select.select([main], [], [], 30)
        assert ready, "the command does not end"
        try:
            part = os.read(main, 65536)
        except OSError:  # the other end is closed
            part = b""
        if not part:
            break
        output += part
    process.wait()
    os.close(main)
    return output.replace(b"\r\n", b"\n")


def test_colours_only_on_a_terminal_and_not_under_no_color(runs):  # noqa: F811
    command = [binary("opguard"), "align", runs.folder / "a", runs.folder / "b"]
    plain = runs.compare().stdout.encode()
    assert b"\x1b" not in plain
    coloured = on_terminal(command)
    assert b"\x1b[1;31mdiverged\x1b[0m" in coloured and SGR.sub(b"", coloured) == plain
    assert on_terminal(command, NO_COLOR="1") == plain
    assert on_terminal(command, TERM="dumb") == plain
    assert b"\x1b[" in on_terminal(command, NO_COLOR="")  # no-color.org: empty is not set
    assert on_terminal([*command, "--color", "never"]) == plain
    assert runs.compare("--color", "always").stdout.encode() == coloured


def test_each_rank_has_a_line(tmp_path, opguard):
    specs = sides(tmp_path, ranks=20)
    good = specs["a"]["processes"]
    specs["b"]["processes"] = [p if p["rank"] == 3 else good[p["rank"]] for p in specs["b"]["processes"]]
    out = Runs(tmp_path, opguard).write(**specs).compare().stdout
    assert "rank 0: 21 pairs, all equal\n" in out
    assert re.search(r"rank 3: 21 pairs, 14 unequal, 1 event without a partner; first model.py:5 @, step 1, forward\n", out), out
    assert "and 4 more\n" in out and "rank 16:" not in out


def test_operators_around_the_pivot_are_the_call_stack(tmp_path, opguard):
    specs = sides(tmp_path, extra=False)
    for spec in specs.values():
        events = spec["processes"][0]["events"]
        at = next(i for i, e in enumerate(events) if e["step"] == 1 and e["boundary"] == "model.mul:cccc")
        # A call around the three operators of step 1 before it.
        events.insert(at + 1, {"boundary": "model.mean:dddd", "step": 1, "occurrence": 9, "inside": 3, "slots": [slot(IN, 1), slot(OUT, 2)]})
    out = Runs(tmp_path, opguard).write(**specs).compare().stdout
    assert "\n  inside\n    model.py:11  .mean\n" in out, out


def test_equal_model_values_do_not_hide_a_difference(tmp_path, opguard):
    specs = sides(tmp_path, change=0, extra=False)
    specs["b"]["processes"][0]["events"][-5]["slots"][1]["value"] = 77
    done = Runs(tmp_path, opguard).write(**specs).compare()
    assert done.returncode == 0 and done.stdout.startswith("identical")
    assert "; 1 pair differs and reaches none of it\n" in done.stdout.split("\n\n")[0] + "\n"
    assert "  model.py:7  *, forward, step 2, rank 0: by outputs, slot out0\n" in done.stdout, done.stdout


@pytest.mark.parametrize("option", ("--html", "--perfetto", "--sarif"))
def test_one_run_alone_has_no_page(runs, tmp_path, option):  # noqa: F811
    done = runs.opguard("align", "--single", runs.folder / "a", option, tmp_path / "x")
    assert done.returncode == 2 and "one run alone" in done.stderr and not (tmp_path / "x").exists()
