"""Where a frame is: the exact expression its current instruction was compiled from.

    y = a * b + c * d      at the second multiplication: columns 12 to 17, opcode BINARY_OP

co_positions() has a span for each code unit, and f_lasti says which unit runs. Counterexample: before Python 3.11 there
are no columns, and a line is all: column -1. The cost: the table of a code object is made once, and a Place for each
instruction that was ever seen."""

import dis
import sys

_HAS_POSITIONS = hasattr((lambda: None).__code__, "co_positions")
# 3.11 gives several instructions one span: each `{x}` of an f-string that of the string, each test of `if a and b:` that
# of the statement or of a comparison before it. What else the code says tells whose operand was a tensor.
_SHARES_SPANS = (3, 11) <= sys.version_info < (3, 12)
_TESTS = ("POP_JUMP_", "JUMP_IF_")
# 3.11 makes a call in two instructions of the same position; C functions run in the first.
_SAME = {"PRECALL": "CALL"}


class Place:
    """One expression: `line` from 1, `column` in UTF-8 bytes from 0 or -1 for not known, `opcode` of the instruction.

    Several instructions may have one span; the opcode (CALL, BINARY_OP, IMPORT_NAME) says which of them runs."""

    __slots__ = ("scope", "line", "column", "end_line", "end_column", "opcode", "nth", "of", "tested")

    def __init__(self, scope, line, column, end_line, end_column, opcode):
        self.scope, self.opcode = scope, opcode
        self.line, self.column, self.end_line, self.end_column = line, column, end_line, end_column
        self.nth, self.of = 0, 0  # among the FORMAT_VALUE that have this very span; 0: not told
        self.tested = None  # the span of what is tested, as co_positions() has it

    def describe(self):
        found = {name: getattr(self, name) for name in self.__slots__[:6]}
        if self.of:
            found.update(nth=self.nth, of=self.of)
        if self.tested:
            found["tested"] = dict(zip(("line", "end_line", "column", "end_column"), self.tested))
        return found


class Positions:
    """Code is known by its id, since to hash one costs as much as its constants; the cache keeps it alive."""

    def __init__(self):
        self.tables = {}  # id(code) -> (code, [(line, end_line, column, end_column) for each code unit])
        self.places = {}  # (id(code), instruction offset) -> Place

    def of(self, frame):
        """The frame's place. The same object comes back each time for one instruction of one code."""
        code, offset = frame.f_code, frame.f_lasti
        key = (id(code), offset)
        place = self.places.get(key)
        if place is None:
            place = self.places[key] = self._find(code, offset, frame.f_lineno)
        return place

    def _find(self, code, offset, line):
        scope = getattr(code, "co_qualname", code.co_name)
        opcode = _opcode(code, offset)
        kept = self.tables.get(id(code))
        if kept is None:
            kept = self.tables[id(code)] = (code, list(code.co_positions()) if _HAS_POSITIONS else [])
        if _HAS_POSITIONS:
            table = kept[1]
            if 0 <= offset // 2 < len(table):
                first, last, column, end_column = table[offset // 2]
                if first is not None and column is not None and end_column is not None:
                    place = Place(scope, first, column, last, end_column, opcode)
                    if _SHARES_SPANS and opcode == "FORMAT_VALUE":
                        place.nth, place.of = _among(code, table, offset)
                    elif _SHARES_SPANS and opcode.startswith(_TESTS):
                        place.tested = _tested(code, table, offset)
                    return place
        line = line or code.co_firstlineno
        return Place(scope, line, -1, line, -1, opcode)


def _among(code, table, offset):
    """(which it is, from 0, of how many) FORMAT_VALUE of its span, in their order."""
    span, text = table[offset // 2], code.co_code
    alike = [i for i in range(0, len(text), 2) if text[i] == dis.opmap["FORMAT_VALUE"] and table[i // 2] == span]
    return (alike.index(offset), len(alike)) if offset in alike else (0, 0)


def _tested(code, table, offset):
    """The span of the instruction before: it ends the expression that is tested."""
    text = code.co_code
    before = offset - 2
    while before > 0 and dis.opname[text[before]] in ("CACHE", "EXTENDED_ARG"):
        before -= 2
    span = table[before // 2] if before >= 0 else (None,)
    return None if None in span else span


def _opcode(code, offset):
    """The name of the instruction at `offset`. f_lasti may lie on an inline cache entry behind it: then the instruction
    is before."""
    text = code.co_code  # without the interpreter's own specialisations
    while 0 < offset < len(text) and dis.opname[text[offset]] == "CACHE":
        offset -= 2
    name = dis.opname[text[offset]] if 0 <= offset < len(text) else ""
    return _SAME.get(name, name)
