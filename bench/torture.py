#!/usr/bin/env python3
"""The run log under kills, cuts, flipped bits, failing disks and hostile bytes: docs/results/reliability.md.

bench/torture.py [--build DIR] [--scale F] [--only NAME ...] [--json FILE]

Counts are those of docs/results/reliability.md times --scale; the fuzzers and the race detector run --minutes in all.
Ends with 1 if anything is wrong. What cannot be done here (ptrace, mount, clang) is said and skipped."""

import argparse
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# System calls of a log's life; those of the loader are among them and do no harm.
CALLS = ("mkdir", "openat", "statx", "pwrite64", "fallocate", "fdatasync", "fsync", "ftruncate", "close", "rename")
ERRORS = {"pwrite64": ("ENOSPC", "EIO", "EDQUOT", "EINTR", "EAGAIN"), "fallocate": ("ENOSPC", "EIO", "EINTR", "EOPNOTSUPP"),
          "fdatasync": ("EIO",), "fsync": ("EIO", "ENOSPC"), "ftruncate": ("EIO",), "rename": ("EACCES", "EIO"), "statx": ("EIO", "EPERM"), "close": ("EIO", "ENOSPC", "EINTR")}  # fmt: skip
EVENTS = 1500  # of a log under strace: about twenty writes


class Torture:
    def __init__(self, options):
        self.options, self.program = options, options.build / "tests/torture/log_torture"
        self.folder = Path(tempfile.mkdtemp(prefix="opguard-torture-", dir=options.work))
        self.results = []

    def times(self, count):
        return max(1, int(count * self.options.scale))

    def stride(self):
        """Every so many-th of what is gone through one by one."""
        return max(1, round(1 / self.options.scale))

    def tell(self, name, bad, text, **figures):
        self.results.append({"test": name, "bad": bad, "text": text, **figures})
        print(f"{'FAIL' if bad else 'ok  '} {name}: {text}", flush=True)

    def keep(self):
        """The figures, to --json; of tests that did not run it keeps what it held."""
        if not self.options.json:
            return
        made = {row["test"] for row in self.results}
        before = json.loads(self.options.json.read_text()) if self.options.json.exists() else []
        self.options.json.write_text(json.dumps([row for row in before if row["test"] not in made] + self.results, indent=1) + "\n")

    def skip(self, name, why):
        self.results.append({"test": name, "skipped": why})
        print(f"skip {name}: {why}", flush=True)

    def own(self, verb, *words):
        result = subprocess.run([self.program, verb, *map(str, words)], capture_output=True, text=True)
        if result.returncode not in (0, 1) or not result.stdout.startswith("{"):
            return self.tell(verb, 1, f"ended with {result.returncode}: {result.stderr[-300:]}")
        figures = json.loads(result.stdout)
        figures.pop("test")
        bad = figures.pop("bad")
        self.tell(verb, bad, ", ".join(f"{k} {v}" for k, v in figures.items()), **figures)

    def kills(self):
        self.own("kills", self.times(1000), int(time.time()), self.folder / "kills")

    def cuts(self):
        self.own("cuts", 1 << 20, self.stride())

    def bits(self):
        self.own("bits", 1 << 16, self.stride())

    def hits(self):
        self.own("hits", self.times(1_000_000), 1)

    def losses(self):
        self.own("losses", self.times(10_000_000), 1, self.folder / "losses")

    def read(self):
        self.own("read", self.times(10_000_000), self.folder / "read")

    def bombs(self):
        """Logs of 200 KB (--scale 1) made to cost much, by every reader: bench/bombs.py."""
        figures = self.folder / "bombs.json"
        ran = subprocess.run([sys.executable, ROOT / "bench/bombs.py", "--build", self.options.build, "--bytes", str(max(60_000, self.times(200_000))),
                              "--json", figures], capture_output=True, text=True)  # fmt: skip
        if not figures.is_file():
            return self.tell("bombs", 1, ran.stderr[-500:])
        read = json.loads(figures.read_text())["results"]
        slowest, largest = max(r["seconds"] for r in read), max(r["factor"] for r in read)
        bad = [r for r in read if r["bad"]]
        self.tell("bombs", len(bad), f"{len(read)} readings, the slowest {slowest} s, most memory {largest} times the file {bad[:2] or ''}",
                  readings=len(read), slowest_s=slowest, memory_factor=largest)  # fmt: skip

    def one(self, words=(), events=EVENTS, limit=None, folder=None):
        """One log written, perhaps under strace. Its exit status, what the writer says, what the reader says, and
        whether they contradict each other."""
        folder = folder or self.folder / "one"
        shutil.rmtree(folder, ignore_errors=True)
        # SIGXFSZ at its default: the writer must not meet it.
        prepare = limit and (lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)))
        ran = subprocess.run([*words, self.program, "write", folder / "log", str(events)], capture_output=True, text=True,
                             preexec_fn=prepare)  # fmt: skip
        said = json.loads(ran.stdout) if ran.stdout.startswith("{") else None
        logs = sorted((folder / "log").glob("*.log*")) if (folder / "log").is_dir() else []
        if not logs:
            # Before there was a file, or where none could be made: then all is lost, and it says so.
            return ran, said, None, bool(said and said["written"])
        checked = subprocess.run([self.program, "check", logs[0]], capture_output=True, text=True)
        log = json.loads(checked.stdout)
        bad = len(logs) != 1 or checked.returncode != 0
        if "refused" in log:
            return ran, said, log, True
        bad |= (logs[0].suffix == ".log") and not log["closed"]
        if said:  # it lived to its end
            bad |= ran.returncode != 0 or said["made"] != said["written"] + said["lost"]
            bad |= log["records"] < said["written"] and not log["damage"]
            bad |= log["closed"] and log["records"] + log["lost"] != said["made"]
            bad |= said["closed"] != (logs[0].suffix == ".log")
        return ran, said, log, bad

    def traced(self, call, inject):
        return ("strace", "-f", "-qq", "-o", "/dev/null", "-e", f"trace={call}", "-e", f"inject={call}:{inject}")

    def can_trace(self, name):
        if not shutil.which("strace"):
            return self.skip(name, "no strace")
        ran = subprocess.run(["strace", "-qq", "-o", "/dev/null", "-e", "trace=write", "true"], capture_output=True, text=True)
        return True if ran.returncode == 0 else self.skip(name, f"ptrace is not permitted: {ran.stderr.strip()[-100:]}")

    def syscalls(self):
        """Killed as it enters the N-th call of each kind, for every N there is."""
        if not self.can_trace("syscalls"):
            return
        bad, figures = [], {}
        for call in CALLS:
            n = done = 0
            while True:
                n += self.stride() if done else 1
                ran, said, log, wrong = self.one(self.traced(call, f"signal=SIGKILL:when={n}"))
                if said:
                    bad += [(call, n, said, log)] if wrong or not said["closed"] else []
                    break
                done += 1
                if wrong or ran.returncode not in (-signal.SIGKILL, 128 + signal.SIGKILL):
                    bad.append((call, n, ran.returncode, log))
            figures[call] = done
        self.tell("syscalls", len(bad), f"{sum(figures.values())} kills {figures} {bad[:2] or ''}", kills=figures)

    def errors(self):
        """The N-th call of each kind fails, with each error it may fail with."""
        if not self.can_trace("errors"):
            return
        bad, runs, closed, lost = [], 0, 0, 0
        for call, errors in ERRORS.items():
            for error in errors:
                n = 0
                while n < 60:
                    n += self.stride() if n else 1
                    ran, said, log, wrong = self.one(self.traced(call, f"error={error}:when={n}"))
                    runs += 1
                    if wrong or not said:
                        bad.append((call, error, n, said, log, ran.stderr[-200:]))
                        continue
                    closed += said["closed"]
                    lost += said["lost"]
                    if n > 1 and said["lost"] == 0 and said["closed"] and error not in ("EINTR", "EOPNOTSUPP") and call != "statx":
                        break  # there was no such call any more
                    if error in ("EINTR", "EOPNOTSUPP") and said["lost"]:
                        bad.append((call, error, n, "lost something"))
        # A disk that says it has written and has not: told as damage, nothing invented.
        for n in range(2, 20, self.stride()):
            ran, said, log, wrong = self.one(self.traced("pwrite64", f"retval=100:when={n}"))
            runs += 1
            if log is None or log.get("wrong", 0) or log.get("damage") == "" and not log["closed"]:
                bad.append(("pwrite64", "retval", n, said, log))
        self.tell("errors", len(bad), f"{runs} runs, {closed} closed, {lost} records lost and counted {bad[:2] or ''}",
                  runs=runs, closed=closed, lost=lost)  # fmt: skip

    def disks(self):
        """A tmpfs of 256 KiB, and file size limits: closed, and what is missing is counted."""
        bad, runs, lost = [], 0, 0
        for limit in range(1000, 200_000, 1999 * self.stride()):
            ran, said, log, wrong = self.one(events=6000, limit=limit)
            runs += 1
            lost += said["lost"] if said else 0
            if wrong or not said or not said["lost"] or (limit > 8192 and not (said["closed"] and log["closed"])):
                bad.append((limit, said, log, ran.stderr[-200:]))
        self.tell("file_size_limit", len(bad), f"{runs} limits, {lost} records lost and counted {bad[:2] or ''}", runs=runs, lost=lost)
        place = self.folder / "tmpfs"
        place.mkdir()
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "opguard", place], capture_output=True, text=True)
        if mounted.returncode != 0:
            return self.skip("full_disk", f"no mount: {mounted.stderr.strip()[-100:]}")
        try:
            bad, runs, lost = [], 0, 0
            for filler in range(0, 250_000, 4999 * self.stride()):
                (place / "filler").write_bytes(b"x" * filler)
                ran, said, log, wrong = self.one(events=20000, folder=place / "one")
                shutil.rmtree(place / "one")
                runs += 1
                lost += said["lost"] if said else 0
                if wrong or not said or not said["lost"] or (log and log["records"] and not log["closed"]):
                    bad.append((filler, said, log, ran.stderr[-200:]))
            self.tell("full_disk", len(bad), f"{runs} free sizes, {lost} records lost and counted {bad[:2] or ''}", runs=runs, lost=lost)
        finally:
            subprocess.run(["umount", place], check=True)

    def slow_disk(self):
        """Every write takes 20 ms: the program is not held up, nothing is lost that fits in memory."""
        if not self.can_trace("slow_disk"):
            return
        begin = time.monotonic()
        ran, said, log, wrong = self.one(self.traced("pwrite64", "delay_enter=20000"), events=20000)
        self.tell("slow_disk", int(wrong or not said or not said["closed"] or said["lost"]),
                  f"{said} in {time.monotonic() - begin:.1f} s")  # fmt: skip

    def configured(self, preset, targets, name):
        folder = ROOT / "build" / preset
        if not shutil.which("clang++-19"):
            return self.skip(name, "no clang++-19 (apt: clang-19 libclang-rt-19-dev)")
        for command in (["cmake", "--preset", preset], ["ninja", "-C", folder, *targets]):
            ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
            if ran.returncode != 0:
                return self.tell(name, 1, f"{command}: {ran.stdout[-500:]}{ran.stderr[-500:]}")
        return folder

    def fuzz(self):
        """In turn, for --minutes or until --inputs have been tried: what one round found is the next one's corpus."""
        folder = self.configured("fuzz", ["fuzzers"], "fuzz")
        if not folder:
            return
        targets = sorted(p for p in (folder / "tests/fuzz").glob("*_fuzz") if os.access(p, os.X_OK))
        seconds = max(2, int(self.options.minutes * 60 * 0.8 / len(targets)))
        totals = {t: {"runs": 0, "seconds": 0, "processor_s": 0, "slowest_s": 0, "bad": 0, "said": ""} for t in targets}
        for target in targets:
            self.seed(target)
        while True:
            for target, total in totals.items():
                if not total["bad"]:
                    self.fuzz_once(target, seconds, total)
            self.tell_fuzz(totals)
            self.keep()  # a night may be cut short
            if sum(t["runs"] for t in totals.values()) >= self.options.inputs or all(t["bad"] for t in totals.values()):
                break

    def tell_fuzz(self, totals):
        """What all rounds so far came to, in place of what the last one said."""
        self.results = [row for row in self.results if not row["test"].startswith("fuzz ")]
        for target, total in totals.items():
            figures = {k: round(v) for k, v in total.items() if k not in ("said", "bad")}
            text = "{runs} inputs in {seconds} s ({processor_s} s of a processor), the slowest {slowest_s} s".format(**figures)
            self.tell(f"fuzz {self.subject(target)}", total["bad"], text + total["said"], **figures)
        runs, spent = (sum(t[key] for t in totals.values()) for key in ("runs", "processor_s"))
        self.tell("fuzz in all", 0, f"{runs} inputs, {runs / max(spent, 1):.0f} a second of a processor", runs=runs, processor_s=round(spent))

    @staticmethod
    def subject(target):
        return target.name.removesuffix("_fuzz")

    def corpus(self, target):
        return ROOT / "build" / "corpus" / self.subject(target)

    def seed(self, target):
        name, corpus, fixtures = self.subject(target), self.corpus(target), ROOT / "tests/fixtures"
        corpus.mkdir(parents=True, exist_ok=True)
        if name == "log":
            for events in (1, 20, 300):
                self.one(events=events)
                shutil.copy(next((self.folder / "one/log").glob("*.log")), corpus / f"seed{events}")
        seeds = {"patch": "*.py", "match": "*.py", "template": "*.json", "plan": "*.json", "trace": "*.json", "sites": "*.json"}.get(name)
        for i, seed in enumerate([*fixtures.rglob(seeds), *(ROOT / "templates").glob(seeds)] if seeds else ()):
            if seed.stat().st_size < 20_000:
                shutil.copy(seed, corpus / f"seed{i}")

    def fuzz_once(self, target, seconds, total):
        # Limits of docs/results/reliability.md; the sanitizers' own share of the memory is not ours. Leaks are looked for as the process ends:
        # after inputs that leave something allocated, a parser's tables say, it took 13 of 14 parts of the time.
        begin, before = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
        ran = subprocess.run(
            ["nice", target, self.corpus(target), f"-max_total_time={seconds}", "-timeout=10", "-malloc_limit_mb=256", "-rss_limit_mb=2048",
             "-max_len=65536", "-detect_leaks=0", "-print_final_stats=1", f"-artifact_prefix={self.folder}/{self.subject(target)}-"],
            capture_output=True, text=True, errors="replace", cwd=self.folder, env={**os.environ, "ASAN_OPTIONS": "malloc_context_size=4:quarantine_size_mb=16"})  # fmt: skip
        after = resource.getrusage(resource.RUSAGE_CHILDREN)

        def stat(name):
            return next((int(line.split()[-1]) for line in ran.stderr.splitlines() if name in line), 0)

        # The corpus that it begins with is no new input.
        known = next((int(line[1:].split()[0]) for line in ran.stderr.splitlines() if "\tINITED" in line), 0)
        total["runs"] += max(0, stat("number_of_executed_units") - known)
        total["seconds"] += time.monotonic() - begin
        total["processor_s"] += after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        total["slowest_s"] = max(total["slowest_s"], stat("slowest_unit_time_sec"))
        if ran.returncode != 0:
            total["bad"], total["said"] = 1, " " + ran.stderr[-1500:]
            kept = ROOT / "build" / "crashes"
            kept.mkdir(exist_ok=True)
            for artifact in self.folder.glob(f"{self.subject(target)}-*"):
                shutil.copy(artifact, kept)

    def races(self):
        folder = self.configured("tsan", ["record_test"], "races")
        if not folder:
            return
        end, rounds, bad, text = time.monotonic() + self.options.minutes * 60 * 0.2, 0, 0, ""
        # Children leave the parent's threads behind, which is what a fork does.
        environment = {**os.environ, "TSAN_OPTIONS": "die_after_fork=0 report_thread_leaks=0 halt_on_error=0"}
        while rounds == 0 or time.monotonic() < end and not bad:
            ran = subprocess.run(["nice", folder / "tests/record/record_test", "--gtest_filter=Writer.*"], capture_output=True,
                                 text=True, env=environment)  # fmt: skip
            rounds += 1
            bad = ran.returncode != 0 or "WARNING: ThreadSanitizer" in ran.stderr
            text = (ran.stdout + ran.stderr)[-1500:] if bad else ""
        self.tell("races", int(bad), f"{rounds} rounds {text}", rounds=rounds)


    def threads(self):
        """Programs whose threads race for what is recorded, under random switch intervals (10 minutes at --scale 1): as bare, nothing lost."""
        tree = self.folder / "threads"
        shutil.copytree(ROOT / "tests/fixtures/races", tree / "bare", ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copytree(tree / "bare", tree / "probed")
        tools = self.options.build / "src/cli"
        made = subprocess.run([tools / "opguard-instrument", tree / "probed", "--all-sites", "--apply"], capture_output=True, text=True)
        if made.returncode != 0:
            return self.tell("threads", 1, made.stderr[-500:])
        end, rounds, bad, text = time.monotonic() + max(20, 600 * self.options.scale), 0, 0, ""
        environment = {k: v for k, v in os.environ.items() if not k.startswith("OPGUARD_")}
        while rounds == 0 or time.monotonic() < end and not bad:
            log = tree / "log"
            shutil.rmtree(log, ignore_errors=True)
            command = [sys.executable, "stress.py", str(rounds), "60"]
            mode = ("full", "default")[rounds % 2]
            bare = subprocess.run(command, cwd=tree / "bare", env=environment, capture_output=True, text=True)
            probed = subprocess.run([tools / "opguard", "run", "--mode", mode, "--log", log, "--", *command], cwd=tree / "probed", env=environment, capture_output=True, text=True)
            rounds += 1
            bad = (bare.returncode, bare.stdout) != (probed.returncode, probed.stdout) or ", 0 lost" not in probed.stderr
            text = f"seed {rounds - 1} {mode}: {probed.stdout[-300:]} {probed.stderr[-900:]}" if bad else ""
        self.tell("threads", int(bad), f"{rounds} programs of 4 threads {text}", rounds=rounds)


TESTS = ("kills", "cuts", "bits", "hits", "losses", "read", "bombs", "syscalls", "errors", "disks", "slow_disk", "fuzz", "races", "threads")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=Path, default=ROOT / "build/release")
    parser.add_argument("--work", default=None, help="folder for the logs [the system's for temporary files]")
    parser.add_argument("--scale", type=float, default=1, help="share of the counts of docs/results/reliability.md [1]")
    parser.add_argument("--minutes", type=float, default=16, help="of fuzzers and race detector in all [16]")
    parser.add_argument("--inputs", type=float, default=0, help="the fuzzers go on, round by round, until so many inputs have been tried (over night: 1e8)")
    parser.add_argument("--only", nargs="+", choices=TESTS, default=TESTS)
    parser.add_argument("--json", type=Path, help="write the figures to this file; of tests that did not run it keeps what it held")
    options = parser.parse_args()
    options.build = options.build.resolve()
    if not (options.build / "tests/torture/log_torture").is_file():
        sys.exit(f"torture: no tests/torture/log_torture in {options.build}: build it first")
    torture = Torture(options)
    try:
        for name in options.only:
            getattr(torture, name)()
    finally:
        shutil.rmtree(torture.folder, ignore_errors=True)
        torture.keep()
    failed = [r["test"] for r in torture.results if r.get("bad")]
    print(f"torture: {len(torture.results)} tests, failed: {', '.join(failed) or 'none'}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
