"""Runs in pieces as one: the last word on each check, for bench/results/gpu.json.

  keep.py -o FILE RUN.json...      what run_checks.py wrote, or one check's own output; later ones replace the same checks of earlier ones"""

import argparse
import json
import re
from pathlib import Path


def checks_of(path, commit):
    """[(name, check)] of one file; `commit` where it says none."""
    # Without the folders of the machine that it ran on.
    found = json.loads(re.sub(r"(?<![\w.-])/(?:work|tmp|root|home)/(?:[^\s/'\"\\\\]+/)*", "", path.read_text()))
    if "checks" not in found:
        return [(found["check"], {**found, "name": found["check"], "exit": 0 if found["passed"] else 1, "commit": commit})]
    said = [line.removeprefix("commit ") for line in found["machine"] if line.startswith("commit ")]
    return [(check["name"], {**check, "commit": (said or [commit])[0]}) for check in found["checks"]]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", required=True, type=Path)
    parser.add_argument("--commit", default="", help="of files that say none")
    parser.add_argument("runs", nargs="+", type=Path)
    asked = parser.parse_args()
    kept, machine = {}, []
    for path in asked.runs:
        machine = json.loads(path.read_text()).get("machine") or machine
        kept.update(checks_of(path, asked.commit))
    machine = [line for line in machine if not line.startswith("commit ")]
    asked.output.write_text(json.dumps({"machine": machine, "checks": list(kept.values())}, indent=1) + "\n")


if __name__ == "__main__":
    main()
