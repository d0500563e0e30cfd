"""The programs for invariants: where they are, which part of the split they belong to, and what is expected of a pair.

A program is a folder of sources with train.py. Example: Program("lora", "clean", .../clean/lora, "learn").
"""
import ast
import hashlib
import json
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
KINDS = ("rank_equal", "coverage", "contain", "dtype", "sequence", "distinct", "output", "checkpoint", "argument", "shape", "alias",
         "mode", "finite", "range")  # fmt: skip


@dataclass(frozen=True)
class Program:
    name: str
    side: str  # clean, good, bad
    folder: Path
    part: str  # learn, held_out; tuning, opened, second, third; shared

    def files(self):
        return sorted(path for path in self.folder.rglob("*.py") if "__pycache__" not in path.parts)

    def digest(self):
        found = hashlib.sha256()
        for path in self.files():
            found.update(str(path.relative_to(self.folder)).encode() + b"\0" + path.read_bytes() + b"\0")
        return found.hexdigest()


@dataclass(frozen=True)
class Pair:
    name: str
    part: str
    good: Program
    bad: Program
    expect: dict

    def kinds(self):
        """The relations that may be violated: what stands before each colon of the expectation."""
        heads = [clause.partition(":")[0].strip() for clause in self.expect["relation"].split(";")]
        return [head for head in heads if head in KINDS]

    def lines(self):
        """Lines of the faulty statement, and of others that are right as well. A statement may go over several."""
        lines = {self.expect["line"], *self.expect.get("also", [])}
        tree = ast.parse((self.bad.folder / self.expect["file"]).read_text())
        for node in ast.walk(tree):
            simple = isinstance(node, ast.stmt) and not hasattr(node, "body")
            if simple and node.lineno in lines:
                lines |= set(range(node.lineno, node.end_lineno + 1))
        return lines

    def modules(self):
        """Names that a finding may give: of modules, their types, parameters. Nothing of "all parameters"."""
        text = self.expect["module"].replace("(", ",").replace(")", ",")
        words = [word.strip().rpartition("*.")[2] for word in text.split(",")]  # "h.*.attn": any attn
        return [word for word in words if word and word != "all parameters"]


def odd(name):
    return int(hashlib.sha256(name.encode()).hexdigest()[-1], 16) % 2 == 1


def read_clean(folder, part=None):
    """part: of all; None: as the split says, by the name."""
    return [Program(path.parent.name, "clean", path.parent, part or ("held_out" if odd(path.parent.name) else "learn"))
            for path in sorted(folder.glob("*/train.py"))]  # fmt: skip


def read_pairs(folder, part=None):
    pairs = []
    for path in sorted(folder.glob("*/expect.json")):
        name = path.parent.name
        of = part or ("opened" if odd(name) else "tuning")
        sides = [Program(name, side, path.parent / side, of) for side in ("good", "bad")]
        pairs.append(Pair(name, of, *sides, json.loads(path.read_text())))
    return pairs


def read_all(shared):
    """(clean programs, pairs): this folder's, and those of the shared cases where there are any."""
    return (read_clean(HERE / "clean") + read_clean(HERE / "third" / "clean", "third") + read_clean(HERE / "fresh" / "clean", "exam") + read_clean(shared / "clean", "shared"),
            read_pairs(HERE / "pairs") + read_pairs(HERE / "second", "second")
            + read_pairs(HERE / "third" / "pairs", "third") + read_pairs(HERE / "fresh" / "pairs", "exam") + read_pairs(shared / "pairs", "shared"))  # fmt: skip
