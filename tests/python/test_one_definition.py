"""Types of C++ have one definition each: of two with one name the linker keeps either's functions, and no tool says so."""

import collections
import re

from conftest import ROOT

TYPE = re.compile(r"(?:struct|class|enum class|enum|union) (\w+)(?: final)?(?: :[^;{]*)? \{")
OPENS = re.compile(r"(?:inline )?namespace(?: ([\w:]+))? \{")


def named(pattern, text):
    """Qualified names of what `pattern` finds at the level of a named namespace. clang-format has laid the source out."""
    scopes = []
    for line in text.splitlines():
        if opened := OPENS.match(line):
            scopes.append(opened[1])
        elif line.startswith("}  // namespace"):
            scopes.pop()
        elif (found := pattern.match(line)) and None not in scopes:
            yield "::".join([*scopes, found[1]])


def types_of(text):
    return named(TYPE, text)


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
CONSTANT = re.compile(r"^(?:inline )?(?:constexpr|const|constinit)[^(=\n]*?(\w+)(?:\[\])?(?: =|\{)", re.M)
LOCAL_TYPE = re.compile(r"^(?:struct|class|enum class) (\w+)", re.M)
ALIAS = re.compile(r"^using (\w+) =", re.M)  # may stand twice, if it says the same
ALONE = {"runtime"}  # dtype_of, find, kTaskBytes and three more still stand twice there


def local_names(text):
    for part in LOCAL.findall(text):
        for pattern in (FUNCTION, CONSTANT, LOCAL_TYPE):
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


def open_uses(text):
    """What a file keeps to itself and also names outside of the nameless namespace, where another of that name would be as near."""
    outside = LOCAL.sub("", text)
    names = {name for part in LOCAL.findall(text) for pattern in (LOCAL_TYPE, ALIAS, CONSTANT) for name in pattern.findall(part)}
    return {name for name in names if re.search(rf"\b{name}\b(?!\()", outside)}


def test_open_uses():
    text = "namespace a {\nnamespace {\nclass Row {\n};\nstruct In {\n};\nusing P = int;\nconstexpr int kN = 1;\n}  // namespace\nint f() { return Row().n + kN; }\nRow g(P);\n}  // namespace a\n"
    assert open_uses(text) == {"Row", "P", "kN"}


INCLUDE = re.compile(r'#include "([\w/.]+)"')


def included(includes, files):
    """`files` and all that they include, by the names of the tree."""
    seen, todo = set(), list(files)
    while todo:
        if (path := todo.pop()) not in seen:
            seen.add(path)
            todo += includes[path]
    return seen


def test_a_local_name_is_not_taken_for_one_of_a_header():
    """Which files of a library are compiled together changes as files come and go; then the compiler calls such a name ambiguous."""
    texts = {str(path.relative_to(ROOT / "src")): path.read_text() for path in ROOT.glob("src/**/*.*") if path.suffix in (".h", ".cc")}
    includes = {path: [name for name in INCLUDE.findall(text) if name in texts] for path, text in texts.items()}
    libraries = collections.defaultdict(list)
    for path in texts:
        if path.endswith(".cc"):
            libraries[path.partition("/")[0]].append(path)
    found = []
    for files in libraries.values():
        seen = included(includes, files)
        assert any(path.endswith(".h") for path in seen)
        public = {name for path in seen for pattern in (TYPE, CONSTANT) for name in named(pattern, texts[path])}
        for path in files:
            scope = OPENS.search(texts[path])
            found += [(path, name) for name in sorted(open_uses(texts[path])) if f"{scope[1]}::{name}" in public]
    assert found == []
