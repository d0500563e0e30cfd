"""Draws of mutants and controls: by a seed, the same for everybody.

A draw names an operator, then a program that has a place for it, then a function, then a place in it, so that no operator, program or long
function outweighs the others. Whether it is taken is found out by running: the refactorings alone must leave every bit, the mutation must not.
"""
import os
import random
import shutil
from dataclasses import dataclass, field

from mutants import operators, refactorings
from mutants.source import Edit, Source

NUMBERS = (0, 3, 10)  # refactorings beside a mutation
TRIES = 40  # draws for one mutant
# Operators that also find numbers and text far from any tensor: there they are drawn only near tensors and modules.
LOOSE = {"constant", "comparison", "lost_argument", "arithmetic", "swapped_arguments", "slices", "rank_only", "dim", "reduction", "optimizer"}


@dataclass
class Draw:
    """One pair of trees: what differs between them and where."""

    program: str
    operator: str = ""  # "" for a control
    note: str = ""
    refactorings: list = field(default_factory=list)
    beside: str = ""  # the side the refactorings are on
    files: dict = field(default_factory=dict)  # side -> {file: Text}, of files that are not as they were
    equivalent: int = 0  # mutants drawn before that changed nothing that counts
    failed: int = 0  # and that did not run
    undone: int = 0  # refactorings that were not harmless, or failed


def near_tensors(src, node):
    held = src.scope(node)
    return any(kind.startswith(("tensor", "module")) for kind in held.values()) or "/" not in src.name


class Places:
    """The places of every operator in every program."""

    def __init__(self, bases):
        self.bases, self.found = bases, {}

    def of(self, program, operator):
        """(file, function) -> mutations, in the order of the text."""
        key = program, operator
        if key not in self.found:
            base, groups = self.bases(program), {}
            for file in base.files() if operator != "rank_only" or base.program.ranks > 1 else ():
                src = base.source(file)
                for mutation in operators.find(src, operator):
                    if operator in LOOSE and not near_tensors(src, mutation.statement):
                        continue
                    function = src.function(mutation.statement)
                    groups.setdefault((file, src.begin(function) if function else -1), []).append(mutation)
            self.found[key] = groups
        return self.found[key]


def moved(text, mutation):
    """The edits of a mutation of the first text on a text that was refactored since; None where its place is torn apart."""
    edits = []
    for edit in mutation.edits:
        place = text.find(edit.start, edit.end)
        parts = [p if isinstance(p, bytes) else text.find(*p) for p in edit.parts]
        if place is None or None in parts:
            return None
        edits.append(Edit(*place, tuple(parts)))
    return edits


def refactor(rng, base, texts, number, near):
    """`number` refactorings on copies of files. texts: {file: Text}, changed. near: (file, statement, ...) of the mutation, or None.

    Returns the names of what was done. Half of them are in the mutated function where it has places, others where the program ran.
    """
    done, files = [], [f for f in base.files() if any(near_tensors(base.source(f), s) for s in base.source(f).executed[:200])]
    for _ in range(number * 8):
        if len(done) == number:
            break
        close = near is not None and rng.random() < 0.7
        file = near[0] if close else rng.choice(files)
        first = base.source(file)
        src = Source(texts.get(file, first.text), first.kinds, first, file)
        name = rng.choice(sorted(refactorings.REFACTORINGS))
        try:
            places = refactorings.find(src, name)
        except (RecursionError, StopIteration):
            continue
        if close and rng.random() < 0.7 and (function := first.function(near[1])):
            span = src.text.find(first.start(function), first.start(function) + 3)  # its "def"
            now = next((n for n in src.statements if span and isinstance(n, type(function)) and src.start(n) == span[0]), None)
            if now:
                inside = [p for p in places if any(src.start(now) <= e.start and e.end <= src.end(now) for e in p)]
                places = inside or places
        if not places:
            continue
        try:
            texts[file] = refactorings.apply(src.text, rng.choice(places))
        except (ValueError, SyntaxError):
            continue
        done.append(f"{name} {file}")
    return done


class Trees:
    """The two trees of a draw on disk, and bare runs in them."""

    def __init__(self, base, folder, runner):
        self.base, self.folder, self.runner = base, folder, runner
        shutil.rmtree(folder, ignore_errors=True)
        for side in "ab":
            shutil.copytree(base.tree, folder / side, copy_function=link)

    def put(self, side, texts):
        """Writes a side's files; those that are not named are the program's own."""
        for file in self.base.files():
            target = self.folder / side / file
            data = texts[file].data if file in texts else self.base.source(file).data
            if target.read_bytes() != data:
                target.unlink()
                target.write_bytes(data)

    def outcome(self, side):
        left = self.runner(self.base.program, self.folder / side, self.folder / f"bare_{side}")
        return left and [x["outcome"] for x in left]


def link(source, target):
    """A hard link: a tree has hundreds of files, of which a mutant changes one."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copy(source, target)


def harmless(rng, base, trees, side, number, near, draw):
    """Texts with refactorings that leave every bit, as a run shows. near: (file, statement, marked text) of a mutation, or None."""
    for _ in range(4):
        texts = {near[0]: near[2]} if near else {}
        done = refactor(rng, base, texts, number, near)
        if not done and not number:
            return texts
        trees.put(side, texts)
        if len(done) == number and trees.outcome(side) == base.outcome:
            draw.refactorings, draw.beside = done, side
            return texts
        draw.undone += 1
    return None


def draw_mutant(rng, programs, places, bases, folder, runner, operator):
    """A Draw of the operator and its Trees; None after TRIES draws."""
    equivalent = failed = undone = 0
    for _ in range(TRIES):
        program = rng.choice(programs)
        groups = places.of(program, operator)
        if not groups:
            continue
        file, _ = group = rng.choice(sorted(groups))
        mutation = rng.choice(groups[group])
        number, beside = rng.choice(NUMBERS), rng.choice("ab")
        base = bases(program)
        src = base.source(file)
        try:
            before, after = operators.apply(src, mutation)
        except (SyntaxError, ValueError):
            failed += 1
            continue
        draw = Draw(program, operator, mutation.note)
        trees = Trees(base, folder, runner)
        # The mutation by itself first: most of what is drawn in vain is found out by this one run.
        trees.put("b", {file: after})
        left = trees.outcome("b")
        if left is None or left == base.outcome:
            failed, equivalent = failed + (left is None), equivalent + (left is not None)
            continue
        texts = harmless(rng, base, trees, beside, number, (file, mutation.statement, before), draw) if number else {file: before}
        if texts is None:
            undone += draw.undone
            continue
        if number and beside == "b":
            edits = moved(texts[file], mutation)
            try:
                if edits is None:
                    raise ValueError
                after = texts[file].edit(edits)
                compile(after.data, file, "exec", dont_inherit=True)
            except (ValueError, SyntaxError):
                undone += 1
                continue
            draw.files = {"a": {file: before}, "b": {**texts, file: after}}
            trees.put("b", draw.files["b"])
            left = trees.outcome("b")
            if left is None or left == base.outcome:
                undone += 1
                continue
        else:
            draw.files = {"a": texts, "b": {file: after}}
        draw.equivalent, draw.failed, draw.undone = equivalent, failed, undone + draw.undone
        for side in "ab":
            trees.put(side, draw.files[side])
        return draw, trees
    return None


def draw_control(rng, programs, bases, folder, runner):
    """A Draw of refactorings alone, and its Trees."""
    for _ in range(TRIES):
        base = bases(rng.choice(programs))
        draw = Draw(base.program.name)
        trees = Trees(base, folder, runner)
        texts = harmless(rng, base, trees, "b", rng.choice((3, 10)), None, draw)
        if texts is not None:
            draw.files = {"a": {}, "b": texts}
            return draw, trees
    return None


def generator(seed, kind, number):
    return random.Random(f"{seed} {kind} {number}")
