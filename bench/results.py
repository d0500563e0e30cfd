"""`make results`: what the documents say of results kept in bench/results/*.json, written from there. No program is run.

  results.py [--check]

  --check   writes nothing; exit code 1 where a document says something else than the results

What has no kept results is written by the command that measures it: accuracy.py, coverage.py, torture.py. What a person
has written down from a run (results/figures.md) says with which command.
"""
import argparse
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
KEPT = "bench/results"
# The document, and the command that writes its part.
WRITERS = [
    ("docs/results/torch-versions.md",
     ["bench/torch_versions.py", "--json", f"{KEPT}/torch-versions.json", "--table", "docs/results/torch-versions.md"]),
    ("docs/results/accuracy.md", ["bench/first_tries.py", "--out", "docs/results/accuracy.md"]),
    ("docs/design/matching.md",
     ["bench/refactor.py", "--json", f"{KEPT}/refactor-second.json", "--table", "second", "docs/design/matching.md"]),
    ("docs/design/matching.md",
     ["bench/refactor.py", "--json", f"{KEPT}/refactor-third.json", "--table", "third", "docs/design/matching.md"]),
    ("docs/design/index.md", ["bench/rooms.py", "--json", f"{KEPT}/rooms.json", "--table", "docs/design/index.md"]),
]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--check", action="store_true")
    o = parser.parse_args()
    before = {document: (ROOT / document).read_text() for document, _ in WRITERS}
    stale = []
    try:
        for _, command in WRITERS:
            subprocess.run([sys.executable, *command], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
        stale = [document for document, text in before.items() if (ROOT / document).read_text() != text]
    finally:
        if o.check:
            for document, text in before.items():
                (ROOT / document).write_text(text)
    for document in stale:
        print(f"{document}: {'not what its results say' if o.check else 'written'}")
    return 1 if o.check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
