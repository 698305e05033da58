"""What the documentation tells: markers, tolerances, producers, and `kvlab docs` over them."""

import json
from pathlib import Path

import pytest

from commandline import files
from commandline.errors import BadInput
from kvlab import cli
from kvlab.docs import markers, picture, registry, run
from kvlab.docs.registry import Cost, Producer, named
from kvlab.docs.tolerance import EXACT, HEAP, INSTRUCTIONS, Tolerance

PAGE = """# A page

| board | window |
|---|---|
| pico | <!-- w -->355<!-- end --> |

It takes <!-- n -->1,024<!-- end --> bytes, and <!-- w -->355<!-- end --> again.

<!-- t -->
| a | b |
|---|---|
| 1 | 2 |
<!-- end -->

    <!-- code --> is shown as it is

```
<!-- fenced -->
```

So is `<!-- this -->`.
"""


def parse(text):
    return markers.parse(text, Path("page.md"))


def test_a_page_is_read():
    assert [(f.name, f.text, f.line, f.block) for f in parse(PAGE)] == [
        ("w", "355", 5, False),
        ("n", "1,024", 7, False),
        ("w", "355", 7, False),
        ("t", "\n| a | b |\n|---|---|\n| 1 | 2 |\n", 9, True),
    ]


def test_all_but_the_figures_stays():
    text = markers.rewritten(PAGE, Path("page.md"), {"w": "40", "t": "| c |\n|---|"})
    assert text == PAGE.replace("355", "40").replace("| a | b |\n|---|---|\n| 1 | 2 |", "| c |\n|---|")
    assert markers.rewritten(PAGE, Path("page.md"), {f.name: f.text.strip() for f in parse(PAGE)}) == PAGE


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a <!-- w -->1", "page.md:1: <!-- w --> without <!-- end -->"),
        ("\na 1<!-- end -->", "page.md:2: <!-- end --> closes no figure"),
        ("a <!-- w -->1 <!-- v -->2<!-- end -->", "page.md:1: <!-- v --> within the figure w"),
        ("a <!-- w -->1\n2<!-- end -->", "page.md:1: the figure w runs over two lines"),
        ("a\r\na <!-- w -->1", "page.md:2: <!-- w --> without <!-- end -->"),
        ("a\n\nb <!--w-->1<!-- end -->", "page.md:3: <!--w--> is no marker: write <!-- w -->"),
        ("a <!-- W -->1<!-- end -->", "page.md:1: <!-- W --> is no marker: write <!-- w -->"),
        ("a <!-- w -->1<!--end-->", "page.md:1: <!--end--> is no marker: write <!-- end -->"),
        ("a <!-- w -->1<!-- End -->", "page.md:1: <!-- End --> is no marker: write <!-- end -->"),
        ("a <!--- w --->1", "page.md:1: <!--- w ---> is no marker: write <!-- w -->"),
        ("a <!--  T-T\n-->1", "page.md:1: <!-- T-T --> is no marker: write <!-- t_t -->"),
        ("a\n<!-- w -->1<!-- end --> b", "page.md:2: the figure w begins a line"),
        ("- <!-- w -->1<!-- end --> b", "page.md:1: the figure w begins a line"),
        ("<!-- t -->\n| a |<!-- end -->", "page.md:1: the figure t must end with its line"),
    ],
    ids=[
        *("open", "closed", "nested", "two lines"),
        *("of CRLF", "no spaces", "capital", "end without spaces", "End", "dashes", "over lines"),
        *("line start", "list item", "block"),
    ],
)
def test_markers_out_of_place_are_refused(text, message):
    with pytest.raises(BadInput) as refused:
        markers.parse(text, Path("page.md"), ("w", "v", "t", "t_t"))
    assert str(refused.value).startswith(message)


def test_comments_that_are_no_markers_stay():
    text = "a <!-- TODO --> <!--x--> <!-- w is here --> `<!--w-->`\n\n    <!--w-->\n"
    assert markers.parse(text, Path("page.md"), ("w",)) == []


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"], ids=["LF", "CRLF", "CR"])
def test_lines_end_as_they_did(end):
    """Also where only a part of them does; figures are compared without them."""
    page = PAGE.replace("\n", end)
    found = parse(page)
    assert [(f.name, f.text, f.line) for f in found] == [(f.name, f.text, f.line) for f in parse(PAGE)]
    new = {"w": "40", "t": "| c |\n|---|"}
    want = markers.rewritten(PAGE, Path("page.md"), new)
    assert markers.rewritten(page, Path("page.md"), new) == want.replace("\n", end)
    mixed = page + "So\n<!-- n -->\n5\n<!-- end -->\r\n"
    got = markers.rewritten(mixed, Path("page.md"), {"n": "6\n7"})
    assert got.endswith("So\n<!-- n -->\n6\n7\n<!-- end -->\r\n")


@pytest.mark.parametrize(
    ("tolerance", "told", "found", "same"),
    [
        (EXACT, "355", "355", True),
        (EXACT, "355", "356", False),
        (HEAP, "62,416 bytes", "62,928 bytes", True),
        (HEAP, "62,416 bytes", "62,929 bytes", False),
        (HEAP, "62,416 bytes", "62,416 B", False),
        (INSTRUCTIONS, "| a | 1,000 | 2.00 |", "| a | 1,005 | 1.99 |", True),
        (INSTRUCTIONS, "| a | 1,000 | 2.00 |", "| a | 1,007 | 2.00 |", False),
        (INSTRUCTIONS, "| a | 1,000 |", "| a | 1,000 | 2 |", False),
        (INSTRUCTIONS, "+1.3 %", "+2.2 %", True),
        (INSTRUCTIONS, "+1.3 %", "-1.3 %", False),
        (INSTRUCTIONS, "+1.3 %", "+2.4 %", False),
        (INSTRUCTIONS, "(0.00 % .. +0.5 %)", "(-0.01 % .. +0.5 %)", True),
        (INSTRUCTIONS, "int8-4", "int8+4", False),
        (INSTRUCTIONS, "| 16.6 |", "| 16.7 |", True),
        (INSTRUCTIONS, "| 16.6 |", "| 16.8 |", False),
        (Tolerance(absolute=1), "1 %", "1", False),
    ],
)
def test_tolerances(tolerance, told, found, same):
    assert tolerance.allows(told, found) is same


# --- the command, over pages of its own ----------------------------------------------------------


@pytest.fixture
def docs(tmp_path, monkeypatch, capfd):
    """`docs(*words)`: exit status, stdout, stderr; for `page` and three producers; `made` names runs."""
    page = tmp_path / "page.md"
    page.write_text("Room for <!-- fast -->12<!-- end -->; <!-- slow -->3.00 M<!-- end --> of work.\n")
    made = []

    def maker(name, values, cost, missing=None):
        def make(wanted):
            made.append((name, sorted(wanted)))
            return values

        tolerance = INSTRUCTIONS if cost is Cost.LONG else EXACT
        figures = named(*values, tolerance=tolerance)
        return Producer(name, f"kvlab {name}", cost, figures, make, lambda: missing)

    producers = (
        maker("quick", {"fast": "12", "other": "1"}, Cost.CHEAP),
        maker("work", {"slow": "3.01 M"}, Cost.LONG),
        maker("far", {"away": "9"}, Cost.CHEAP, "needs the download of x"),
    )
    monkeypatch.setattr(registry, "all_producers", lambda: producers)
    monkeypatch.setattr(markers, "pages", lambda: [page])
    monkeypatch.setattr(run, "stored", list)

    def call(*words):
        made.clear()
        status = cli.main(["docs", *map(str, words)])
        return (status, *capfd.readouterr())

    call.page, call.made = page, made
    return call


def test_a_check_runs_what_the_pages_tell(docs, tmp_path):
    status, out, err = docs("--check", "--json", tmp_path / "docs.json")
    assert (status, err) == (0, "")
    assert out == "not run without --all: work\n1 figures checked, 0 differ\n"
    assert docs.made == [("quick", ["fast"])]
    assert json.loads((tmp_path / "docs.json").read_text())["later"] == ["work"]


def test_a_figure_that_differs_is_named(docs):
    docs.page.write_text("Room\nfor <!-- fast -->13<!-- end -->.\n")
    status, out, err = docs("--check")
    assert status == 1
    assert "page.md:2: fast: told 13, found 12 (kvlab quick)\n" in out
    assert err == "kvlab: error: fast: not as told; `kvlab docs --write NAME` renews a figure\n"
    assert docs("--write", "fast")[0] == 0
    assert docs.page.read_text() == "Room\nfor <!-- fast -->12<!-- end -->.\n"
    assert docs("--check")[0] == 0


def test_a_check_of_all_leaves_its_date(docs):
    stamped = docs.page.read_text() + "Checked: <!-- docs_checked -->never<!-- end -->.\n"
    docs.page.write_text(stamped)
    assert docs("--check")[0] == 0
    assert docs.page.read_text() == stamped
    assert docs("--check", "--all")[0] == 0
    assert docs.made == [("quick", ["fast"]), ("work", ["slow"])]
    *_, stamp = markers.figures(docs.page)
    assert stamp.text[10:] == ", 2 figures"
    docs.page.write_text(stamped.replace("3.00", "3.10"))
    assert docs("--check", "--all")[0] == 1
    assert "never" in docs.page.read_text()


def test_what_is_within_its_tolerance_is_not_rewritten(docs):
    before = docs.page.read_text()
    assert docs("--write", "work")[:2] == (0, "1 figures made; changed: nothing\n")
    assert docs.page.read_text() == before


def test_what_cannot_run_here_is_skipped_by_name(docs):
    docs.page.write_text("So <!-- away -->8<!-- end -->.\n")
    status, out, _ = docs("--check")
    assert status == 0
    assert out.startswith("skipped: far: needs the download of x\n0 figures checked")
    assert docs.made == []


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "name one of --check, --write and --list"),
        (("--check", "fats"), 'fats: no such figure; did you mean "fast"?'),
        (("--check", "fast", "--all"), "--all: not with names"),
        (("--list", "fast"), "--list: takes no names"),
        (("--check", "--write", "fast"), "--check: not with --write; leave one of them out"),
        (("--list", "--write"), "--write: not with --list; leave one of them out"),
        (("--check", "fast", "other"), "other: no page tells it; `kvlab docs --list`"),
        (("--write", "other"), "other: no page tells it"),
        (("--check", "far"), "far: no page tells it"),
        (("--check", "away"), "away: no page tells it"),
    ],
    ids=[
        *("nothing", "unknown", "all", "list", "check and write", "write and list"),
        *("untold", "written untold", "untold family", "untold and missing"),
    ],
)
def test_bad_input(docs, words, message):
    status, out, err = docs(*words)
    assert (status, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1


@pytest.mark.parametrize("what", ["--check", "--write", "--list"])
def test_figures_do_not_overwrite_what_is_read(docs, what, tmp_path):
    """A page, by whatever name."""
    before = docs.page.read_bytes()
    (tmp_path / "link").symlink_to("page.md")
    for name in ("page.md", "link"):
        status, out, err = docs(what, "--json", tmp_path / name)
        assert (status, out, docs.made) == (2, "", [])
        assert "--json" in err
        assert "would overwrite the file of the documentation" in err
        assert docs.page.read_bytes() == before


def test_a_page_of_crlf_stays_one(docs):
    docs.page.write_bytes(b"Room\r\nfor <!-- fast -->13<!-- end -->.\r\n")
    assert docs("--write", "fast")[0] == 0
    assert docs.page.read_bytes() == b"Room\r\nfor <!-- fast -->12<!-- end -->.\r\n"


def test_a_marker_without_spaces_is_refused(docs):
    docs.page.write_text("So\nare <!--fast-->12<!-- end -->.\n")
    status, _, err = docs("--check")
    assert status == 2
    assert "page.md:2: <!--fast--> is no marker: write <!-- fast -->" in err


def test_a_link_to_nowhere_is_named_itself(docs, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "zz.md").symlink_to("nowhere")
    monkeypatch.setattr(markers, "pages", lambda: [tmp_path / "zz.md"])
    assert docs("--check")[2] == "kvlab: error: zz.md: cannot be read: No such file or directory\n"


def test_a_marker_that_nobody_makes_is_refused(docs):
    docs.page.write_text("So <!-- fsat -->8<!-- end -->.\n")
    status, _, err = docs("--check")
    assert status == 2
    assert 'page.md:1: no figure fsat; did you mean "fast"?' in err


def test_the_list_tells_where_each_stands(docs, tmp_path):
    status, out, _ = docs("--list", "--json", tmp_path / "docs.json")
    assert status == 0
    listed = {one["name"]: one for one in json.loads((tmp_path / "docs.json").read_text())["figures"]}
    assert [where.rpartition("/")[2] for where in listed["fast"]["where"]] == ["page.md:1"]
    assert (listed["slow"]["producer"], listed["slow"]["tolerance"]) == ("work", "0.5% or 1 points")
    assert listed["away"]["where"] == []
    assert "far, seconds: kvlab far (needs the download of x)" in " ".join(out.split())


# --- pictures ------------------------------------------------------------------------------------


def test_a_picture_carries_its_figures():
    from matplotlib import pyplot

    from kvlab.plots import context, heap

    def drawn(width, figures, plot=context):
        import io

        figure = pyplot.figure(figsize=(width, 1))
        made = io.BytesIO()
        figure.savefig(made, format="png")
        pyplot.close(figure)
        return picture.with_figures(made.getvalue(), figures, plot)

    told = drawn(2, {"heap": 1000})
    assert json.loads(picture.figures_of(told))["figures"] == {"heap": 1000}
    assert "drawn by" in str(picture.difference(told, drawn(2, {"heap": 1000}, heap), HEAP))
    assert picture.difference(told, drawn(3, {"heap": 1000}), EXACT) is None
    assert "1000" in str(picture.difference(told, drawn(2, {"heap": 1001}), EXACT))
    assert picture.difference(told, drawn(2, {"heap": 1001}), HEAP) is None


def test_a_file_of_constants_is_checked_by_its_lines(tmp_path, monkeypatch):
    """Line by line, within the tolerance; written only where one lies beyond it."""
    monkeypatch.setattr(run.paths, "ROOT", tmp_path)
    monkeypatch.setattr(markers, "pages", list)
    place = tmp_path / "tools/constants.json"
    place.parent.mkdir()
    made = {"tools/constants.json": b'{\n  "heap": 1500\n}\n'}
    producer = Producer(
        "constants", "kvlab x", Cost.CHEAP, named(*made, tolerance=HEAP), lambda _: made, lambda: None
    )
    monkeypatch.setattr(registry, "all_producers", lambda: (producer,))
    for name in ("constants", *made):
        with pytest.raises(BadInput, match=rf"{name}: tools/constants.json is not there: --write makes it"):
            run.check([name])
    place.write_text('{\n  "heap": 1000\n}\n')
    with files.session():
        files.prepare(place)
        with pytest.raises(BadInput, match="would overwrite the file of the documentation"):
            run.stored()
    assert run.stored() == ["tools/constants.json"]
    assert run.check().differences == []
    assert run.write().changed == []
    place.write_text('{\n  "heap": 900\n}\n')
    (difference,) = run.check().differences
    assert 'found "heap": 1500 for "heap": 900' in str(difference)
    assert run.write().changed == [place]
    assert place.read_bytes() == made["tools/constants.json"]


def test_a_group_is_written_one_after_the_other(tmp_path, monkeypatch):
    """What was made stays though a later one fails; each can be renewed alone."""
    monkeypatch.setattr(run.paths, "ROOT", tmp_path)
    monkeypatch.setattr(markers, "pages", list)

    def one(name, makes):
        path = f"tools/{name}.json"
        rest = (f"kvlab docs --write {name}", Cost.LONG, named(path), lambda _: {path: makes()})
        return Producer(name, *rest, group="constants")

    fails = one("constants_b", lambda: 1 // 0)
    monkeypatch.setattr(registry, "all_producers", lambda: (one("constants_a", lambda: b"1\n"), fails))
    (tmp_path / "tools").mkdir()
    with pytest.raises(ZeroDivisionError):
        run.write(["constants"])
    assert (tmp_path / "tools/constants_a.json").read_bytes() == b"1\n"
    assert run.write(["constants_a"]).figures == 1
    with pytest.raises(BadInput, match="constant: no such figure"):
        run.write(["constant"])


# --- what this repository tells ------------------------------------------------------------------


def test_every_figure_and_picture_has_a_producer():
    told = run.told()
    assert run.stored()
    assert {"products", "codec_costs", run.CHECKED} <= told.keys()
    for producer in registry.all_producers():
        assert producer.command.startswith(("kvlab ", "make "))
        assert producer.figures


def cheap():
    return [p.name for p in registry.all_producers() if p.cost is Cost.CHEAP]


@pytest.mark.parametrize("name", cheap())
def test_figures_that_take_seconds_are_as_told(name):
    """If not: kvlab docs --write NAME."""
    assert run.check([name]).differences == []


def minutes():
    return [p.name for p in registry.all_producers() if p.cost is Cost.MINUTES]


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", minutes())
def test_figures_that_take_minutes_are_as_told(name):
    """If not: kvlab docs --write NAME."""
    assert run.check([name]).differences == []
