"""Whole programs of repositories that the user has, each in processes of its own: bare, bare again, probed (examples.py, alone.py)."""

import hashlib
import json
import os
import shlex
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import examples
import tutorials

PARTS = Path(__file__).resolve().parent
LEFT_OUT = (".txt", ".jpg", ".png", ".gif", ".ipynb")  # data; ours stand in for them


def lacking(repository):
    """Paths whose content a git directory has not got: a snapshot may come without its largest files."""
    git = ["git", "-C", str(repository)]
    listed = subprocess.run([*git, "ls-tree", "-r", "-z", "HEAD"], check=True, capture_output=True, text=True).stdout
    objects = [(entry.split()[2], entry.partition("\t")[2]) for entry in listed.split("\0")[:-1]]
    asked = subprocess.run([*git, "cat-file", "--batch-check"], input="\n".join(o for o, _ in objects), check=True, capture_output=True, text=True).stdout
    missing = {line.split()[0] for line in asked.splitlines() if line.endswith(" missing")}
    return [path for object, path in objects if object in missing]



def export(repository, into):
    """The programs of a checkout or of a git directory."""
    if not (repository / "HEAD").exists():
        return shutil.copytree(repository, into, dirs_exist_ok=True, ignore=shutil.ignore_patterns(".git", *("*" + e for e in LEFT_OUT)))
    left_out = ["glob)**/*" + e for e in LEFT_OUT] + ["literal)" + path for path in lacking(repository)]
    archive = ["git", "-C", str(repository), "archive", "HEAD", "--", ".", *(":(exclude," + e for e in left_out)]
    # It complains of the missing ones, and leaves them out.
    with subprocess.Popen(archive, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as packed:
        subprocess.run(["tar", "-x", "-C", str(into)], stdin=packed.stdout, check=True)
    return into


def digest_of(path):
    """Of what torch.save wrote, the members: the archive holds dates. Of a PDF or a log, which hold them too, nothing."""
    if path.suffix in (".pdf", ".log") or path.name.startswith("events.out"):
        return ""
    if not zipfile.is_zipfile(path):
        return hashlib.sha256(path.read_bytes()).hexdigest()[:16]
    with zipfile.ZipFile(path) as archive:
        members = sorted(n for n in archive.namelist() if not n.endswith((".data/serialization_id", "/version")))
        return hashlib.sha256(b"".join(archive.read(n) for n in members)).hexdigest()[:16]


def lacks(error):
    """Whether a program asks for what is not here: a package, a download, a GPU, more time."""
    kind, text = error or ("", "")
    return kind in ("ModuleNotFoundError", "URLError", "ConnectionError", "FileNotFoundError", "Ended") or "download" in text or "not compiled with CUDA" in text


LATE = ["Ended", "its time was over"]


class Programs:
    """The programs of the table that a repository holds, or its tutorials. corpus: what runs the commands and counts the seconds."""

    def __init__(self, corpus, repositories):
        self.corpus, self.source = corpus, corpus.work / "source"
        self.source.mkdir()
        for repository in repositories:
            export(repository, self.source)
        programs = [p for p in examples.PROGRAMS if (self.source / p["folder"] / p["script"]).exists()] + tutorials.found(self.source)
        self.all = {p["name"]: p for p in programs}
        self.left = {}  # program and mode -> why it was not judged

    def names(self, mode):
        return [n for n, p in self.all.items() if mode == "eager" or p["compile"]]

    def lay(self, program):
        """The program's folder anew, with its data; its path is the same every time."""
        root = self.corpus.tree / program["name"]
        shutil.rmtree(root, ignore_errors=True)
        folder = root / program["folder"]
        shutil.copytree(self.source / program["folder"], folder)
        for file, old, new in program["edit"]:
            (folder / file).write_text((folder / file).read_text().replace(old, new))
        for kind, where in program["data"]:
            subprocess.run([self.corpus.python, PARTS / "standins.py", kind, folder / where], check=True, env=self.corpus.environment)
        return root

    def command(self, program, mode, report):
        """A shell's command for the program and what follows it."""
        start = [self.corpus.python]
        if program["ranks"]:
            start += ["-m", "torch.distributed.run", "--nproc-per-node", program["ranks"], "--standalone"]
        parts = []
        for number, script in enumerate([[program["script"], *program["arguments"]], program["then"]]):
            if script:
                extra = ["--cpu"] * bool(program["ranks"]) + ["--compile", "eager"] * (mode == "compile")
                parts.append(shlex.join(map(str, [*start, PARTS / "alone.py", "%s.%d" % (report, number), *extra, *script])))
        folder = self.corpus.tree / program["name"] / program["folder"]
        return ["sh", "-c", " && ".join(["cd " + shlex.quote(str(folder)), *parts])]

    def ran(self, program, mode, before=(), environment=()):
        """What a run printed, held, left and how it ended."""
        root = self.lay(program)
        laid = {p for p in root.rglob("*")}
        self.corpus.runs += 1
        report = self.corpus.work / ("report-%d" % self.corpus.runs)
        with open(self.corpus.work / ("output-%d" % self.corpus.runs), "w") as output, self.corpus.timed("probed" if before else "bare"):
            command = [*map(str, [*before, *self.command(program, mode, report)])]
            process = subprocess.Popen(command, cwd=root, env={**self.corpus.environment, **dict(environment)}, stdout=output, stderr=output, stdin=subprocess.DEVNULL, start_new_session=True)
            code = self.corpus.ended(process)
        said = {p.name.partition(".")[2]: json.loads(p.read_text()) for p in self.corpus.work.glob(report.name + ".*")}
        new = sorted(p for p in root.rglob("*") if p.is_file() and p not in laid and p.suffix != ".pyc")
        files = {str(p.relative_to(root)): digest_of(p) for p in new}
        error = next((s["error"] for s in said.values() if s["error"]), None) if said else ["Ended", "without a report (%s)" % code]
        return {"error": LATE if self.corpus.late else error, "exit": bool(code), "said": said, "files": files}

    def hook(self, program, mode, sites):
        """The import hook's map; None where no plan came or no patch."""
        root = self.lay(program)
        copy, chosen = self.corpus.work / "probed" / ("%s-%d-%s" % (program["name"], self.corpus.runs, sites)), ["--all-sites"]
        shutil.copytree(root, copy)
        if sites == "plan":
            plan = self.corpus.work / ("plan-%d" % self.corpus.runs)
            report = self.corpus.work / ("planned-%d" % self.corpus.runs)
            said = self.corpus.tool("preflight", ["opguard", "preflight", "--quiet", "--tree", root, "-o", plan, "--", *self.command(program, mode, report)])
            if not plan.exists():
                return self.corpus.failed("preflight of " + program["name"], said)
            chosen = ["--plan", plan]
        said = self.corpus.tool("instrument", ["opguard-instrument", copy, *chosen, "--apply"])
        if said[0] not in (0, 1):
            return self.corpus.failed("opguard-instrument", said)
        self.lay(program)
        texts = {str(root / f.relative_to(copy)): str(f) for f in copy.rglob("*.py") if f.read_bytes() != (root / f.relative_to(copy)).read_bytes()}
        path = self.corpus.work / ("hook-%d.json" % self.corpus.runs)
        path.write_text(json.dumps({"files": texts}))
        return path

    def probed(self, program, mode, hook):
        log = self.corpus.work / ("log-%d" % self.corpus.runs)
        before = ["opguard", "run", "--mode", "full", "--log", log, "--"]
        environment = [("OPGUARD_HOOK", str(hook)), ("OPGUARD_TREE", str(self.corpus.tree / program["name"]))]
        said = self.ran(program, mode, before, environment)
        if sum(f.stat().st_size for f in log.rglob("*") if f.is_file()) == 0:
            print("no probe of %s wrote anything" % program["name"], flush=True)
        shutil.rmtree(log, ignore_errors=True)
        return said

    def batch(self, mode, names):
        """As Corpus.batch: judged programs with what differs."""
        verdicts = {}
        for name in names:
            program = self.all[name]
            bare = self.ran(program, mode)
            if lacks(bare["error"]):
                self.left["%s %s" % (mode, name)] = "%s: %s" % tuple(bare["error"])
                continue
            if bare != self.ran(program, mode, environment=[("MALLOC_PERTURB_", "165")]):
                self.left["%s %s" % (mode, name)] = "two bare runs differ"
                continue
            verdicts[name] = {"bare": bare}
            for sites in self.corpus.options.sites:
                # A preflight takes no program that fails, nor one that runs no operator: those are compared with every site wrapped.
                hook = (None if bare["error"] else self.hook(program, mode, sites)) or self.hook(program, mode, "all")
                probed = self.probed(program, mode, hook) if hook else {"error": ["opguard", "made no plan or patch"]}
                if probed["error"] == LATE:  # probed it takes longer: no difference, and no answer
                    self.left["%s %s" % (mode, name)] = "%s: probed, %s" % tuple(LATE)
                    del verdicts[name]
                    break
                verdicts[name][sites] = None if probed == bare else probed
        return verdicts
