"""The map of a fleet's ranks in headless Chromium: `opguard align --merge PART... --html`."""
import json

import pytest
from browser import Browser, chromium
from fleet_parts import write_parts

pytestmark = pytest.mark.skipif(not chromium(), reason="no Chromium: apt install chromium")
RANKS, STEPS = 400, 1000
AT_RANK, AT_STEP = 285, 750


@pytest.fixture(scope="module")
def page(tmp_path_factory, opguard):
    folder = tmp_path_factory.mktemp("fleet")
    parts = write_parts(folder, RANKS, STEPS, files=3)
    (folder / "a page").mkdir()
    (folder / "a page" / f"rank-{AT_RANK}.html").write_text("")
    done = opguard("align", "--merge", *parts, "--html", folder / "fleet.html", "--pages", folder / "a page", "--json", folder / "fleet.json")
    assert done.returncode == 1, done.stderr
    with Browser(width=1280, height=900) as browser:
        browser.told, browser.json = done.stdout, json.loads((folder / "fleet.json").read_text())
        browser.open(folder / "fleet.html")
        yield browser
        assert browser.errors == [] and browser.requests == [(folder / "fleet.html").resolve().as_uri()]


def colour(page, rank, step):
    """Of the pixel in the middle of a rank's step, by the legend's names."""
    return page.evaluate(f"""(() => {{
        draw();
        const row = order.indexOf({rank}), x = Math.round(xOf({step} + 0.5) * devicePixelRatio), y = Math.round(yOf(row + 0.4) * devicePixelRatio);
        const [r, g, b] = pen.getImageData(x, y, 1, 1).data, seen = `rgb(${{r}}, ${{g}}, ${{b}})`;
        return KINDS.find((name) => getComputedStyle(document.querySelector('.legend i.' + name)).backgroundColor === seen) ?? seen;
    }})()""")


def test_the_terminal_and_the_page_say_the_same(page):
    said = page.evaluate("document.body.innerText")
    assert page.told.startswith(f"diverged: it began on rank {AT_RANK}\n") and f"diverged: it began on rank {AT_RANK}\n" in said
    assert page.json["rank"] == AT_RANK and page.json["pivot"]["step"] == AT_STEP and page.json["open"] == 4
    for line in ("rank 285: began here", "ranks 280-284, 286, 287: received from rank 285 by", "group tp 280-287, number", "nothing can be told: run b has no log of it"):
        assert line in page.told and line in said


def test_each_rank_has_its_colour(page):
    page.evaluate("document.getElementById('origin').click()")
    assert [colour(page, AT_RANK, s) for s in (AT_STEP - 2, AT_STEP, AT_STEP + 2)] == ["equal", "origin", "origin"]
    assert colour(page, AT_RANK + 1, AT_STEP) == "received"
    assert [colour(page, AT_RANK + 10, s) for s in (AT_STEP, AT_STEP + 1)] == ["equal", "received"]
    assert page.evaluate("document.getElementById('here').textContent").startswith(f"rank {AT_RANK}, step {AT_STEP}: began here: train.py:12")


def test_one_of_many_on_a_row_of_pixels_is_seen(page):
    page.evaluate("whole(); view.height = count; map.style.height = '240px'; fit(); draw()")
    ranks = page.evaluate("[...Array(Math.floor(size.height - TOP)).keys()].map((y) => data.rank[seenAt(y)])")
    assert AT_RANK in ranks and len(ranks) < RANKS
    page.evaluate("map.style.height = ''; fit()")


def test_wheel_keys_and_order(page):
    page.evaluate("whole()")
    before = page.evaluate("view.width")
    page.evaluate("""map.dispatchEvent(new WheelEvent('wheel', {deltaY: -200, clientX: 600, clientY: 400, cancelable: true}))""")
    assert page.evaluate("view.width") < before
    x = page.evaluate("view.x")
    page.evaluate("map.dispatchEvent(new KeyboardEvent('keydown', {key: 'ArrowRight', cancelable: true}))")
    assert page.evaluate("view.x") > x
    page.evaluate("map.dispatchEvent(new KeyboardEvent('keydown', {key: '0', cancelable: true}))")
    assert page.evaluate("view.width") == STEPS
    page.evaluate("const order_ = document.getElementById('order'); order_.value = 'step'; order_.dispatchEvent(new Event('change'))")
    assert page.evaluate("data.rank[order[0]]") in (50, 150, 250, 350)  # what cannot be told has no step
    assert page.evaluate("order.map((one) => data.rank[one]).indexOf(285)") < 12


def test_ranks_by_the_groups_that_the_program_named(page):
    choose = "(() => { const by = document.getElementById('order'); by.value = '%s'; by.dispatchEvent(new Event('change')); })()"
    assert page.evaluate("[...document.querySelectorAll('#groups option')].map((one) => one.textContent)") == ["dp", "tp"]
    page.evaluate(choose % "group dp")
    assert page.evaluate("order.slice(0, 51).map((one) => data.rank[one])") == [*range(0, 400, 8), 1]
    assert page.evaluate("edges") == list(range(50, 400, 50))
    page.evaluate("tell(order[0], 3)")
    assert page.evaluate("document.getElementById('here').textContent") == "rank 0, dp 0-392/8, step 3: equal; from step 751 on: " + page.evaluate("data.texts[data.text[0]]")
    page.evaluate(choose % "group tp")
    assert page.evaluate("order.map((one) => data.rank[one])") == list(range(400)) and page.evaluate("edges.length") == 49
    page.evaluate(choose % "rank")
    assert page.evaluate("edges") == []


def test_a_rank_is_opened_operator_by_operator(page):
    own = "document.getElementById('own')"
    page.evaluate("document.getElementById('origin').click()")
    assert page.evaluate(f"[{own}.hidden, {own}.textContent]") == [False, f"rank {AT_RANK}, operator by operator"]
    assert page.evaluate(f"{own}.href").endswith(f"/a%20page/rank-{AT_RANK}.html")
    page.evaluate("pick(0)")
    assert page.evaluate(f"[{own}.hidden, {own}.hasAttribute('href')]") == [True, False]
