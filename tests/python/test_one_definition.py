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


# What one file of a library keeps to itself. Libraries are compiled a few files at a time (CMAKE_UNITY_BUILD), where an overload of another file's
# would be taken in silence: `counted(uint64_t, const char*)` once stood for `counted(uint64_t, const std::string&)`.
LOCAL = re.compile(r"namespace \{\n(.*?)\n\}  // namespace\n", re.S)
FUNCTION = re.compile(
    r"^(?!return|else|if|for|while|struct|class|using|namespace|//|enum|template|static_assert|#|\}|\s)[\w:<>,&*\s\[\]]*?[\s&*](\w+)\(", re.M
)
CONSTANT = re.compile(r"^(?:constexpr|const|constinit)[^(=\n]*?(\w+)(?:\[\])?(?: =|\{)", re.M)
ALONE = {"runtime"}  # UNITY_BUILD OFF


def local_names(text):
    for part in LOCAL.findall(text):
        for pattern in (FUNCTION, CONSTANT, re.compile(r"^(?:struct|class|enum class) (\w+)", re.M)):
            yield from pattern.findall(part)


def test_local_names():
    text = "namespace a {\nnamespace {\nconstexpr int kMost = 3;\nstruct Row {\n  int at() const;\n};\nstd::string said(int n) {\n  return place(n);\n}\n}  // namespace\nint open() {}\n}  // namespace a\n"
    assert set(local_names(text)) == {"kMost", "Row", "said"}


def test_no_local_name_stands_in_two_files_of_a_library():
    places = collections.defaultdict(set)
    for path in sorted(ROOT.glob("src/**/*.cc")):
        library = path.relative_to(ROOT / "src").parts[0]
        if library not in ALONE:
            for name in set(local_names(path.read_text())):
                places[library, name].add(str(path.relative_to(ROOT)))
    assert len(places) > 500
    assert {key: where for key, where in places.items() if len(where) > 1} == {}
