"""The HTML report in headless Chromium: real clicks and keys; hostile text stays text; nothing is loaded."""
import re
import subprocess

import pytest
from browser import Browser, chromium
from report_logs import MODEL_VALUE, OUT, IN, Runs, runs, sides, slot, write_logs  # noqa: F401 (a fixture)

pytestmark = pytest.mark.skipif(not chromium(), reason="no Chromium: apt install chromium")


@pytest.fixture(scope="module")
def browser():
    with Browser(height=1400) as running:
        yield running


def text(browser, selector):
    return browser.evaluate(f"document.querySelector({selector!r})?.innerText")


def rows(browser, names=""):
    """What the rows in sight say, top down."""
    return browser.evaluate(f"""[...document.querySelectorAll('#rows .row{names}')].filter(e => e.checkVisibility())
        .sort((x, y) => x.place - y.place).map(e => e.innerText.replace(/\\s+/g, ' ').trim().replaceAll(' :', ':'))""")


@pytest.fixture
def page(runs, tmp_path, browser):  # noqa: F811
    path = tmp_path / "report.html"
    done = runs.compare("--html", path)
    assert done.returncode == 1, done.stderr
    browser.open(path)
    yield browser
    assert browser.errors == []
    assert browser.requests == [path.resolve().as_uri()]


def test_the_pivots_row_is_on_the_first_screen(runs, tmp_path):  # noqa: F811
    """Of a window of 1440 x 900, unscrolled; a click on it leads to its place in the list."""
    path = tmp_path / "report.html"
    runs.compare("--html", path)
    with Browser(width=1440, height=900) as page:
        page.open(path)
        shown = page.evaluate("""[...document.querySelectorAll('.around .row')].map(e => ({
            first: e.classList.contains('first'), op: e.querySelector('.op').textContent, top: e.getBoundingClientRect().top,
            bottom: e.getBoundingClientRect().bottom, high: document.elementFromPoint(300, e.getBoundingClientRect().top + 8).closest('.row') === e}))""")
        pivot = [row for row in shown if row["first"]]
        assert len(pivot) == 1 and 3 <= len(shown) <= 5 and page.evaluate("scrollY") == 0
        assert all(0 < row["top"] < row["bottom"] <= 900 and row["high"] for row in shown), shown
        assert [row["top"] for row in shown] == sorted({row["top"] for row in shown})
        page.evaluate("document.querySelector('.around .row.first').click()")
        assert page.evaluate("document.querySelector('#rows .row.selected .op').textContent") == pivot[0]["op"]
        assert page.errors == []


def test_summary_shows_pivot_with_both_sources(page):
    summary = text(page, "#summary")
    assert summary.startswith("diverged")
    assert "model.matmul:aaaa" in summary
    assert "certified equal" in summary and "step 0" in summary
    assert "return weights * 2" in summary
    marks = page.evaluate("[...document.querySelectorAll('#summary .sides mark')].map(e => e.textContent)")
    assert marks == ["q @ k", "q @ k"]
    assert text(page, "#summary .sides").count("has no such operator") == 0
    # Each row of carets stands exactly under what it marks.
    assert page.evaluate("""[...document.querySelectorAll('#summary mark')].every(mark => {
        const caret = mark.closest('div').nextSibling.querySelector('.caret');
        const range = document.createRange();
        range.setStart(caret.firstChild, caret.textContent.indexOf('^'));
        range.setEnd(caret.firstChild, caret.textContent.length);
        const a = mark.getBoundingClientRect(), b = range.getBoundingClientRect();
        return Math.abs(a.left - b.left) < 1 && Math.abs(a.right - b.right) < 1;
    })""")
    differs = page.evaluate("[...document.querySelectorAll('#summary .slots .unlike')].map(e => e.textContent)")
    assert len(differs) == 2 and all(re.fullmatch("[0-9a-f]{8}:[0-9a-f]{8}", value) for value in differs)
    # What it means comes before the digits, all of which the tooltip has.
    assert re.search(r"out0\s+other values\s+a\s+float32\[4, 8\]\s+[0-9a-f]{8}:", text(page, "#summary .slots"))
    titles = page.evaluate("[...document.querySelectorAll('#summary .slots .unlike')].map(e => e.title)")
    assert all(re.match("[0-9a-f]{16}:[0-9a-f]{16}: every event", title) for title in titles)


def test_header_says_what_made_it_and_of_what(page):
    made = text(page, "#summary .made")
    assert made.startswith("opguard 0.") and re.search(r"\d+ \w+ 20\d\d, \d\d:\d\d UTC", made) and "opguard align " in made
    assert re.fullmatch(r"A a\s+B b", text(page, "#summary .runs").strip())


def test_nothing_is_clipped_or_covers_itself(page):
    """With the panel open at any width: the header's columns apart, fingerprints within the panel, cut text with a tooltip."""
    for width in (1440, 1000, 520):
        page.send("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
        page.key("p")
        assert page.evaluate("""[...document.querySelectorAll('#columns > span')].every((e, i, all) => {
            const range = document.createRange();
            range.selectNodeContents(e);
            const drawn = Math.min(range.getBoundingClientRect().right, e.getBoundingClientRect().right - parseFloat(getComputedStyle(e).paddingRight));
            return i + 1 === all.length || drawn <= all[i + 1].getBoundingClientRect().left - (i === 0 ? 4 : 0);
        })"""), width
        assert page.evaluate("""(() => { const edge = document.querySelector('#details').getBoundingClientRect().right;
            return [...document.querySelectorAll('#details .slots td')].every(e => e.getBoundingClientRect().right <= edge - 8); })()"""), width
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), width
        assert page.evaluate("""[...document.querySelectorAll('.row .op, .row .file, #here')].filter(e => e.checkVisibility() && e.scrollWidth > e.clientWidth)
            .every(e => e.closest('[title]'))"""), width
        page.key("Escape")
    page.send("Emulation.setDeviceMetricsOverride", width=1280, height=1400, deviceScaleFactor=1, mobile=False)


def test_generator_states_are_background(runs, tmp_path, browser):  # noqa: F811
    """The first row differs, as seeds do: it is grey, and neither `n` nor the strip names it."""
    both = Runs(tmp_path / "states", runs.opguard)
    both.folder.mkdir()
    specs = sides(both.folder)
    for side, spec in specs.items():
        spec["processes"][0]["events"].insert(0, {"boundary": "<state>", "kind": 6, "phase": 0, "step": 0, "occurrence": 0, "micro_batch": 0,
                                                  "slots": [slot(IN, 70000 + (side == "b"), "python", dtype="uint8", shape=(5056,))]})
    path = tmp_path / "states.html"
    assert both.write(**specs).compare("--html", path).returncode == 1
    browser.open(path)
    assert [row.split()[:5] for row in rows(browser, ".background")] == [["step", "0", "forward", "<state>", "<state>"]]
    assert browser.evaluate("lanes[0].differs(0)") and len(rows(browser, ".later")) == 13
    browser.key("n")
    assert selected(browser) == 8
    assert browser.errors == []


def test_expression_over_several_lines_is_marked_whole(page):
    page.key("/")
    page.type(".mean")
    page.key("Enter")
    marks = page.evaluate("[...document.querySelectorAll('#details .source')[0].querySelectorAll('mark')].map(e => e.textContent)")
    assert marks == ["x.mean(", "dim=-1,", ")"]
    assert "in müller" in text(page, "#details")


def test_rows_are_linked_and_coloured(page):
    assert len(rows(page)) == 22
    assert rows(page, ".first") == ["step 1 forward model.py:5 @ float32[4, 8] ≠ model.py:5 @ float32[4, 8]"]
    assert rows(page, ".only-b") == ["model.py:5 .to bfloat16[4, 8]"]
    assert len(rows(page, ".equal")) == 7
    assert len(rows(page, ".later")) == 13


def test_click_shows_source_and_details(page):
    page.click("#rows .row.later .op", "torch.softmax")
    details = text(page, "#details")
    assert "model.softmax:bbbb" in details and "inputs differ" in details and "forward, step 1" in details
    assert "weights = torch.softmax(scores, dim=-1)" in details
    assert "dim=-1" in details and "float32[4, 8]" in details
    assert "event 8" in details and "event 9" in details
    assert "5000 ns" in details
    page.click("#details h2 .jump")
    assert not page.evaluate("document.querySelector('#details').checkVisibility()")


def selected(page):
    return page.evaluate("view.selected")


def test_keyboard(page):
    page.key("j")
    assert selected(page) == 0
    page.key("j"), page.key("ArrowDown")
    assert selected(page) == 2
    page.key("k"), page.key("ArrowUp")
    assert selected(page) == 0
    page.key("n")
    assert selected(page) == 7
    page.key("n")
    assert selected(page) == 8
    page.key("N")
    assert selected(page) == 7
    assert "pivot: results differ" in text(page, "#details")
    page.key("Escape")
    assert selected(page) == -1 and not page.evaluate("document.querySelector('#details').checkVisibility()")
    page.key("p")
    assert selected(page) == 7
    page.key("d")
    assert page.evaluate("document.querySelector('#only').checked")
    page.key("?")
    assert page.evaluate("document.querySelector('#help').open")
    page.key("Escape")
    assert not page.evaluate("document.querySelector('#help').open")


def test_search_finds_operators_places_arguments_and_values(page):
    page.key("/")
    page.type("softmax")
    assert len(rows(page)) == 3
    assert text(page, "#count") == "3 of 22"
    page.key("Enter")
    assert selected(page) == 1
    page.key("Escape")
    assert len(rows(page)) == 22
    for words, count in (("model.py:7", 6), ("MulBackward0", 3), ("lr=0.1", 3), ("model.py:5 matmul", 3), ("nowhere", 0)):
        page.evaluate(f"search({words!r})")
        page.settle()
        assert len(rows(page)) == count, words
    assert "No event passes" in text(page, "#rows")
    page.key("Escape")
    # A fingerprint leads to everyone who holds that value: what made it and what read it.
    page.click("#summary .slots .unlike")
    assert rows(page, ".first") == ["step 1 forward model.py:5 @ ≠ model.py:5 @"]
    assert len(rows(page)) == 2


def test_filters(page):
    page.click("#only")
    assert len(rows(page)) == 15
    page.evaluate("document.querySelector('#step').value = '1'; document.querySelector('#step').dispatchEvent(new Event('change'))")
    page.settle()
    assert len(rows(page)) == 8
    page.evaluate("document.querySelector('#phase').value = '2'; document.querySelector('#phase').dispatchEvent(new Event('change'))")
    page.settle()
    assert len(rows(page)) == 1
    # The pivot is shown whatever the filters say.
    page.key("p")
    assert selected(page) == 7 and len(rows(page)) == 22


def test_overview_leads_to_the_place_clicked(runs, tmp_path, browser):  # noqa: F811
    both = Runs(tmp_path / "ranks", runs.opguard)
    both.folder.mkdir()
    both.write(**sides(both.folder, ranks=2, steps=60))
    path = tmp_path / "ranks.html"
    assert both.compare("--html", path).returncode == 1
    browser.open(path)
    assert browser.evaluate("document.querySelector('#rank').options.length") == 2
    assert "first difference" in text(browser, "#summary")
    before = browser.evaluate("view.lane")
    box = browser.evaluate("(() => { const b = document.querySelector('#overview canvas').getBoundingClientRect(); return [b.left, b.top, b.width, b.height]; })()")
    for kind in ("mousePressed", "mouseReleased"):
        browser.send("Input.dispatchMouseEvent", type=kind, x=box[0] + box[2] * .9, y=box[1] + box[3] * (.75 if before == 0 else .25), button="left", clickCount=1)
    browser.settle()
    assert browser.evaluate("view.lane") == 1 - before
    assert browser.evaluate("rowAt(drawn[0])") > 300
    assert browser.errors == []


def test_identical_runs_and_no_rows(tmp_path, opguard, browser):
    both = Runs(tmp_path, opguard).write(**sides(tmp_path, change=0, extra=False))
    path = tmp_path / "same.html"
    assert both.compare("--html", path).returncode == 0
    browser.open(path)
    assert text(browser, "#summary").startswith("identical")
    assert len(rows(browser, ".equal")) == len(rows(browser)) == 21
    browser.key("n"), browser.key("p")
    assert selected(browser) == -1 and browser.errors == []
    empty = {"processes": [{"locations": [], "events": []}]}
    nothing = Runs(tmp_path / "nothing", opguard)
    nothing.folder.mkdir()
    nothing.write(a=empty, b=empty).compare("--html", path)
    browser.open(path)
    assert text(browser, "#summary").startswith("inconclusive") and browser.errors == []


def test_paper_has_the_pivot_and_its_neighbours(page):
    page.send("Page.printToPDF")
    page.send("Emulation.setEmulatedMedia", media="print")
    assert page.evaluate("document.querySelector('#paper .row.first').checkVisibility()")
    assert not page.evaluate("document.querySelector('#bar').checkVisibility()")
    page.send("Emulation.setEmulatedMedia", media="")


def test_many_rows_are_few_elements(tmp_path, opguard, browser):
    subprocess.run([write_logs(), "--pairs", "30000", "1", tmp_path / "a", tmp_path / "b"], check=True)
    path = tmp_path / "many.html"
    assert opguard("align", tmp_path / "a", tmp_path / "b", "--html", path).returncode == 1
    browser.open(path)
    assert browser.evaluate("lanes[0].size") > 30000
    assert browser.evaluate("document.querySelectorAll('*').length") < 2000
    browser.evaluate("window.scrollTo(0, 1e9)")
    browser.settle()
    assert browser.evaluate("rowAt(drawn[1] - 1) === lanes[0].size - 1")
    browser.key("p")
    assert browser.evaluate("document.querySelector('.row.first.selected').getBoundingClientRect().top") > 60


# ---- Hostile text.

CORES = (
    "</script><script>window.hit=1</script>", "</SCRIPT ><img src=x onerror=window.hit=1>", "<!--<script>", "--><script>window.hit=1</script>",
    "]]><svg onload=window.hit=1>", "<img src=//evil.example/x.png>", "<iframe src=javascript:window.parent.hit=1>", "<style>*{display:none}</style>",
    "<link rel=stylesheet href=//evil.example/x.css>", "<meta http-equiv=refresh content='0;url=//evil.example'>", "<base href=//evil.example/>",
    "javascript:window.hit=1", "data:text/html,<script>window.hit=1</script>", "\"onmouseover=\"window.hit=1", "'onfocus='window.hit=1' autofocus='",
    "{{script}}", "{{data}}", "{{style-digest}}", "${window.hit=1}", "{{constructor.constructor('window.hit=1')()}}",
    "\\u003cscript>window.hit=1\\u003c/script>", "\\\";window.hit=1;//", "\u2028window.hit=1\u2029", "&lt;script&gt;window.hit=1&lt;/script&gt;",
    "<details open ontoggle=window.hit=1>", "<math><mi//xlink:href=\"javascript:window.hit=1\">", "<object data=//evil.example>", "<embed src=//evil.example>",
    "<form action=//evil.example><input name=x autofocus onfocus=window.hit=1>", "<a href=javascript:window.hit=1 id=search name=data>x</a>",
    "__proto__", "constructor", "<template><script>window.hit=1</script></template>", "\x00\x1b[31m\x07", "\u202eevil\u2066", "\ufeff<\u0000script>window.hit=1",
    "<video src=//evil.example/v autoplay>", "<portal src=//evil.example>", "`;window.hit=1;`", "%3Cscript%3Ewindow.hit=1%3C/script%3E",
)
WRAPS = ("{}", "\"'>{}", "</pre></td></title>{}", "a\n{}\r\n\t", "x" * 300 + "{}")
PAYLOADS = [wrap.format(core) if "{" not in core else wrap.replace("{}", core) for core in CORES for wrap in WRAPS]


def test_hostile_text_stays_text(tmp_path, opguard, browser):
    assert len(PAYLOADS) == 200
    specs = sides(tmp_path)
    for side, spec in specs.items():
        process = spec["processes"][0]
        process["settings"] = [[payload, payload + side] for payload in PAYLOADS[:40]] + [["torch", PAYLOADS[0] + side]]
        step = process["events"][-1]["step"]
        for i, payload in enumerate(PAYLOADS):
            boundary = {"hex": (payload + f":{i:04d}").encode().hex() + "ff"}
            source = tmp_path / f"tree_{side}" / f"hostile{i}.py"
            source.write_text(f"x = 1\n{payload}\ny = 2\n", newline="")
            process["locations"].append({"boundary": boundary, "file": payload, "path": str(source), "line": 2, "column": 0, "text": payload.split("\n")[0],
                                         "callee": payload, "function": payload, "package": payload})
            process["events"].append({
                "boundary": boundary, "step": step, "scalars": payload + side, "results": payload, "node": payload, "kind": i % 2, "group": payload,
                "slots": [slot(IN, 90000 + i, payload), slot(OUT, 91000 + i + (side == "b"), payload, dtype=payload[:50]) | {"device": payload[:20]}]})
    folder = tmp_path / "<img src=x onerror=window.hit=1>"
    folder.mkdir()
    both = Runs(folder, opguard).write(**specs)
    path = tmp_path / "hostile.html"
    done = both.compare("--html", path)
    assert done.returncode == 1, done.stderr
    raw = path.read_text()
    assert raw.count("<script") == 2 and raw.count("</script") == 2
    browser.dialogs.clear()
    browser.open(path)
    count = browser.evaluate("lanes[0].size")
    assert count == 22 + 200
    # Every row is shown with its details, and every value is searched for.
    shown = browser.evaluate("""(() => {
        let all = '';
        for (let row = 0; row < lanes[0].size; ++row) { select(row, true); all += document.body.textContent; }
        data.sites[1].forEach((site, i) => { if (i % 5 === 0) search(site.op); });
        search('');
        return all.length;
    })()""")
    assert shown > 10000
    browser.send("Page.printToPDF")
    browser.settle()
    assert browser.evaluate("typeof window.hit") == "undefined"
    assert browser.evaluate("document.querySelectorAll('script').length") == 2
    foreign = "img, iframe, svg, math, object, embed, link, base, form, a, video, portal, template, style:not(head style), [onclick], [onerror]"
    assert browser.evaluate(f"document.querySelectorAll({foreign!r}).length") == 0
    assert browser.dialogs == [] and browser.errors == []
    assert browser.requests == [path.resolve().as_uri()]
    # What would hide or turn text is spelled out.
    everything = browser.evaluate("JSON.stringify(data)")
    assert "\u202e" not in everything and "\x1b" not in everything
    assert "\\\\u202eevil" in everything


def test_policy_refuses_what_is_not_the_page(page):
    """The policy itself works: a script or a request that slipped in would be stopped."""
    page.evaluate("""(() => {
        const script = document.createElement('script');
        script.textContent = 'window.hit = 1';
        document.body.append(script);
        const handler = document.createElement('div');
        handler.setAttribute('onclick', 'window.hit = 2');
        document.body.append(handler);
        handler.click();
        return fetch('http://localhost:1/').then(() => { window.hit = 3; }, () => 0);
    })()""")
    assert page.evaluate("typeof window.hit") == "undefined"
    assert len(page.errors) >= 3
    page.errors.clear()
    page.requests[:] = page.requests[:1]
