"""Where a frame is: the exact expression its current instruction was compiled from."""

import dis

_HAS_POSITIONS = hasattr((lambda: None).__code__, "co_positions")
# 3.11 makes a call in two instructions of the same position; C functions run in the first.
_SAME = {"PRECALL": "CALL"}


class Place:
    __slots__ = ("scope", "line", "column", "end_line", "end_column", "opcode")

    def __init__(self, scope, line, column, end_line, end_column, opcode):
        self.scope, self.opcode = scope, opcode
        self.line, self.column, self.end_line, self.end_column = line, column, end_line, end_column

    def describe(self):
        return {name: getattr(self, name) for name in self.__slots__}


class Positions:
    """Code is known by its id, since to hash one costs as much as its constants; the cache keeps it alive."""

    def __init__(self):
        self.tables = {}  # id(code) -> (code, [(line, end_line, column, end_column) for each code unit])
        self.places = {}  # (id(code), instruction offset) -> Place

    def of(self, frame):
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
                    return Place(scope, first, column, last, end_column, opcode)
        line = line or code.co_firstlineno
        return Place(scope, line, -1, line, -1, opcode)


def _opcode(code, offset):
    text = code.co_code  # without the interpreter's own specialisations
    while 0 < offset < len(text) and dis.opname[text[offset]] == "CACHE":
        offset -= 2
    name = dis.opname[text[offset]] if 0 <= offset < len(text) else ""
    return _SAME.get(name, name)
