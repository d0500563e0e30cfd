"""Types of C++ have one definition each: of two with one name the linker keeps either's functions, and no tool says so."""

import collections
import re

from conftest import ROOT

TYPE = re.compile(r"(?:struct|class|enum class|enum|union) (\w+)(?: final)?(?: :[^;{]*)? \{")
OPENS = re.compile(r"(?:inline )?namespace(?: ([\w:]+))? \{")


def types_of(text):
    """Qualified names of the types that a source defines at the level of a named namespace. clang-format has laid it out."""
    scopes = []
    for line in text.splitlines():
        if opened := OPENS.match(line):
            scopes.append(opened[1])
        elif line.startswith("}  // namespace"):
            scopes.pop()
        elif (found := TYPE.match(line)) and None not in scopes:
            yield "::".join([*scopes, found[1]])


def test_types_of():
    text = "namespace a {\nstruct X {\nenum class E : uint8_t { p, q };\nstruct Y;\nnamespace {\nclass Z final : public X {\n}  // namespace\nnamespace b {\nclass W : X {\n"
    assert list(types_of(text)) == ["a::X", "a::E", "a::b::W"]


def test_no_type_is_defined_twice():
    places = collections.defaultdict(list)
    for path in sorted([*ROOT.glob("src/**/*.h"), *ROOT.glob("src/**/*.cc")]):
        for name in set(types_of(path.read_text())):
            places[name].append(str(path.relative_to(ROOT)))
    assert len(places) > 100
    assert {name: where for name, where in places.items() if len(where) > 1} == {}
