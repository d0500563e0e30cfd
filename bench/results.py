"""`make results`: what the documents say of results kept in bench/results/*.json, written from there. No program is run.

  results.py [--check]

  --check   writes nothing; exit code 1 where a document says something else than the results

A program of bench/ keeps what it measured with --json bench/results/NAME.json, in place of what was measured before.
What was measured before its file was kept stands in the file as the document had it, with the field "measured": when it
was written down, by which command, on which machine. The next run of the command takes its place.
"""
import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
KEPT = "bench/results"


def rows(name, key, document):
    """A table whose rows come from many programs."""
    return document, ["bench/figures.py", f"{KEPT}/{name}.json", key, document]


def corpus(key):
    document = "docs/design/runtime.md"
    return document, ["bench/corpus.py", "--table", key, document, f"{KEPT}/corpus-{key}.json"]


def refactor(key):
    document = "docs/design/matching.md"
    return document, ["bench/refactor.py", "--json", f"{KEPT}/refactor-{key}.json", "--table", key, document]


# The document, and the command that writes its part.
WRITERS = [
    ("docs/results/accuracy.md", ["bench/table.py", f"{KEPT}/accuracy.json", "docs/results/accuracy.md"]),
    ("docs/results/coverage.md", ["bench/coverage.py", "--json", f"{KEPT}/coverage.json", "--out", "docs/results/coverage.md"]),
    ("docs/results/torch-versions.md",
     ["bench/torch_versions.py", "--json", f"{KEPT}/torch-versions.json", "--table", "docs/results/torch-versions.md"]),
    rows("figures", "figures", "docs/results/figures.md"),
    rows("reliability", "reliability", "docs/results/reliability.md"),
    rows("gpu-page", "gpu", "docs/results/gpu/index.md"),
    refactor("second"),
    refactor("third"),
    corpus("torch"),
    corpus("families"),
    corpus("tutorials"),
    corpus("vision-tests"),
    ("docs/design/compile.md", ["bench/compiled_bits.py", "--json", f"{KEPT}/compiled-bits.json", "--table", "docs/design/compile.md"]),
    ("docs/design/judgement.md", ["bench/ablation.py", "--json", f"{KEPT}/ablation.json", "--table", "docs/design/judgement.md"]),
    ("docs/formats/plan-format.md", ["bench/wraps.py", "--json", f"{KEPT}/wraps.json", "--table", "docs/formats/plan-format.md"]),
    ("docs/design/tolerance.md", ["bench/sketch.py", "--json", f"{KEPT}/sketch.json", "--table", "docs/design/tolerance.md"]),
    ("docs/design/tolerance.md", ["bench/tolerance_cost.py", "--json", f"{KEPT}/tolerance-cost.json", "--table", "docs/design/tolerance.md"]),
    ("docs/design/tolerance.md", ["bench/tolerance_scale.py", "--json", f"{KEPT}/tolerance-scale.json", "--table", "docs/design/tolerance.md"]),
    ("docs/design/tolerance.md", ["bench/tolerance.py", "--json", f"{KEPT}/tolerance.json", "--table", "docs/design/tolerance.md"]),
    ("docs/design/simulate.md", ["bench/simulate.py", "--json", f"{KEPT}/simulate.json", "--table", "docs/design/simulate.md"]),
    ("docs/results/invariants.md", ["bench/invariants.py", "--json", f"{KEPT}/invariants.json", "--table", "docs/results/invariants.md"]),
    ("docs/results/invariants.md",
     ["bench/invariants.py", "--json", f"{KEPT}/invariants_first_try.json", "--table", "docs/results/invariants.md", "--mark", "first_try"]),
    ("docs/results/prove.md", ["bench/prove_exam.py", "--json", f"{KEPT}/prove_exam.json", "--table", "docs/results/prove.md"]),
    ("docs/results/prove.md", ["bench/prove_mutations.py", "--json", f"{KEPT}/prove_mutations.json", "--table", "docs/results/prove.md"]),
    ("docs/results/prove.md", ["bench/prove_exam.py", "--mark", "prove_blind_exam2_first", "--by-base", "--json", f"{KEPT}/prove_blind_exam2_first.json", "--table", "docs/results/prove.md"]),
    ("docs/results/prove.md", ["bench/prove_exam.py", "--mark", "prove_blind_exam2", "--by-base", "--json", f"{KEPT}/prove_blind_exam2.json", "--table", "docs/results/prove.md"]),
    ("docs/results/prove.md", ["bench/prove_exam.py", "--mark", "prove_blind_exam", "--json", f"{KEPT}/prove_blind_exam.json", "--table", "docs/results/prove.md"]),
    ("docs/results/prove.md", ["bench/prove_models.py", "--json", f"{KEPT}/prove_models.json", "--table", "docs/results/prove.md"]),
    ("docs/results/prove.md", ["bench/prove_scale.py", "--json", f"{KEPT}/prove_scale.json", "--table", "docs/results/prove.md"]),
    ("docs/results/scale.md", ["bench/fleet.py", "--json", f"{KEPT}/fleet.json", "--table", "docs/results/scale.md"]),
    ("docs/results/scale.md", ["bench/fleet_cost.py", "--json", f"{KEPT}/fleet_cost.json", "--table", "docs/results/scale.md"]),
    ("docs/results/scale.md", ["bench/fleet_page.py", "--json", f"{KEPT}/fleet_page.json", "--table", "docs/results/scale.md"]),
    ("docs/guide/determinism.md", ["bench/doctor.py", "--json", f"{KEPT}/doctor.json", "--table", "docs/guide/determinism.md"]),
    ("docs/guide/testing.md", ["bench/bit_identical.py", "--json", f"{KEPT}/bit_identical.json", "--table", "docs/guide/testing.md"]),
    ("docs/design/index.md", ["bench/rooms.py", "--json", f"{KEPT}/rooms.json", "--table", "docs/design/index.md"]),
]


def written(folder):
    """{document: its text as the results have it}. Made from copies in `folder`: the documents themselves stay as they
    are meanwhile, for who reads or links them."""
    copies = {document: folder / document for document, _ in WRITERS}
    for document, copy in copies.items():
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text((ROOT / document).read_text())
    for document, command in WRITERS:
        assert document in command, command
        words = [str(copies[document]) if word == document else word for word in command]
        subprocess.run([sys.executable, *words], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    return {document: copy.read_text() for document, copy in copies.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    o = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        texts = written(Path(folder))
    # A document that says the same is not written: `opguard` holds its pages, and would be linked anew.
    stale = {document: text for document, text in texts.items() if (ROOT / document).read_text() != text}
    for document, text in stale.items():
        if not o.check:
            (ROOT / document).write_text(text)
        print(f"{document}: {'not what its results say' if o.check else 'written'}")
    return 1 if o.check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
