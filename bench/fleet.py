"""Two runs of many ranks or many steps, compared without reading what they agree in.

    bench/fleet.py [--only NAME,...] [--steps N] [--records N] [--ranks N] [--per-rank N] [--merged N] [--repeats N] [--objects N]
                   [--work DIR] [--json FILE] [--table DOCUMENT]

    steps    two runs of N steps of some 40 records, equal and with one step otherwise: what is read to find it
    records  two equal runs of N records in all: the time to know it, and that of `align --read differing`
    ranks    N ranks of so many records each, one operator otherwise on one rank: parts by 1 worker and by 2, with a
             worker killed and its part made again; peak memory of a worker; the verdict against what was planted
    merged   the parts of one comparison, said of N ranks by changed names: the merge's time and memory
    against  a training of 200 steps under `opguard run --against`: its loop's time against that of recording alone, both in
             turn; and one that parts in step 37: in which step it ends, and whether it names what `align` names
    objects  two runs of 8 ranks in a server that speaks S3 (moto), equal and with one step otherwise: what of them is
             brought, in how many round trips, and whether `align` names what it names of the same logs here

Logs are made up (bench/fleet_logs.cc), but for `against`, which is torch; the comparison is the product's. Workers are
processes of `opguard align --part`, begun again where one is lost. Exit code 0 if the planted operator is named each time.
--only keeps the other results of the file. With --table nothing runs: the document's part is written from the file.
"""
import argparse
import json
import os
import random
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from marks import put, table

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "python"))

SECTIONS = ("steps", "records", "ranks", "merged", "against", "objects")
STEPS, PARTS_AT = 200, 37
TRAINING = """
import sys, time, torch
torch.manual_seed(0)
torch.set_num_threads(1)
model = torch.nn.Sequential(torch.nn.Linear(256, 512), torch.nn.ReLU(), torch.nn.Linear(512, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
data = torch.randn(%d, 512, 256)
ends = [time.perf_counter()]
for step, x in enumerate(data):
    h = og("train.model:cccc", model)(x)
    y = og("train.mul:eeee", torch.mul)(h, 2.0 if str(step) == sys.argv[1] else 1.0)
    loss = og("train.mean:dddd", (y * y).mean)()
    optimizer.zero_grad()
    og("train.backward:ffff", loss.backward)()
    og("train.step:gggg", optimizer.step)()
    print("step", step, flush=True)
    ends.append(time.perf_counter())
print("seconds", ends[-1] - ends[0], sorted(b - a for a, b in zip(ends, ends[1:]))[len(data) // 2])
"""


def shifted(group, by):
    """The text of a group of ranks ("0-1023", "3-27/8") as if all its ranks had higher numbers."""
    return re.sub(r"(?<![/#])\b[0-9]+", lambda number: str(int(number[0]) + by), group)


def bytes_of(folder, *endings):
    return sum(path.stat().st_size for ending in endings for path in folder.glob("*" + ending))


def measured(command):
    """(exit code, seconds, peak resident MB, standard output)"""
    start = time.perf_counter()
    with tempfile.TemporaryFile() as out:
        process = subprocess.Popen([str(c) for c in command], stdout=out)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        return process.returncode, time.perf_counter() - start, usage.ru_maxrss / 1024, out.read().decode()


class Bench:
    def __init__(self, o):
        self.o = o
        self.work = Path(o.work or tempfile.mkdtemp(prefix="fleet-"))

    def logs(self, name, ranks, steps, records, *change):
        folder = self.work / name
        shutil.rmtree(folder, ignore_errors=True)
        subprocess.run([str(x) for x in (self.o.maker, folder, ranks, steps, records, *change)], check=True)
        return folder

    def drop(self, *folders):
        for folder in folders:
            shutil.rmtree(folder, ignore_errors=True)

    def found(self, a, b):
        ran = subprocess.run([str(self.o.finder), str(a), str(b)], check=True, capture_output=True, text=True)
        return json.loads(ran.stdout)

    def steps(self):
        planted = self.o.steps * 731 // 1000
        a = self.logs("a", 1, self.o.steps, 30)
        b = self.logs("b", 1, self.o.steps, 30)
        c = self.logs("c", 1, self.o.steps, 30, 0, planted)
        digests = bytes_of(a, ".steps", ".groups")
        equal, differing = self.found(a, b), self.found(a, c)
        code, seconds, memory, _ = measured([self.o.opguard, "align", a, c, "--read", "differing", "--json", self.work / "v.json"])
        whole, whole_seconds, whole_memory, _ = measured([self.o.opguard, "align", a, c, "--read", "all", "--json", self.work / "w.json"])
        pivots = [json.loads((self.work / n).read_text())["pivot"] for n in ("v.json", "w.json")]
        same = [(p["boundary"], p["step"], p["occurrence"]) for p in pivots]
        self.drop(a, b, c)
        return {"steps": self.o.steps, "planted": planted, "index_bytes_a_record": round(digests / equal["records"], 3), "equal": equal, "differing": differing,
                "found": differing["first_apart"] == planted, "differing_s": round(seconds, 3), "all_s": round(whole_seconds, 3), "differing_mb": round(memory),
                "all_mb": round(whole_memory), "same_pivot": same[0] == same[1] and code == whole}  # fmt: skip

    def records(self):
        each = 3000
        count = max(2, self.o.records // each)
        a = self.logs("a", 1, count, each)
        b = self.logs("b", 1, count, each)
        size, digests = bytes_of(a, ".log"), bytes_of(a, ".steps", ".groups")
        found = self.found(a, b)
        code, seconds, memory, _ = measured([self.o.opguard, "align", a, b, "--read", "differing"])
        self.drop(a, b)
        return {"records": found["records"], "log_bytes_a_record": round(size / found["records"], 2), "index_bytes_a_record": round(digests / found["records"], 3),
                "equal": found, "align_s": round(seconds, 3), "align_mb": round(memory), "identical": code == 0}  # fmt: skip

    def part(self, a, b, number, of, out, read="differing"):
        return [self.o.opguard, "align", a, b, "--part", f"{number}/{of}", "-o", out, "--read", read]

    def pooled(self, a, b, of, workers, kill=None):
        """Seconds; peak MB of a worker; how many were lost. kill: the number of the part whose first worker is killed."""
        folder = self.work / f"parts{workers}{kill or ''}"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        left, lock, peaks, lost = list(range(1, of + 1)), threading.Lock(), [], [0]

        def work():
            while True:
                with lock:
                    if not left:
                        return
                    number = left.pop(0)
                process = subprocess.Popen([str(x) for x in self.part(a, b, number, of, folder / f"{number}.json")])
                if number == kill and lost[0] == 0:
                    time.sleep(0.05)
                    process.send_signal(signal.SIGKILL)
                _, status, usage = os.wait4(process.pid, 0)
                process.returncode = os.waitstatus_to_exitcode(status)
                with lock:
                    if process.returncode != 0:
                        lost[0] += 1
                        left.append(number)  # anybody makes it again
                    else:
                        peaks.append(usage.ru_maxrss / 1024)

        start = time.perf_counter()
        threads = [threading.Thread(target=work) for _ in range(workers)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return time.perf_counter() - start, max(peaks), lost[0], folder

    def merge(self, parts, out):
        code, seconds, memory, text = measured([self.o.opguard, "align", "--merge", *parts, "--json", out])
        return code, seconds, memory, json.loads(Path(out).read_text()), text

    def ranks(self):
        steps, per_step = max(4, self.o.per_rank // 1000), 990
        at_rank, at_step = self.o.ranks * 5 // 7, steps * 2 // 3
        a = self.logs("a", self.o.ranks, steps, per_step)
        b = self.logs("b", self.o.ranks, steps, per_step, at_rank, at_step)
        of = 16
        digest_code, digest_s, digest_mb, digest = measured([self.o.opguard, "digest", a, b])
        part = f"in step {at_step}, in {self.o.ranks:,} logs; there first in model.operator"
        one, memory_one, _, folder = self.pooled(a, b, of, 1)
        two, memory_two, _, _ = self.pooled(a, b, of, 2)
        _, _, lost, killed = self.pooled(a, b, of, 2, kill=of // 2)
        names = [f"{n}.json" for n in range(1, of + 1)]
        code, seconds, memory, verdict, _ = self.merge([folder / n for n in names], self.work / "fleet.json")
        shuffled = names[:]
        random.Random(1).shuffle(shuffled)
        again = self.merge([killed / n for n in shuffled], self.work / "again.json")[3]
        short = self.merge([folder / n for n in names[:-1]], self.work / "short.json")
        self.kept = folder
        self.drop(a, b)
        return {"ranks": self.o.ranks, "records_a_rank": steps * (per_step + 6), "parts": of, "one_worker_s": round(one, 2), "two_workers_s": round(two, 2),
                "times": round(one / two, 2), "worker_mb": round(max(memory_one, memory_two)), "killed": lost, "same_with_a_killed_worker": again == verdict,
                "digest_s": round(digest_s, 2), "digest_mb": round(digest_mb), "digest_names": digest_code == 1 and part in digest and f"rank {at_rank}:" in digest,
                "merge_s": round(seconds, 2), "merge_mb": round(memory), "exit_code": code, "verdict": verdict["verdict"], "rank": verdict["rank"],
                "planted_rank": at_rank, "planted_step": at_step, "step": verdict["pivot"] and verdict["pivot"]["step"],
                "named": (verdict["rank"], verdict["pivot"]["step"], verdict["pivot"]["kind"]) == (at_rank, at_step, "value"),
                "received": sum(rank["role"] == "received" for rank in verdict["unequal"]), "unequal": len(verdict["unequal"]),
                "without_a_part": short[3]["verdict"], "missing": short[3]["missing_parts"]}  # fmt: skip

    def merged(self):
        """The parts of the run before, as if each were of other ranks: names and times otherwise."""
        folder = self.work / "many"
        folder.mkdir(exist_ok=True)
        given = [json.loads(p.read_text()) for p in sorted(self.kept.glob("*.json"))]
        ranks = sum(len(p["ranks"]) for p in given)
        copies = -(-self.o.merged // ranks)
        parts = []
        for copy in range(copies):
            for n, part in enumerate(given):
                part = json.loads(json.dumps(part))
                part["of"], part["parts"] = copies * len(given), [copy * len(given) + n + 1]
                for rank in part["ranks"]:
                    rank["rank"] += copy * ranks
                    rank["groups"] = {name: shifted(group, copy * ranks) for name, group in rank["groups"].items()}
                    for finding in rank["findings"]:
                        finding["group"] = shifted(finding["group"], copy * ranks)
                        finding["passed"] = {shifted(group, copy * ranks): number for group, number in finding["passed"].items()}
                parts.append(folder / f"{copy}-{n}.json")
                parts[-1].write_text(json.dumps(part))
        code, seconds, memory, verdict, _ = self.merge(parts, self.work / "many.json")
        return {"ranks": copies * ranks, "files": len(parts), "merge_s": round(seconds, 2), "merge_mb": round(memory), "verdict": verdict["verdict"],
                "bytes_a_rank": round(sum(p.stat().st_size for p in parts) / (copies * ranks))}  # fmt: skip

    def objects(self):
        from object_servers import KEYS, s3_server

        planted = self.o.objects * 15 // 16
        folders = {"a": self.logs("a", 8, self.o.objects, 30), "b": self.logs("b", 8, self.o.objects, 30)}
        folders["c"] = self.logs("c", 8, self.o.objects, 30, 5, planted)
        found = {"steps": self.o.objects, "ranks": 8, "planted": planted}
        with s3_server() as server:
            for name, folder in folders.items():
                server.put(folder, "fleet/" + name)
            for name, other in (("equal", "b"), ("differing", "c")):
                command = [self.o.opguard, "align", "--read", "differing", "--json"]
                here = subprocess.run([*map(str, command), self.work / "here.json", folders["a"], folders[other]], capture_output=True)
                words = [self.work / "there.json", server.url("fleet/a"), server.url("fleet/" + other), "--python", sys.executable]
                there = subprocess.run([*map(str, command), *words], capture_output=True, text=True, env={**os.environ, **KEYS})
                pivots = [json.loads((self.work / n).read_text()).get("pivot") for n in ("here.json", "there.json")]
                brought = re.search(r"brought (.+) of (.+) in (\d+) round", there.stderr)
                found[name] = {"brought": brought[1], "of": brought[2], "round_trips": int(brought[3]), "exit_code": there.returncode,
                               "same": pivots[0] == pivots[1] and here.returncode == there.returncode}  # fmt: skip
        self.drop(*folders.values())
        return found

    def trained(self, name, parts_at, *words):
        """A run of the training -> (exit code, the last step, seconds of its loop and of its median step or None, its log)."""
        log = self.work / name
        shutil.rmtree(log, ignore_errors=True)
        ran = subprocess.run([str(x) for x in (self.o.opguard, "run", "--log", log, *words, "--", sys.executable, self.program, parts_at)],
                             capture_output=True, text=True)  # fmt: skip
        steps = re.findall(r"^step (\d+)$", ran.stdout, re.M)
        seconds = re.search(r"^seconds (\S+) (\S+)$", ran.stdout, re.M)
        return ran.returncode, int(steps[-1]) if steps else -1, (float(seconds[1]), float(seconds[2])) if seconds else None, log

    def against(self):
        import runtime_log

        self.work.mkdir(exist_ok=True)
        self.program = self.work / "train.py"
        self.program.write_text(runtime_log.PROLOGUE.format(package=str(self.o.build / "python")) + TRAINING % STEPS)
        _, _, _, earlier = self.trained("earlier", "none")
        took = {"alone": [], "against": [], "again": []}
        for repeat in range(self.o.repeats + 1):
            ways = [("alone", ()), ("against", ("--against", earlier)), ("again", ())]
            for way, words in ways[:: 1 if repeat % 2 else -1]:  # what drifts hits each in turn
                code, last, seconds, _ = self.trained(way, "none", *words)
                if code != 0 or last != STEPS - 1:
                    sys.exit(f"fleet: error: the training ended with {code} behind step {last}")
                if repeat > 0:  # the first warms the caches
                    took[way].append(seconds)
        code, last, _, log = self.trained("parted", PARTS_AT, "--against", earlier)
        aligned = subprocess.run([str(x) for x in (self.o.opguard, "align", earlier, log, "--json", self.work / "v.json")], capture_output=True)
        pivot = json.loads((self.work / "v.json").read_text())["pivot"] or {}
        ratios, noise = ([b[0] / a[0] for a, b in zip(took["alone"], took[way])] for way in ("against", "again"))
        of_step = [round(statistics.median(b[1] / a[1] for a, b in zip(took["alone"], took[way])), 3) for way in ("against", "again")]
        whole = {way: round(statistics.median(s for s, _ in took[way]), 3) for way in took}
        return {"steps": STEPS, "alone_s": whole["alone"], "against_s": whole["against"], "step_ratio": of_step[0], "step_again": of_step[1],
                "ratio": round(statistics.median(ratios), 3), "ratios": [round(r, 3) for r in ratios],
                "alone_again": round(statistics.median(noise), 3), "alone_agains": [round(r, 3) for r in noise], "parts_at": PARTS_AT, "ended_behind_step": last,
                "exit_code": code, "align_exit_code": aligned.returncode, "pivot": pivot.get("boundary"), "pivot_step": pivot.get("step"),
                "named": last in (PARTS_AT - 1, PARTS_AT) and code == aligned.returncode == 1 and (pivot.get("boundary"), pivot.get("step")) == ("train.mul:eeee", PARTS_AT)}  # fmt: skip


def is_right(name, found):
    """Whether what was planted is what was found."""
    if name == "objects":
        return all(found[way]["same"] for way in ("equal", "differing"))
    return all(found.get(key, True) for key in ("found", "same_pivot", "named", "digest_names", "identical", "same_with_a_killed_worker"))


def said(found):
    """What the document says of the results that are there: asked, measured."""
    rows = []

    def row(what, asked, measured):
        rows.append([what, asked, measured])

    if steps := found.get("steps"):
        reads = steps["differing"]["reads"]
        row(f"first of {steps['steps']:,} steps that differs", "40 reads", f"{reads} reads, {steps['differing']['bytes'] / 1000:.0f} kB, {steps['differing']['ms']:.2f} ms")
        row(f"the digests, of steps of {steps['equal']['records'] // steps['steps']} records", "2 bytes a record", f"{steps['index_bytes_a_record']} bytes")
        row("the verdict of it, by `--read differing`", "that of `--read all`",
            f"{'the same' if steps['same_pivot'] else 'another'}; {steps['differing_s']:.2f} s instead of {steps['all_s']:.2f} s")  # fmt: skip
    if records := found.get("records"):
        row(f"two equal runs of {records['records']:,} records", "50 ms after opening",
            f"{records['equal']['ms']:.2f} ms, {records['equal']['bytes'] / 1000:.0f} kB; `align` in all {1000 * records['align_s']:.0f} ms")  # fmt: skip
        row("the digests, of steps of 3,000 records", "2 bytes a record", f"{records['index_bytes_a_record']} bytes beside {records['log_bytes_a_record']} of the log")
    if ranks := found.get("ranks"):
        row(f"{ranks['ranks']:,} ranks of {ranks['records_a_rank']:,} records, 2 workers against 1", "1.8 times",
            f"{ranks['times']} times: {ranks['one_worker_s']:.0f} s, {ranks['two_workers_s']:.0f} s")  # fmt: skip
        if "digest_s" in ranks:
            row("`opguard digest` of them", "", f"{ranks['digest_s']} s, {ranks['digest_mb']} MiB; step, rank and operator {'named' if ranks['digest_names'] else 'not named'}")
        row("peak memory of a worker", "1 GiB", f"{ranks['worker_mb']} MiB")
        row("a worker killed in the middle", "the same result", f"{ranks['killed']} killed; {'the same' if ranks['same_with_a_killed_worker'] else 'another'} result")
        row("the planted operator", "named", f"{'named' if ranks['named'] else 'not named'}: rank {ranks['rank']}, step {ranks['step']}; {ranks.get('received', 0):,} ranks received it")
        row("a part that is missing", "its ranks alone are open", f"part {ranks['missing'][0]} of {ranks['parts']} is named; the others: `{ranks['without_a_part']}`")
    if merged := found.get("merged"):
        row(f"merge of {merged['ranks']:,} ranks", "30 s, 4 GiB", f"{merged['merge_s']} s, {merged['merge_mb']:,} MiB; {merged['bytes_a_rank']} bytes a rank")
    if against := found.get("against"):
        row("`run --against`, time of the loop", "1.02", f"{against['ratio']:.3f} (recording alone against itself: {against['alone_again']:.3f})")
        if "step_ratio" in against:
            row("the same, of the median step", "1.02", f"{against['step_ratio']:.3f} ({against['step_again']:.3f})")
        row(f"`run --against` of a run that parts in step {against['parts_at']}", f"ends in step {against['parts_at']}, with `align`'s verdict",
            f"ended behind step {against['ended_behind_step']}; {'the same' if against['named'] else 'another'} operator")  # fmt: skip
    if objects := found.get("objects"):
        for way in ("equal", "differing"):
            one = objects[way]
            row(f"{objects['ranks']} ranks of {objects['steps']:,} steps in an S3 server, {way}", "", f"{one['brought']} of {one['of']} brought, in {one['round_trips']} round trips")
    return table(["what", "asked", "measured"], rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=100_000)
    parser.add_argument("--records", type=int, default=10_000_000)
    parser.add_argument("--ranks", type=int, default=1024)
    parser.add_argument("--per-rank", type=int, default=100_000)
    parser.add_argument("--merged", type=int, default=10_000)
    parser.add_argument("--repeats", type=int, default=11)
    parser.add_argument("--objects", type=int, default=2000, help="steps of the logs in object storage")
    parser.add_argument("--only", default=",".join(SECTIONS), metavar="NAME,...")
    parser.add_argument("--build", type=Path, default=ROOT / "build" / "release")
    parser.add_argument("--work", type=Path)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--table", type=Path, metavar="DOCUMENT")
    o = parser.parse_args()
    if o.table:
        put(o.table, "fleet", said(json.loads(o.json.read_text())))
        return 0
    names = o.only.split(",")
    if unknown := set(names) - set(SECTIONS):
        parser.error("--only: no section " + ", ".join(sorted(unknown)))
    if "merged" in names and "ranks" not in names:
        parser.error("--only: merged is of the parts that ranks makes")
    o.opguard, o.maker, o.finder = o.build / "src" / "cli" / "opguard", o.build / "bench" / "fleet_logs", o.build / "bench" / "equal_start"
    bench = Bench(o)
    results = json.loads(o.json.read_text()) if o.json and o.json.exists() else {}
    results["cores"] = len(os.sched_getaffinity(0))
    right = True
    for name in names:
        results[name] = found = getattr(bench, name)()
        right = right and is_right(name, found)
        print(name, json.dumps(found), flush=True)
        if o.json:
            o.json.write_text(json.dumps(results, indent=1) + "\n")
    shutil.rmtree(bench.work, ignore_errors=True)
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
