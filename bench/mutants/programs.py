"""The programs that are mutated, and their runs without opguard.

A program runs in a tree of its own: its files, and beside them the files of its packages that it loads, so that all are source of the tree.
"""
import hashlib
import json
import os
import select
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from mutants.source import Kinds, Source, Text

HERE = Path(__file__).resolve().parent
MINITRAIN = HERE.parents[1] / "examples" / "minitrain"


@dataclass(frozen=True)
class Program:
    name: str
    packages: tuple  # what is copied into the tree and mutated, besides its own files
    ranks: int = 1
    arguments: tuple = ()
    source: Path = None  # its file, if not programs/NAME.py; its folder is then the tree

    @property
    def main(self):
        return self.source.name if self.source else f"{self.name}.py"

    def command(self):
        launcher = ["python"]
        if self.ranks > 1:
            launcher += ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(self.ranks)]
        return [*launcher, self.main, *self.arguments]


PROGRAMS = {
    p.name: p
    for p in (
        Program("llama", ("transformers",)),
        Program("gpt2", ("transformers",)),
        Program("mixtral", ("transformers",)),
        Program("bert", ("transformers",)),
        Program("t5", ("transformers",)),
        Program("whisper", ("transformers",)),
        Program("vit", ("timm",)),
        Program("convnet", ("timm",)),
        Program("swin", ("timm",)),
        Program("unet", ("diffusers",)),
        Program("dit", ("diffusers",)),
        Program("lora", ("peft", "transformers")),
        Program("dora", ("peft",)),
        Program("accelerated", ("accelerate",)),
        Program("accelerated_ddp", ("accelerate",), ranks=2),
        Program("megatron_gpt", ("megatron",)),
        Program("minitrain", (), arguments=("--steps", "2"), source=MINITRAIN / "train.py"),
        Program("minitrain_ddp", (), ranks=2, arguments=("--steps", "2", "--set", "n_layer=1"), source=MINITRAIN / "train.py"),
    )
}


def environment(venv):
    env = {k: v for k, v in os.environ.items() if not k.startswith("OPGUARD_") and k != "PYTHONPATH"}
    env.update(PATH=f"{venv / 'bin'}{os.pathsep}{env['PATH']}", OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", PYTHONDONTWRITEBYTECODE="1", HF_HUB_OFFLINE="1",
               TOKENIZERS_PARALLELISM="false", PYTHONHASHSEED="0", USE_TF="0", USE_FLAX="0")  # fmt: skip
    return env


class Runner:
    """Bare runs, one at a time, each forked from a process that has torch loaded."""

    def __init__(self, venv, timeout):
        self.timeout = timeout
        self.process = subprocess.Popen([venv / "bin" / "python", HERE / "observe.py", "--serve"], env=environment(venv), stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True, start_new_session=True)  # fmt: skip

    def __call__(self, program, tree, folder, trace=None, patience=1):
        """What each rank left ({"outcome", ...}); None where the program failed, whose output is then in folder/output.txt."""
        folder.mkdir(parents=True, exist_ok=True)
        out, output = folder / "left", folder / "output.txt"
        for old in [output, *folder.glob("left.*")]:
            old.unlink(missing_ok=True)
        arguments = [str(out), *(["--trace", str(trace)] if trace else []), "--", str(tree / program.main), *program.arguments]
        request = {"cwd": str(tree), "arguments": arguments, "ranks": program.ranks, "output": str(output), "timeout": self.timeout * patience}
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        ready, _, _ = select.select([self.process.stdout], [], [], self.timeout * patience + 120)
        line = self.process.stdout.readline() if ready else ""
        if not line:
            raise RuntimeError("the process that makes the bare runs is gone")
        if any(json.loads(line)):
            return None
        try:
            return [json.loads(Path(f"{out}.{rank}").read_text()) for rank in range(program.ranks)]
        except FileNotFoundError:
            return None

    def close(self):
        self.process.stdin.close()
        self.process.wait()


class Base:
    """A program's tree as it is, what it leaves, and what it ran."""

    def __init__(self, program, folder, venv, runner):
        self.program, self.tree = program, folder / "tree"
        kept, made_by = folder / "base.json", self.digest()
        data = json.loads(kept.read_text()) if kept.is_file() else {}
        if data.get("made_by") != made_by:
            self.make(folder, venv, runner, made_by)
            data = json.loads(kept.read_text())
        self.outcome = data["outcome"]
        self.kinds = {name: Kinds(set(k["lines"]), k["names"]) for name, k in data["ran"].items()}
        self.sources_ = {}

    def digest(self):
        """Of what it is made by: kept bases of another observer would differ from every mutant."""
        texts = (HERE / "observe.py", HERE / "programs" / "training.py", self.program.source or HERE / "programs" / self.program.main)
        return hashlib.sha256(b"\0".join(text.read_bytes() for text in texts)).hexdigest()

    def make(self, folder, venv, runner, made_by):
        program = self.program
        shutil.rmtree(folder, ignore_errors=True)
        if program.source:
            shutil.copytree(program.source.parent, self.tree, ignore=shutil.ignore_patterns("__pycache__", "README.md"))
        else:
            self.tree.mkdir(parents=True)
            for name in (program.main, "training.py"):
                shutil.copy(HERE / "programs" / name, self.tree / name)
        if program.packages:
            self.copy_packages(folder, venv, runner)
        left = [runner(program, self.tree, folder / f"run{i}", trace=self.tree if i else None, patience=5) for i in range(2)]
        if None in left or [x["outcome"] for x in left[0]] != [x["outcome"] for x in left[1]]:
            raise SystemExit(f"mutants.py: error: {program.name} fails, or differs from itself: {folder}")
        ran = {}
        for rank in left[1]:
            for name, seen in rank["ran"].items():
                entry = ran.setdefault(name, {"lines": [], "names": {}})
                entry["lines"] = sorted({*entry["lines"], *seen["lines"]})
                for function, names in seen["names"].items():
                    entry["names"].setdefault(function, {}).update(names)
        (folder / "base.json").write_text(json.dumps({"made_by": made_by, "outcome": [x["outcome"] for x in left[0]], "ran": ran}))

    def copy_packages(self, folder, venv, runner):
        """The files the program loads of its packages; the others are left out, so that trees stay small."""
        left = runner(self.program, self.tree, folder / "first", patience=5)
        if left is None:
            raise SystemExit(f"mutants.py: error: {self.program.name} fails: {folder / 'first' / 'output.txt'}")
        site = next((venv / "lib").glob("python*/site-packages")).resolve()
        for name in {f for rank in left for f in rank["files"]}:
            path = Path(name)
            if path.is_relative_to(site) and path.relative_to(site).parts[0] in self.program.packages and path.suffix == ".py":
                target = self.tree / path.relative_to(site)
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(path, target)

    def source(self, name):
        if name not in self.sources_:
            self.sources_[name] = Source(Text((self.tree / name).read_bytes()), self.kinds.get(name), name=name)
        return self.sources_[name]

    def files(self):
        """The files that hold code which ran, by name."""
        return sorted(name for name in self.kinds if (self.tree / name).is_file())
