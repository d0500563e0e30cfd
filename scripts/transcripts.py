"""The transcripts in the guide are what the commands print: this runs them, and writes or checks the pages.

  transcripts.py [--check] [--build DIR] FILE.md ...

A transcript is a fenced block of type `console`. Its lines that begin with `$ ` are commands, the others what they
print. All transcripts of a page are run by one shell, from top to bottom, in a new folder with a copy of
examples/tutorial. Standard error is shown with standard output. A block that follows the comment
`<!-- not run -->` stays as it is.

  --check   changes nothing; exit code 1 where a page says something else than the commands. Fingerprints and
            digits behind a decimal point may differ: they are the processor's.
"""
import argparse
import difflib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BLOCK = re.compile(r"(?P<before>^<!-- not run -->\n)?^```console\n(?P<text>.*?)^```$", re.M | re.S)
END = "-- end of what this command prints --"
# Of the processor, its vector width and its thread count.
VARIES = [(re.compile(r"\b[0-9a-f]{16}:[0-9a-f]{16}\b"), "FINGERPRINT"), (re.compile(r"\d+\.\d+(e[-+]\d+)?\b"), "N"),
          (re.compile(r"\b[0-9a-f]{7,12}\b"), "COMMIT")]


def commands_of(text):
    """The commands of a block; one that ends with a backslash goes on in the next line, indented."""
    commands = []
    for line in text.splitlines():
        if commands and commands[-1].endswith("\\"):
            commands[-1] += "\n" + line
        elif line.startswith("$ "):
            commands.append(line[2:])
    return commands


class Shell:
    """One bash for the whole page, so that `cd` and variables last."""

    def __init__(self, folder, build):
        self.folder = os.path.realpath(folder)
        python = ROOT / ".venv" / "bin"
        environment = {k: v for k, v in os.environ.items() if not k.startswith(("OPGUARD_", "GIT_"))}
        environment |= {"PATH": os.pathsep.join([str(build / "src" / "cli"), str(python), os.environ["PATH"]]), "OMP_NUM_THREADS": "1",
                        "NO_COLOR": "1", "PAGER": "cat", "LC_ALL": "C.UTF-8", "HOME": self.folder, "PYTHONDONTWRITEBYTECODE": "1"}
        for who in ("AUTHOR", "COMMITTER"):
            environment |= {f"GIT_{who}_NAME": "you", f"GIT_{who}_EMAIL": "you@example.org", f"GIT_{who}_DATE": "2026-01-01T12:00:00Z"}
        self.process = subprocess.Popen(["bash", "--norc"], cwd=self.folder, env=environment, text=True, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    def run(self, command):
        # </dev/null: the commands' own standard input is not the shell's list of commands.
        self.process.stdin.write(f"{{ {command}\n}} </dev/null\nprintf '\\n%s\\n' '{END}'\n")
        self.process.stdin.flush()
        lines = []
        for line in self.process.stdout:
            if line == END + "\n":
                break
            lines.append(line.rstrip())
        else:
            sys.exit(f"transcripts.py: the shell ended at: {command}")
        text = "\n".join(lines).strip("\n")
        # Where the page's folder is, is of no interest.
        return text.replace(self.folder + "/", "").replace(self.folder, ".")

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def rerun(text, build):
    """The page with what its commands print now."""
    with tempfile.TemporaryDirectory(prefix="opguard-guide-") as folder:
        shutil.copytree(ROOT / "examples" / "tutorial", folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
        shell = Shell(folder, build)

        def block(match):
            if match["before"]:
                return match[0]
            lines = []
            for command in commands_of(match["text"]):
                lines.append("$ " + command)
                printed = shell.run(command)
                lines += [printed] if printed else []
            return "```console\n" + "\n".join(lines) + "\n```"

        try:
            return BLOCK.sub(block, text)
        finally:
            shell.close()


def without_what_varies(text):
    for pattern, name in VARIES:
        text = pattern.sub(name, text)
    return text.splitlines(keepends=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--build", type=Path, default=ROOT / "build" / "release")
    parser.add_argument("pages", nargs="+", type=Path)
    o = parser.parse_args()
    stale = False
    for page in o.pages:
        old = page.read_text()
        new = rerun(old, o.build.resolve())
        if not o.check:
            page.write_text(new)
            continue
        before, after = without_what_varies(old), without_what_varies(new)
        if before != after:
            stale = True
            sys.stdout.writelines(difflib.unified_diff(before, after, str(page), "what the commands print", n=1))
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
