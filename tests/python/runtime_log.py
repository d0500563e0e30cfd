"""A log read by the letter of docs/record-format.md, without the tool; and programs that write one."""

import os
import struct
import subprocess
import sys
from pathlib import Path

from conftest import build_dir, clean_environment

KINDS = ("op", "node", "accumulate", "loss", "optimizer", "collective", "state")
PHASES = ("forward", "recompute", "backward", "optimizer")
SLOTS = ("in", "out", "written")
UNREADABLE, MODEL_VALUE, UNINITIALISED, PARAMETER, MASK = 1, 2, 4, 8, 16
RAISED, COLLECTIVE = 1, 2


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


class Log:
    def __init__(self, path):
        self.path, data = Path(path), Path(path).read_bytes()
        assert data[:8] == b"opguard\x1a" and struct.unpack_from("<I", data, 8)[0] == 3
        self.settings, self.strings, self.metas, self.locations, self.events = {}, [], [], {}, []
        self.lost, self.closed, at = 0, False, 16
        while at < len(data):
            kind, length, count, _ = struct.unpack_from("<IIII", data, at)
            cursor = Cursor(data[at + 16 : at + 16 + length])
            at += 16 + length
            (None, self._process, self._settings, self._strings, self._metas, self._locations, self._events, self._lost,
             self._end)[kind](cursor, count)  # fmt: skip
            assert cursor.at == length

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

    def _optional(self, index):
        return self.strings[index - 1] if index else None

    def _events(self, c, count):
        assert c.varint() == len(self.events)
        step = micro_batch = time_ns = address = storage = 0
        for _ in range(count):
            e = Event()
            e.index = len(self.events)
            e.boundary = self.strings[c.varint()]
            kinds = c.byte()
            e.kind, e.phase, e.flags = KINDS[kinds & 15], PHASES[kinds >> 4], c.byte()
            step += c.signed()
            micro_batch += c.signed()
            e.step, e.micro_batch, e.occurrence, e.thread = step, micro_batch, c.varint(), c.varint()
            e.begin = e.index - c.varint()
            back = c.varint()
            e.forward = e.index - back if back else None
            e.node, e.scalars, e.results = (self._optional(c.varint()) for _ in range(3))
            e.group, e.sequence = (self._optional(c.varint()), c.varint()) if e.flags & COLLECTIVE else (None, 0)
            time_ns += c.signed()
            e.start_ns, e.end_ns, e.slots = time_ns, time_ns + c.signed(), []
            for _ in range(c.varint()):
                s = Slot()
                kind = c.varint()
                s.kind, s.flags, s.index = SLOTS[kind & 3], kind >> 3, c.varint()
                s.name, (s.dtype, s.device, s.shape), s.version = self.strings[c.varint()], self.metas[c.varint()], c.varint()
                storage += c.signed()
                address += c.signed()
                s.storage, s.address, s.size_bytes = storage, address, c.varint()
                s.value = None if s.flags & UNREADABLE else (c.u64(), c.u64())
                s.flat = c.u64() if kind & 4 else s.value and s.value[0]
                s.pattern = c.u64() if s.flags & MASK and s.value else 0
                e.slots.append(s)
            self.events.append(e)

    def _lost(self, c, count):
        self.lost = c.varint()

    def _end(self, c, count):
        assert c.varint() == len(self.events) and c.varint() == sum(len(e.slots) for e in self.events)
        self.lost, self.closed = c.varint(), True

    def states(self):
        return [e for e in self.events if e.kind == "state"]

    def boundaries(self):
        """Of every event but those of random states."""
        return [e.boundary for e in self.events if e.kind != "state"]

    def of(self, boundary, kind="op"):
        return [e for e in self.events if e.boundary == boundary and e.kind == kind]


PROLOGUE = """
import sys
sys.path.insert(0, {package!r})
from opguard import og, runtime, startup
options = startup.read_environment(__import__("os").environ)
if options.log:
    runtime.start(options)
"""


def run_program(source, log=None, python=sys.executable, status=0, env=None):
    """Runs source after the prologue; with `log` a folder it records there. What it printed."""
    environment = {**clean_environment(), **(env or {})}
    if log is not None:
        environment["OPGUARD_LOG"] = str(log)
    program = PROLOGUE.format(package=str(build_dir() / "python")) + source
    result = subprocess.run([python, "-c", program], env=environment, capture_output=True, text=True, timeout=300)
    assert result.returncode == status, result.stderr
    return result


def logs_in(folder):
    return [Log(p) for p in sorted(Path(folder).glob("*.log"))] if os.path.isdir(folder) else []


def record(source, folder, **options):
    result = run_program(source, folder, **options)
    assert "opguard: " not in result.stderr, result.stderr
    (log,) = logs_in(folder)
    assert log.closed and log.lost == 0
    return log
