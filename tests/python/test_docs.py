"""The documents: every link leads somewhere, every page is in the site, lines are wrapped and sentences short."""
import re
import subprocess
import sys
import unicodedata

import pytest

from conftest import ROOT, build_dir, clean_environment

PAGES = sorted(p for p in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
# In sources and help texts a page is named by its path.
NAMED = re.compile(r"(?<![\w/.-])docs/[\w/-]+\.(?:md|png)\b")


def prose(text):
    """The lines outside code blocks, with code spans emptied."""
    fenced = False
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("```"):
            fenced = not fenced
        elif not fenced and not line.startswith("    "):
            yield number, re.sub(r"`[^`]*`", "``", line)


def anchors(path):
    """The anchors of a page's headings, as GitHub and mkdocs name them."""
    found = set()
    for _, line in prose(path.read_text()):
        if line.startswith("#"):
            text = unicodedata.normalize("NFKD", line.lstrip("# ").lower())
            found.add(re.sub(r"[\s-]+", "-", re.sub(r"[^\w\s-]", "", text)).strip("-"))
    return found


def dead_links(page):
    for number, line in prose(page.read_text()):
        for target in LINK.findall(line):
            if re.match(r"[a-z]+:", target):
                continue
            file, _, anchor = target.partition("#")
            path = page.parent / file if file else page
            if not path.is_file():
                yield f"{page.relative_to(ROOT)}:{number}: {target}"
            elif anchor and path.suffix == ".md" and anchor not in anchors(path):
                yield f"{page.relative_to(ROOT)}:{number}: {target}: no such heading"


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    assert list(dead_links(page)) == []


def test_a_dead_link_is_found(tmp_path, monkeypatch):
    monkeypatch.setattr("test_docs.ROOT", tmp_path)
    (tmp_path / "b.md").write_text("# A heading\n")
    page = tmp_path / "a.md"
    page.write_text("[fine](b.md#a-heading) [gone](c.md)\n[none](b.md#other)\n\n    [code](d.md)\n`[code](e.md)`\n")
    assert list(dead_links(page)) == ["a.md:1: c.md", "a.md:2: b.md#other: no such heading"]


def test_pages_that_sources_name_are_there():
    files = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True)
    if files.returncode != 0:
        pytest.skip("not a git checkout")
    dead = []
    for name in filter(None, files.stdout.split("\0")):
        path = ROOT / name
        try:
            text = path.read_text()
        except (UnicodeDecodeError, FileNotFoundError, IsADirectoryError):
            continue
        dead += [f"{name}: {page}" for page in NAMED.findall(text) if not (ROOT / page).is_file()]
    assert dead == []


def test_every_page_is_in_the_site():
    listed = set(re.findall(r"^ +- ([\w/-]+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.M))
    there = {str(p.relative_to(ROOT / "docs")) for p in (ROOT / "docs").rglob("*.md")}
    assert listed == there


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_prose_is_wrapped(page):
    """Of tables the rows may be longer, and a transcript is what it is."""
    fenced, long = False, []
    for number, line in enumerate(page.read_text().splitlines(), 1):
        if line.lstrip().startswith("```"):
            fenced = not fenced
        if len(line) > 120 and not fenced and not line.startswith(("|", "    ")):
            long.append(f"{number}: {len(line)} columns")
    assert long == []


# A sentence ends at . ! or ? before a capital, a code span, a link or an emphasised term.
SENTENCE = re.compile(r"(?<=[.!?])[)\"'*_]* +(?=[*_]+\w|[\"'(*_]*[A-Z0-9`\[])")
MOST_WORDS = 25  # a code span counts as one, a link as its text


def blocks(text):
    """(line, text) of each paragraph and list item: no headings, tables, code, transcripts or comments."""
    fenced, start, words = False, 0, []
    for number, line in enumerate(text.splitlines() + [""], 1):
        bare = line.strip()
        if bare.startswith("```"):
            fenced, bare = not fenced, ""
        ends = fenced or not bare or bare.startswith(("|", "#", "<!--", "![")) or (line.startswith("    ") and not words)
        item = re.match(r"(?:[-*]|\d+\.) ", bare)
        if words and (ends or item):
            yield start, " ".join(words)
            words = []
        if not ends:
            start = start if words else number
            words.append(bare[item.end() :] if item else bare)


def long_sentences(text):
    for number, block in blocks(text):
        block = re.sub(r"`[^`]*`", "`x`", block)
        block = re.sub(r"!?\[([^\]]*)\]\([^)\s]*\)", r"\1", block)
        for sentence in SENTENCE.split(block):
            words = len(re.findall(r"[\w`]\S*", sentence))
            if words > MOST_WORDS:
                yield f"{number}: {words} words: {sentence}"


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_sentences_are_short(page):
    assert list(long_sentences(page.read_text())) == []


def test_a_long_sentence_is_found():
    of = lambda n: " ".join(["Word"] + ["word"] * (n - 1))
    assert list(long_sentences(f"{of(25)}.\n{of(10)} `a b c` {of(14)}. X {of(24)}\n")) == []
    assert [found.split(":")[0] for found in long_sentences(f"{of(12)}\n{of(14)}.\n\n- {of(20)}\n- {of(26)}\n")] == ["1", "5"]
    assert list(long_sentences(f"# {of(30)}\n| {of(30)} |\n\n    {of(30)}\n\n```\n{of(30)}\n```\n<!-- {of(30)} -->\n")) == []


# In C++ a sentence may begin with a name as well: made() = written() + lost().
CODE_SENTENCE = re.compile(SENTENCE.pattern + r"|(?<=[.!?]) +(?=[\w/]+(?:[_(]|::|/)\w*)")
SOURCES = subprocess.run(["git", "ls-files", "*.cc", "*.h", "*.cu", "*.cpp"], cwd=ROOT, capture_output=True, text=True).stdout.split()
COMMENT = re.compile(r"""((?:'"'|"(?:[^"\\]|\\.)*"|[^"/]|/(?!/))*)//+ ?(.*)""")


def comment_blocks(text):
    """(line, text) of each paragraph and list item of C++ comments. What is indented by two or more is an example."""
    column, start, words, listed = None, 0, [], False
    for number, line in enumerate(text.splitlines() + [""], 1):
        found = COMMENT.fullmatch(line)
        at, alone, said = (found.end(1), not found[1].strip(), found[2]) if found else (None, False, "")
        item = re.match(r" *(?:[-*]|\d+\.) ", said)
        example = said.startswith("  ") and not (words and listed)
        if words and (at != column or not alone or not said.strip() or item or example):
            yield start, " ".join(words)
            words = []
        if said.strip() and not example:
            if not words:
                start, listed = number, bool(item)
            words.append(said[item.end() :] if item else said.strip())
        column = at


def long_comment_sentences(text):
    for number, block in comment_blocks(text):
        for sentence in CODE_SENTENCE.split(re.sub(r"`[^`]*`", "`x`", block)):
            words = len(re.findall(r"[\w`]\S*", sentence))
            if words > MOST_WORDS:
                yield f"{number}: {words} words: {sentence}"


def test_sentences_of_comments_are_short():
    found = [f"{file}:{said}" for file in SOURCES for said in long_comment_sentences((ROOT / file).read_text())]
    assert found == [], "\n".join(found)


def test_a_long_sentence_of_a_comment_is_found():
    of = lambda n: " ".join(["Word"] + ["word"] * (n - 1))
    said = lambda text: [found.split(":")[0] for found in long_comment_sentences(text)]
    assert said(f"// {of(12)}\n// {of(13)}.\n// is_it() {of(24)}.\n") == []
    assert said(f"// {of(12)}\n// {of(14)}.\n") == ["1"]
    assert said(f"int x;  // {of(12)}\n        // {of(14)}\nint y;  // {of(20)}\n") == ["1"]
    assert said(f"int x;  // {of(20)}\nint y;  // {of(20)}\n//   {of(30)}\nputs(\"// {of(30)}\");\n") == []


def test_results_are_those_of_the_json():
    done = subprocess.run([sys.executable, ROOT / "bench" / "results.py", "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_readme_shows_what_the_demo_says():
    """Its lines are the report's, in their order; what the README leaves out is in between."""
    if not (ROOT / ".venv" / "bin" / "python").exists() or not (ROOT / "build" / "release" / "src" / "cli" / "opguard").exists():
        pytest.skip("scripts/demo.sh takes .venv and build/release, and they are not here")
    done = subprocess.run([ROOT / "scripts" / "demo.sh"], capture_output=True, text=True, env={**clean_environment(), "NO_COLOR": "1"})
    assert done.returncode == 0, done.stderr
    said = iter((ROOT / "build" / "demo" / "report.txt").read_text().replace(f"{ROOT}/", "").splitlines())
    shown = re.search(r"(?:^    .*\n)+", (ROOT / "README.md").read_text(), re.M)[0].splitlines()
    assert len(shown) == 9 and shown[0].startswith("    $ opguard diff "), shown
    missing = [line for line in shown[1:] if not any(line[4:] == other for other in said)]
    assert missing == []


@pytest.mark.parametrize("page", ["tutorial", "record-once", "bisect"])
def test_the_guide_shows_what_its_commands_print(page):
    done = subprocess.run([sys.executable, ROOT / "scripts" / "transcripts.py", "--check", "--build", build_dir(),
                           ROOT / "docs" / "guide" / f"{page}.md"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_variable_has_one_meaning():
    """Two features may not take the same name: the table of docs/design/architecture.md says each once."""
    text = (ROOT / "docs" / "design" / "architecture.md").read_text()
    named = [name for row in re.findall(r"^\| (`OPGUARD_.*?) \|", text, re.M) for name in re.findall(r"`(OPGUARD_\w+)", row)]
    assert len(named) > 30 and sorted(named) == sorted(set(named))
    # What the command gives the program is what its start reads.
    given = re.findall(r'"(OPGUARD_\w+)"', (ROOT / "src" / "session" / "record_program.cc").read_text())
    read = re.findall(r'"(OPGUARD_\w+)"', (ROOT / "python" / "opguard" / "load" / "startup.py").read_text())
    assert len(given) > 15 and not set(given) - set(read)
