#!/usr/bin/env python3
"""What a small log made to cost much costs every reader of logs: time and memory (docs/results/reliability.md).

bench/bombs.py [--bytes N] [--only NAME ...] [--readers NAME ...] [--json FILE]

A bomb is a log whose every checksum is good and which means far more than it holds: one shape of 100,000 dimensions that 30,000 records
refer to by three bytes each. The writer here follows docs/formats/record-format.md and nothing else. Each reader's peak memory is taken
above what it needs for an ordinary log of a few events.
Ends with 1 where a reader needs more than 100 times the file's size, more than --seconds, or ends as no reader should. With --bytes
below 200,000 a log may cost what one of 200,000 may: what a reader needs for any log, a block of pyarrow's say, is no share of it.

A new kind of bomb: a function of BOMBS that returns the chunks of a log of about `size` bytes."""

import argparse
import json
import os
import selectors
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
VERSION, SALT, MASK64 = 8, 0x1234, (1 << 64) - 1
PROCESS, SETTINGS, STRINGS, METAS, LOCATIONS, EVENTS, LOST, END = range(1, 9)
KINDS, STEPS, THREAD, INSIDE, FORWARD, NODE, SCALARS, RESULTS = (1 << i for i in range(8))
MEMORY_FACTOR, PROMISED_BYTES = 100, 200_000
MOST_DIMENSIONS = 1024  # of a shape


# ---- Bytes of a log: docs/formats/record-format.md.


def crc_table():
    table = []
    for c in range(256):
        for _ in range(8):
            c = c >> 1 ^ (0x82F63B78 if c & 1 else 0)
        table.append(c)
    return table


CRC = crc_table()


def crc32c(crc, data):
    crc ^= 0xFFFFFFFF
    for byte in data:
        crc = CRC[(crc ^ byte) & 255] ^ crc >> 8
    return crc ^ 0xFFFFFFFF


def varint(value):
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes(out) + bytes([value])


def signed(value):
    return varint((value << 1 ^ value >> 63) & MASK64)


def text(value):
    data = value.encode() if isinstance(value, str) else value
    return varint(len(data)) + data


def mix(x):
    x ^= x >> 29
    x = x * 0xD6E8FEB86659FD93 & MASK64
    return x ^ x >> 32


def chunk(kind, count, payload):
    head = struct.pack("<3sBII", b"opg", kind, len(payload), count)
    crc = crc32c(SALT, head)
    return head + struct.pack("<II", crc, crc32c(crc, payload)) + payload


def log_bytes(chunks, events=0, slots=0, lost=0):
    """The log of these chunks (kind, count, payload), with its process before and its end behind them."""
    head = b"opguard\x1a" + struct.pack("<II", VERSION, SALT)
    parts = [head + struct.pack("<I", crc32c(0, head))]
    chain = 0
    for part in [(PROCESS, 1, signed(0) + signed(1) + signed(1) + signed(1000)), *chunks]:
        parts.append(chunk(*part))
        chain = mix((chain + 0x9E3779B97F4A7C15 & MASK64) ^ struct.unpack_from("<Q", parts[-1], 12)[0])
    end = varint(events) + varint(slots) + varint(lost) + varint(len(parts) - 1) + struct.pack("<Q", chain)
    return b"".join([*parts, chunk(END, 1, end)])


def strings(*texts):
    return (STRINGS, len(texts), varint(0) + b"".join(text(t) for t in texts))


def meta(*dims):
    return text("float32") + text("cpu") + varint(len(dims)) + b"".join(signed(d) for d in dims)


def metas(*all_metas):
    return (METAS, len(all_metas), varint(0) + b"".join(all_metas))


def event(boundary=0, fields=0, rest=b"", slots=(), occurrence=0):
    """`rest`: what the fields say, up to the occurrence."""
    return varint(boundary) + bytes([fields]) + rest + varint(occurrence) + signed(5) + signed(10) + varint(len(slots)) + b"".join(slots)


def events(*all_events, first=0, first_slot=0):
    return (EVENTS, len(all_events), varint(first) + varint(first_slot) + b"".join(all_events))


def slot(value, kind=1, name=0, shape=0):
    """An output, with a place and a value of its own."""
    return varint(kind + 4) + varint(name) + varint(shape) + varint(0) + signed(1) + signed(64) + signed(16) + struct.pack("<QQQ", value, value + 1, value + 2)


def again(name=0, kind=1):
    """The last tensor once more: three bytes."""
    return varint(kind + 8) + varint(name) + varint(1)


ORDINARY = [strings("a.add:k", "out0"), metas(meta(4))]


def ordinary(size, seed=0):
    return log_bytes([*ORDINARY, events(*[event(slots=[slot(i + seed, name=1)], occurrence=i) for i in range(20)])], 20, 20)


# ---- Bombs. `seed` makes the log of another run: the same but for its values.


def dims(size, seed=0):
    """Half of it shapes of as many dimensions as there may be, the other half records of one of them."""
    count, shapes = size // 6, size // 2200 + 1
    all_metas = [meta(*[1] * (MOST_DIMENSIONS - 1), i) for i in range(shapes)]
    return log_bytes([strings("a.add:k"), metas(*all_metas), events(event(slots=[slot(seed)] + [again()] * (count - 1)))], 1, count)


def dims_many(size, seed=0):
    """One shape of as many dimensions as there may be, all the rest records of it."""
    count = size // 3
    return log_bytes([strings("a.add:k"), metas(meta(*[1] * MOST_DIMENSIONS)), events(event(slots=[slot(seed)] + [again()] * (count - 1)))], 1, count)


def dims_refused(size, seed=0):
    """A shape of more dimensions than there may be, all of the log."""
    return log_bytes([strings("a.add:k"), metas(meta(*[1] * size))])


def shapes(size, seed=0):
    """Two shapes that differ in their last dimension, in turn."""
    count = size // 30
    one = [1] * (MOST_DIMENSIONS - 1)
    slots = [slot(seed + i, shape=i % 2) for i in range(count)]
    return log_bytes([strings("a.add:k"), metas(meta(*one, 2), meta(*one, 3)), events(event(slots=slots))], 1, count)


def nest(size, seed=0):
    """Every event within the next."""
    count = size // 9
    nested = [event(fields=INSIDE, rest=varint(i), occurrence=i, slots=[slot(seed)] if i == 0 else ()) for i in range(count)]
    return log_bytes([strings("a.add:k"), metas(meta(4)), events(*nested)], count, 1)


def nest_alternate(size, seed=0):
    """Within the next but one: the nesting changes with every event."""
    count = size // 9
    nested = [event(boundary=i % 2, fields=INSIDE, rest=varint(i - i % 2), occurrence=i) for i in range(count)]
    located = [(LOCATIONS, 2, b"".join(b"".join(text(t) for t in (b, "p", "f.py", "/f.py", "x", "c", "fn" + b)) + varint(3) * 4 for b in ("a", "b")))]
    return log_bytes([strings("a", "b"), *located, events(*nested)], count, 0)


def words(size, seed=0):
    """Half of it one text, the other half events and records that have it for every name."""
    long = "x" * (size // 2)
    count = size // 36
    fields = NODE | SCALARS | RESULTS
    all_events = [event(1, fields, b"\1\1\1", [again(1), again(1)] if i else [slot(seed, name=1), slot(seed, name=1)], i) for i in range(count)]
    # In a chunk of their own each event's first record has no tensor before it; so all are in one.
    return log_bytes([strings("s", long), metas(meta(4)), events(*all_events)], count, 2 * count)


def names_of_long_texts(size, seed=0):
    """One long text as the name of every record."""
    count = size // 6
    return log_bytes([strings("a.add:k", "n" * (size // 2)), metas(meta(4)), events(event(slots=[slot(seed, name=1)] + [again(1)] * (count - 1)))], 1, count)


def places(size, seed=0):
    """One long location, and many events of its boundary."""
    count = size // 12
    long = "y" * (size // 12)
    located = (LOCATIONS, 1, b"".join(text(t) for t in ("a", long, long, long, long, long, long)) + varint(3) * 4)
    return log_bytes([strings("a"), located, metas(meta(4)), events(*[event(occurrence=i, slots=[slot(seed)] if i == 0 else ()) for i in range(count)])], count, 1)


def small_events(size, seed=0):
    count = size // 6
    return log_bytes([strings("a"), metas(meta(4)), events(*[event(occurrence=i % 100) for i in range(count)])], count, 0)


def boundaries(size, seed=0):
    """Every event at a boundary of its own."""
    count = size // 16
    return log_bytes([strings(*[f"b{i}" for i in range(count)]), metas(meta(4)), events(*[event(i) for i in range(count)])], count, 0)


def threads(size, seed=0):
    """Every event in a thread of its own, in a step of its own."""
    count = size // 16
    return log_bytes([strings("a"), events(*[event(fields=THREAD | STEPS, rest=signed(1) + signed(0) + varint(i * 1000), occurrence=i) for i in range(count)])], count, 0)


def far_steps(size, seed=0):
    """Steps that are a thousand million apart."""
    count = size // 16
    return log_bytes([strings("a"), events(*[event(fields=STEPS, rest=signed(1 << 30) + signed(1 << 29), occurrence=i) for i in range(count)])], count, 0)


def records(size, seed=0):
    """One event with as many different records as there is room for."""
    count = size // 36
    return log_bytes([strings("a"), metas(meta(4)), events(event(slots=[slot(mix(i + seed)) for i in range(count)]))], 1, count)


def named_records(size, seed=0):
    """One event; every record has a name of its own, in the other run in another order."""
    count = size // 48
    order = [(i * 7919 + seed) % count for i in range(count)]
    return log_bytes([strings("a", *[f"n{i}" for i in range(count)]), metas(meta(4)), events(event(slots=[slot(mix(i + seed), name=1 + i) for i in order]))], 1, count)


def values(size, seed=0):
    """Events of one boundary with a record each, whose values have nothing in common with the other run's."""
    count = size // 44
    return log_bytes([strings("a.add:k", "out0"), metas(meta(4)), events(*[event(slots=[slot(mix(i + seed * 1000003), name=1)], occurrence=i) for i in range(count)])], count, count)


def same_values(size, seed=0):
    """Every record of one value: whatever looks for who made it finds all of them."""
    count = size // 16
    made = [event(slots=[slot(7, name=1)])]
    made += [event(slots=[again(1, kind=0), again(1)], occurrence=i) for i in range(1, count)]
    return log_bytes([strings("a.add:k", "out0"), metas(meta(4)), events(*made)], count, 2 * count - 1)


def empty_strings(size, seed=0):
    return log_bytes([(STRINGS, size, varint(0) + b"\0" * size)])


def empty_metas(size, seed=0):
    return log_bytes([(METAS, size // 3, varint(0) + b"\0" * (size // 3 * 3))])


def empty_locations(size, seed=0):
    count = size // 14
    return log_bytes([(LOCATIONS, count, b"".join(text(f"{i:x}") + b"\0" * 10 for i in range(count)))])


def settings(size, seed=0):
    count = size // 6
    return log_bytes([(SETTINGS, count, b"".join(text(f"{i:x}") + b"\0" for i in range(count)))])


def losses(size, seed=0):
    """Places where records are missing, two bytes each."""
    count = size // 4
    payload = b"".join(varint(i % 100) + varint(1) for i in range(count))
    return log_bytes([strings("a"), events(*[event(occurrence=i) for i in range(100)]), (LOST, count, payload)], 100, 0, count)


BOMBS = {f.__name__: f for f in (dims, dims_many, dims_refused, shapes, nest, nest_alternate, words, names_of_long_texts, places, small_events, boundaries, threads,
                                 far_steps, records, named_records, values, same_values, empty_strings, empty_metas, empty_locations, settings, losses)}  # fmt: skip

# ---- Readers: {a} and {b} are folders of a log each, {a_log} the log itself, {out} a folder.

TABLE = "import opguard, sys, warnings; warnings.simplefilter('ignore'); log = opguard.read_log(sys.argv[1]); "
READERS = {
    "dump": "opguard dump {a_log}",
    "dump --salvage": "opguard dump --salvage {a_log}",
    "dump json": "opguard dump --format json {a_log}",
    "dump csv": "opguard dump --format csv {a_log}",
    "dump pair": "opguard dump {a} {b}",
    "align same": "opguard align {a} {a}",
    "align": "opguard align {a} {b}",
    "align json": "opguard align {a} {b} --json {out}/a.json",
    "align html": "opguard align {a} {b} --html {out}/a.html",
    "align perfetto": "opguard align {a} {b} --perfetto {out}/a.pftrace",
    "align sarif": "opguard align {a} {b} --sarif {out}/a.sarif",
    "single": "opguard align --single {a}",
    "read_log": "{python} -c \"" + TABLE + "all(t[c] is not None for t in (log.events, log.records) for c in t.columns)\" {a_log}",
    "arrow": "{python} -c \"" + TABLE + "import pyarrow; [pyarrow.table(t) for t in (log.events, log.records)]\" {a_log}",
    "export": "opguard export {a_log} -o {out}/a.parquet --python {python}",
}  # fmt: skip


# A process of its own to start a reader from: a child's peak begins with that of the process that it was forked from.
STARTER = """
import os, resource, sys, time
resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30))
child = os.posix_spawn("/bin/sh", ["sh", "-c", "exec " + sys.argv[1]], os.environ)
_, status, usage = os.wait4(child, 0)
os.write(int(sys.argv[2]), b"%d %d" % (os.waitstatus_to_exitcode(status), usage.ru_maxrss))
"""


def measure(command, seconds, folder):
    """(status, seconds, peak KiB, bytes of stdout, the end of stderr). 'killed': ran past the limit."""
    begin = time.monotonic()
    result, give = os.pipe()
    process = subprocess.Popen([sys.executable, "-ISc", STARTER, command, str(give)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               env={**os.environ, "PYTHONPATH": str(folder)}, pass_fds=[give], start_new_session=True)  # fmt: skip
    os.close(give)
    written, said, killed = 0, b"", False
    with selectors.DefaultSelector() as streams:
        for stream in (process.stdout, process.stderr):
            streams.register(stream, selectors.EVENT_READ)
        while streams.get_map():
            if time.monotonic() - begin > seconds and not killed:
                killed = True
                os.killpg(process.pid, signal.SIGKILL)
            for key, _ in streams.select(0.2):
                data = os.read(key.fd, 1 << 20)
                if not data:
                    streams.unregister(key.fileobj)
                elif key.fileobj is process.stdout:
                    written += len(data)
                else:
                    said = (said + data)[-600:]
    process.communicate()
    status, peak = (os.read(result, 100) or b"0 0").split()
    os.close(result)
    return "killed" if killed else int(status), time.monotonic() - begin, int(peak), written, said.decode(errors="replace")


def put(folder, make, size):
    for name, seed in (("a", 0), ("b", 1)):
        (folder / name).mkdir(parents=True)
        (folder / name / "rank0-1000-1.log").write_bytes(make(size, seed))


class Bombs:
    def __init__(self, options, folder):
        self.options, self.folder, self.results, self.base = options, folder, [], {}
        put(folder / "ordinary", ordinary, 0)

    def read(self, bomb, reader):
        here, out = self.folder / bomb, self.folder / "out"
        shutil.rmtree(out, ignore_errors=True)
        out.mkdir()
        a, b = here / "a", here / "b"
        command = READERS[reader].format(a=a, b=b, a_log=a / "rank0-1000-1.log", out=out, python=self.options.python)
        result = measure(command, self.options.seconds, self.options.build / "python")
        return *result, sum(f.stat().st_size for f in out.iterdir())

    def run(self, bomb, reader):
        if reader not in self.base:
            self.base[reader] = self.read("ordinary", reader)[2]
        status, seconds, peak, written, said, file_bytes = self.read(bomb, reader)
        size = (self.folder / bomb / "a/rank0-1000-1.log").stat().st_size
        logs = sum(READERS[reader].count(name) for name in ("{a}", "{b}", "{a_log}"))  # that it reads
        factor = (peak - self.base[reader]) * 1024 / size / logs
        bad = status not in (0, 1, 2) or seconds > self.options.seconds or factor > MEMORY_FACTOR * max(1, PROMISED_BYTES / self.options.bytes)
        self.results.append({"bomb": bomb, "reader": reader, "bytes": size, "status": status, "seconds": round(seconds, 2),
                             "peak_kib": peak, "factor": round(factor, 1), "written": written + file_bytes, "bad": bad})  # fmt: skip
        print(f"{'FAIL' if bad else 'ok  '} {bomb:20} {reader:15} {size:>8} bytes: {seconds:6.2f} s, {peak / 1024:7.1f} MiB ({factor:6.1f} times), "
              f"{(written + file_bytes) / 1e6:8.1f} MB written, {status}{': ' + said[-200:] if bad else ''}", flush=True)  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=Path, default=ROOT / "build/release")
    parser.add_argument("--python", default=sys.executable, help="that has numpy and pyarrow [this one]")
    parser.add_argument("--bytes", type=int, default=200_000, help="about the size of a log [200000]")
    parser.add_argument("--seconds", type=float, default=30, help="most that a reader may take [30]")
    parser.add_argument("--only", nargs="+", choices=BOMBS, default=list(BOMBS))
    parser.add_argument("--readers", nargs="+", choices=READERS, default=list(READERS))
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    options = parser.parse_args()
    options.build = options.build.resolve()
    os.environ["PATH"] = f"{options.build}/src/cli:{os.environ['PATH']}"
    folder = Path(tempfile.mkdtemp(prefix="opguard-bombs-"))
    try:
        bombs = Bombs(options, folder)
        for bomb in options.only:
            put(folder / bomb, BOMBS[bomb], options.bytes)
            for reader in options.readers:
                bombs.run(bomb, reader)
            shutil.rmtree(folder / bomb)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        if options.json:
            options.json.write_text(json.dumps({"bytes": options.bytes, "results": bombs.results}, indent=1) + "\n")
    failed = [f"{r['bomb']} by {r['reader']}" for r in bombs.results if r["bad"]]
    above = [r for r in bombs.results if r["factor"] > MEMORY_FACTOR]
    worst = max(bombs.results, key=lambda r: r["seconds"]), max(bombs.results, key=lambda r: r["factor"])
    print(f"bombs: {len(bombs.results)} readings; slowest {worst[0]['seconds']} s ({worst[0]['bomb']} by {worst[0]['reader']}), most memory "
          f"{worst[1]['factor']} times the file ({worst[1]['bomb']} by {worst[1]['reader']}), {len(above)} above {MEMORY_FACTOR} times; failed: {', '.join(failed) or 'none'}")  # fmt: skip
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
