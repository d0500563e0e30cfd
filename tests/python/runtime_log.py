"""A log read by the letter of docs/formats/record-format.md, without the tool; and programs that write one."""

import os
import struct
import subprocess
import sys
from pathlib import Path

from conftest import build_dir, clean_environment

KINDS = ("op", "node", "accumulate", "loss", "optimizer", "collective", "state")
PHASES = ("forward", "recompute", "backward", "optimizer")
SLOTS = ("in", "out", "written")
MASK64 = (1 << 64) - 1
UNREADABLE, MODEL_VALUE, UNINITIALISED, PARAMETER, MASK = 1, 2, 4, 8, 16
WANTS_GRADIENT = 256
DIGEST_FOLLOWS = 128  # of a slot in the file only
CARRIED = 32
RAISED, COLLECTIVE, IN_GRAPH, ON_DEVICE, GRADIENTS_TOLD = 1, 2, 4, 8, 16
# Of programs that do not say; OPGUARD_TEST_MODE=default runs the same tests where values are carried over.
MODE = os.environ.get("OPGUARD_TEST_MODE", "full")


class Cursor:
    def __init__(self, data):
        self.data, self.at = data, 0

    def byte(self):
        self.at += 1
        return self.data[self.at - 1]

    def varint(self):
        value = shift = 0
        while True:
            b = self.byte()
            value |= (b & 0x7F) << shift
            shift += 7
            if b < 0x80:
                return value

    def signed(self):
        v = self.varint()
        return (v >> 1) ^ -(v & 1)

    def u64(self):
        self.at += 8
        return struct.unpack_from("<Q", self.data, self.at - 8)[0]

    def text(self):
        n = self.varint()
        self.at += n
        return self.data[self.at - n : self.at].decode()


def mix(x):
    x ^= x >> 29
    x = x * 0xD6E8FEB86659FD93 & MASK64
    return x ^ x >> 32


class Slot:
    def __repr__(self):
        return f"{self.kind} {self.name} {self.dtype}{list(self.shape)}"


class Event:
    def __repr__(self):
        return f"{self.kind} {self.boundary} {self.phase} {self.step}.{self.micro_batch} {self.node} {self.slots}"

    def get(self, kind, name):
        found = [s for s in self.slots if (s.kind, s.name) == (kind, name)]
        assert len(found) == 1, self
        return found[0]

    def names(self, kind):
        return [s.name for s in self.slots if s.kind == kind]


class Bits(int):
    """Of 64."""


class Observation:
    def __init__(self, kind, step, event, time_ns, row):
        self.kind, self.step, self.event, self.time_ns, self.row = kind, step, event, time_ns, row

    def __getitem__(self, field):
        return self.row[field]

    def __repr__(self):
        return f"{self.kind} {self.step} {self.row}"


class Log:
    def __init__(self, path):
        self.path, data = Path(path), Path(path).read_bytes()
        version = struct.unpack_from("<I", data, 8)[0]
        assert data[:8] == b"opguard\x1a" and version in (11, 12)
        self.settings, self.strings, self.metas, self.locations, self.events = {}, [], [], {}, []
        self.lost, self.gaps, self.closed = 0, [], False
        self.calls = {}  # event -> ["file:line:function"], the innermost first
        self.sketches = {}  # event -> (module, {slot: [(kind, shape, dim, [sums]) or ("declared", text)]})
        self.schemas, self.observations = [], []  # (kind, fields); Observation
        # Of version 12: (first event, events, first slot, slots, first step, last step, bytes, chunks, chain).
        self.segments, self.removed = [], 0
        self.before = 0, 0  # events and slots that were removed
        end = self._take(data, version == 12)
        if version == 12:
            bound = self.chunks, self.chain
            self._take_segments(data)
            self.chunks, self.chain = bound
            if end:
                self._end(*end)

    def _take(self, data, cut=False):
        """All chunks; of a log that is cut but for its end, which is what it returns: it counts events of segments."""
        at = 20
        self.chunks = self.chain = 0  # so far, and what binds them
        while at < len(data):
            mark, kind, length, count, _, _ = struct.unpack_from("<3sBIIII", data, at)
            assert mark == b"opg"
            cursor = Cursor(data[at + 20 : at + 20 + length])
            at += 20 + length
            if kind == 8 and cut:
                assert at == len(data)
                return cursor, count
            (None, self._process, self._settings, self._strings, self._metas, self._locations, self._events, self._lost,
             self._end, self._sketches, self._observations, self._schemas, self._segments, self._removed)[kind](cursor, count)  # fmt: skip
            assert cursor.at == length
            sums = struct.unpack_from("<Q", data, at - length - 8)[0]
            self.chunks, self.chain = self.chunks + 1, mix((self.chain + 0x9E3779B97F4A7C15 & MASK64) ^ sums)

    def _take_segments(self, data):
        stem = self.path.name.removesuffix(".incomplete").removesuffix(".log")
        if self.removed:
            first, events, first_slot, slots = self.segments[self.removed - 1][:4]
            self.before = first + events, first_slot + slots
        for path in sorted(self.path.parent.glob(stem + ".*.segment*")):
            number, segment = int(path.name.split(".")[1]), path.read_bytes()
            assert segment[:8] == data[:8] and segment[12:16] == data[12:16] and number >= self.removed
            self._take(segment)
            if number < len(self.segments):
                assert self.segments[number][6:] == (len(segment), self.chunks, self.chain)

    def _segments(self, c, count):
        assert c.varint() == len(self.segments)
        for _ in range(count):
            self.segments.append(tuple(c.varint() for _ in range(8)) + (c.u64(),))

    def _removed(self, c, count):
        self.removed = c.varint()

    def _process(self, c, count):
        self.rank, self.world, self.pid, self.start_ns = (c.signed() for _ in range(4))

    def _settings(self, c, count):
        for _ in range(count):
            key = c.text()
            self.settings[key] = c.text()

    def _strings(self, c, count):
        assert c.varint() == len(self.strings)
        self.strings += [c.text() for _ in range(count)]

    def _metas(self, c, count):
        assert c.varint() == len(self.metas)
        for _ in range(count):
            dtype, device = c.text(), c.text()
            self.metas.append((dtype, device, tuple(c.signed() for _ in range(c.varint()))))

    def _locations(self, c, count):
        for _ in range(count):
            boundary = c.text()
            texts = [c.text() for _ in range(6)]
            numbers = [c.varint() for _ in range(4)]
            self.locations[boundary] = (texts[2], numbers[0], texts[5])

    def _so_far(self):
        return self.before[0] + len(self.events), self.before[1] + sum(len(e.slots) for e in self.events)

    def _events(self, c, count):
        assert (c.varint(), c.varint()) == self._so_far()
        kinds = flags = step = micro_batch = thread = end_ns = device_end_ns = storage = address = 0
        addresses, sizes, tensors = {}, {}, []
        for _ in range(count):
            e = Event()
            e.index = self.before[0] + len(self.events)
            e.boundary = self.strings[c.varint()]
            fields = c.byte()
            if fields & 1:
                kinds, flags = c.byte(), c.byte()
            if fields & 2:
                step, micro_batch = step + c.signed(), micro_batch + c.signed()
            if fields & 4:
                thread = c.varint()
            e.kind, e.phase, e.flags = KINDS[kinds & 15], PHASES[kinds >> 4], flags
            e.step, e.micro_batch, e.thread = step, micro_batch, thread
            e.begin = e.index - (c.varint() if fields & 8 else 0)
            e.forward = e.index - c.varint() if fields & 16 else None
            e.node, e.scalars, e.results = (self.strings[c.varint()] if fields & bit else None for bit in (32, 64, 128))
            e.group, e.sequence = None, 0
            if flags & COLLECTIVE:
                group = c.varint()
                e.group, e.sequence = self.strings[group - 1] if group else None, c.varint()
            e.occurrence = c.varint()
            e.start_ns = end_ns + c.signed()
            e.end_ns = end_ns = e.start_ns + c.signed()
            e.stream = e.device_start_ns = e.device_end_ns = 0
            if flags & ON_DEVICE:
                e.stream, e.device_start_ns = c.varint(), device_end_ns + c.signed()
                e.device_end_ns = device_end_ns = e.device_start_ns + c.signed()
            e.slots, following = [], {}
            for _ in range(c.varint()):
                s = Slot()
                first = c.varint()
                s.kind, form, s.flags = SLOTS[first & 3], first >> 2 & 3, first >> 5 & ~DIGEST_FOLLOWS
                s.index = c.varint() if first & 16 else following.get(s.kind, 0)
                following[s.kind] = s.index + 1
                s.name = self.strings[c.varint()]
                e.slots.append(s)
                if form == 2:
                    known = tensors[-c.varint()]
                    for field in ("dtype", "device", "shape", "version", "storage", "address", "size_bytes", "value", "flat", "digest", "pattern"):
                        setattr(s, field, getattr(known, field))
                    continue
                meta = c.varint()
                (s.dtype, s.device, s.shape), s.version = self.metas[meta], c.varint()
                s.storage = storage = storage + c.signed() & 0xFFFFFFFF
                place = addresses.get(storage % 4096, (None, 0))
                s.address = address = (place[1] if place[0] == storage else address) + c.signed() & MASK64
                s.size_bytes = sizes.get(meta, 0) + c.signed() & MASK64
                addresses[storage % 4096], sizes[meta] = (storage, address), s.size_bytes
                s.value, s.flat, s.digest, s.pattern = None, None, None, 0
                if s.flags & UNREADABLE:
                    continue
                if form == 3:
                    known = tensors[-c.varint()]
                    s.value, s.flat, s.digest, s.pattern = known.value, known.flat, known.digest, known.pattern
                else:
                    h = c.u64()
                    s.value, s.flat = ((h, mix(h)), h) if form == 0 else ((h, c.u64()), c.u64())
                    s.digest = c.u64() if first >> 5 & DIGEST_FOLLOWS else None
                    s.pattern = c.u64() if s.flags & MASK else 0
                tensors.append(s)
            self.events.append(e)

    def _lost(self, c, count):
        self.gaps += [(c.varint(), c.varint()) for _ in range(count)]
        self.lost = sum(records for _, records in self.gaps)

    def _sketches(self, c, count):
        for _ in range(count):
            event, module, calls = c.varint(), c.varint(), c.varint()
            slots = {}
            for _ in range(c.varint()):
                slot = c.varint()
                slots[slot] = [self._set(c) for _ in range(c.varint())]
            self.sketches[event] = (self.strings[module - 1] if module else None, slots)
            self.calls[event] = self.strings[calls - 1].split("\n") if calls else []

    def _set(self, c):
        kind = ("whole", "grid", "halves", "exchanged", "declared", "uneven", "unpadded")[c.byte()]
        if kind == "declared":
            return kind, self.strings[c.varint()]
        if kind == "whole":
            return kind, (), 0, [self._sketch(c)]
        shape, dim = tuple(c.signed() for _ in range(c.varint())), c.byte()
        if kind == "uneven":  # where pieces begin, by dimension
            dim = [[c.varint() for _ in range(c.varint())] for _ in range(len(shape) + (dim > 0))]
        return kind, shape, dim, [self._sketch(c) for _ in range(c.varint())]

    @staticmethod
    def _sketch(c):
        head = c.byte()
        if head & 128:
            for _ in range(3):
                c.varint()
        size = (head & 127) // 8
        if size == 0:
            c.at += 7
            return [0.0] * 64
        exponent = c.signed()
        c.at += 64 * size
        data = c.data[c.at - 64 * size : c.at]
        return [int.from_bytes(data[i : i + size], "little", signed=True) * 2.0**exponent for i in range(0, 64 * size, size)]

    def _schemas(self, c, count):
        assert c.varint() == len(self.schemas)
        for _ in range(count):
            kind = self.strings[c.varint()]
            self.schemas.append((kind, [self.strings[c.varint()] for _ in range(c.varint())]))

    def _observations(self, c, count):
        assert c.varint() == len(self.observations)
        step = event = time_ns = 0
        for _ in range(count):
            kind, fields = self.schemas[c.varint()]
            values = c.varint()
            step, event, time_ns = step + c.signed(), event + c.signed(), time_ns + c.signed()
            given = [self._value(c) for _ in range(values)]
            row = dict(zip(fields, given + [None] * (len(fields) - values), strict=True))
            self.observations.append(Observation(kind, step, event, time_ns, row))

    def _value(self, c):
        head = c.byte()
        kind, small = head & 7, head >> 3
        if kind < 3:
            return (None, False, True)[kind]
        if kind == 4:
            c.at += 4 if small else 8
            return struct.unpack_from("<f" if small else "<d", c.data, c.at - (4 if small else 8))[0]
        if kind == 6:
            return Bits(c.u64())
        number = c.varint() if small == 31 else small
        if kind == 3:
            return (number >> 1) ^ -(number & 1)
        return self.strings[number] if kind == 5 else [self._value(c) for _ in range(number)]

    def observed(self, kind):
        return [o for o in self.observations if o.kind == kind]

    def _end(self, c, count):
        assert (c.varint(), c.varint()) == self._so_far()
        self.lost = c.varint()
        assert c.varint() == len(self.observations)
        assert (c.varint(), c.u64()) == (self.chunks, self.chain)
        self.closed = True

    def states(self):
        """Of random number generators; buffers and saved tensors are states as well, with boundaries of their own."""
        return [e for e in self.events if e.kind == "state" and e.boundary not in ("<buffers>", "<saved>")]

    def boundaries(self):
        """Of every event but those of random states."""
        return [e.boundary for e in self.events if e.kind != "state"]

    def of(self, boundary, kind="op"):
        return [e for e in self.events if e.boundary == boundary and e.kind == kind]


PROLOGUE = """
import sys
sys.path.insert(0, {package!r})
from opguard import og
from opguard.load import startup
from opguard.record import recording
options = startup.read_environment(__import__("os").environ)
if options.log:
    recording.start(options)
"""


def run_program(source, log=None, python=sys.executable, status=0, env=None):
    """Runs source after the prologue; with `log` a folder it records there. What it printed.

    status: the exit status it must have, or a list of those it may have.
    """
    environment = {**clean_environment(), "OPGUARD_MODE": MODE, **(env or {})}
    if log is not None:
        environment["OPGUARD_LOG"] = str(log)
    program = PROLOGUE.format(package=str(build_dir() / "python")) + source
    result = subprocess.run([python, "-c", program], env=environment, capture_output=True, text=True, timeout=300)
    assert result.returncode in (status if isinstance(status, list) else [status]), result.stderr
    return result


def logs_in(folder):
    return [Log(p) for p in sorted(Path(folder).glob("*.log"))] if os.path.isdir(folder) else []


def record(source, folder, **options):
    result = run_program(source, folder, **options)
    assert "opguard: " not in result.stderr, result.stderr
    (log,) = logs_in(folder)
    assert log.closed and log.lost == 0
    return log
