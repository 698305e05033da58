"""tools/fields.py: constants that index arrays are those of the tables, and no number indexes one."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import fields
from field_tables import blocks, indexes, tables
from kvlab.paths import ROOT

MARKED = "# fields: units\n{}# end of fields\n\n\ndef f(meta):\n    return meta[_MASK] + meta[_USED]\n"
END = "# end of fields\n"
RIGHT = MARKED.format("_MASK = const(1)\n_USED = const(6)\n")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A file in which `meta` is that of a pool of units."""
    (tmp_path / "mpy_kv" / "pools").mkdir(parents=True)
    return tmp_path


def run(root: Path, text: str, *options: str, name: str = "pools/units.py") -> Result:
    path = root / "mpy_kv" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return CliRunner().invoke(fields.main, ["--root", str(root), *options])


def test_all_files_are_as_the_tables_make_them() -> None:
    done = CliRunner().invoke(fields.main, [])
    assert done.output == ""
    assert done.exit_code == 0


@pytest.mark.parametrize(
    ("lines", "line"),
    [
        ("_MASK = const(2)\n_USED = const(6)\n", 2),
        ("_MASK = const(1)\n", 3),
        ("_MASK = const(1)\n_STEP = const(2)\n_USED = const(6)\n", 3),  # nobody uses it
        ("_USED = const(6)\n_MASK = const(1)\n", 2),
        ("", 2),
    ],
    ids=["wrong", "missing", "too many", "in another order", "none"],
)
def test_other_constants_are_refused_and_mended(lines: str, line: int, project: Path) -> None:
    done = run(project, MARKED.format(lines))
    assert done.exit_code == 1
    assert done.output.startswith(f"mpy_kv/pools/units.py:{line}: not what the tables make")
    assert run(project, MARKED.format(lines), "--write").exit_code == 0
    assert (project / "mpy_kv/pools/units.py").read_text() == RIGHT
    assert run(project, RIGHT).exit_code == 0


def test_all_fields_are_public_and_say_what_they_are(project: Path) -> None:
    run(project, "# all fields: slab, class\n# end of fields\n", "--write")
    made = (project / "mpy_kv/pools/units.py").read_text()
    assert "\nSLAB_NEXT = 0  # slab, by alloc, free: next in its list\n" in made
    assert "\nSLAB_WORDS = 6\n" in made
    assert "\nCLASS_ALIGN = 2  # bytes, by setup: of an object's place\n" in made


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("# fields: units\n_MASK = const(1)\n", "a mark of fields without its end"),
        (f"# fields: units\n# fields: slab\n{END}", "a mark of fields without its end"),
        (f"# fields: unit\n{END}", "no table 'unit': one of add, admission, attend"),
        (f"# fields: region, slab_pool\n{END}x = _SPARE\n", "_SPARE is 17 in one table, 18 in slab_pool"),
        (f"# fields: units\n{END}_N = const(0)\n", "_N is a field of a table of the file, and made again"),
        (f"# fields: units\n{END}_N, _M = 0, 1\n", "_N is a field of a table of the file, and made again"),
        (f"# all fields: units\n{END}from x import N\n", "N is a field of a table of the file, and made"),
    ],
)
def test_a_mark_that_is_none_is_refused(text: str, says: str, project: Path) -> None:
    done = run(project, text)
    assert done.exit_code == 2
    assert f"mpy_kv/pools/units.py: {says}" in done.output


POOL = "pools/region.py"
KERNEL = "kernels/viper.py"


@pytest.mark.parametrize(
    ("name", "line", "says"),
    [
        (POOL, "meta[3] = 0", "meta is indexed by a number, 3: take a field of units or region"),
        (POOL, "return self._meta[-1]", "self._meta is indexed by a number, 1"),
        (POOL, "return meta[_USED + 1]", "meta is indexed by a number, 1"),
        (POOL, "return meta[2 * k]", "meta is indexed by a number, 2"),
        (POOL, "return meta[:9]", "meta is indexed by a number, 9"),
        (POOL, "return other.pool._meta[0]", "other.pool._meta is indexed by a number, 0"),
        (POOL, "m = self._meta\n    return m[0]", "m is indexed by a number, 0"),
        (POOL, "k, m = 3, self._meta\n    return m[0]", "m is indexed by a number, 0"),
        (POOL, "m = self._meta\n    x = m\n    return x[0]", "x is indexed by a number, 0"),
        (POOL, "return node[3 * n + i]", "node is indexed by a number, 3: take a field of node"),
        (POOL, "return [meta[2] for i in k]", "meta is indexed by a number, 2"),
        (POOL, "return word[meta[2]]", "meta is indexed by a number, 2"),
        (POOL, "return meta[_FOO]", "_FOO is no field of units or region, by which meta is indexed"),
        (POOL, "return meta[T.FOO]", "FOO is no field of units or region"),
        (POOL, "return meta[_LINK]", "_LINK is no field of units or region"),
        (POOL, "return meta[_WRAP]", "_WRAP is not made here: name its table in the mark of fields"),
        (KERNEL, "return a[3]", "a is indexed by a number, 3: take a field of attend"),
        (KERNEL, "b = ptr32(a)\n    return b[3]", "b is indexed by a number, 3"),
        (KERNEL, "return ptr32(int(a) + 172)", "a number, 172, leads into a: take 4 * a field of attend"),
        (KERNEL, "return int(a) + 4 * 43", "a number, 43, leads into a"),
        (KERNEL, "return int(e) + 4 * _E_TABLE + 8", "a number, 8, leads into e"),
        (KERNEL, "return int(a) + 4 * _FOO", "_FOO is no field of attend"),
    ],
)
def test_what_is_no_field_is_refused_as_an_index(name: str, line: str, says: str, project: Path) -> None:
    tables_of = "units, region, node" if name == POOL else "attend, encode"
    text = f"# fields: {tables_of}\n# end of fields\n\n\ndef f(self, meta, a, e, n, i, k):\n    {line}\n"
    run(project, text, "--write", name=name)
    text = (project / "mpy_kv" / name).read_text()
    if "not made here" in says:
        text = text.replace("_WRAP = const(3)\n", "").replace("units, region, node", "region, node")
    done = run(project, text, name=name)
    assert done.exit_code == 1
    at = next(i for i, one in enumerate(text.splitlines(), 1) if one.strip() == line.splitlines()[-1].strip())
    assert done.output.startswith(f"mpy_kv/{name}:{at}: {says}")
    assert done.output.count("\n") == 1


@pytest.mark.parametrize(
    ("name", "line"),
    [
        (POOL, "return meta[i] + meta[_USED] + meta[_BITS]"),
        (POOL, "return node[_LINK * n + i] + word[0] + other[1]"),
        (POOL, "return meta[key[0]]"),
        (POOL, "m = word\n    return m[0]"),
        (KERNEL, "return a[_RUN] + int(a) + 4 * _RUN"),
        (KERNEL, "return int(a) + (a[_RUNS] << 2) + int(x)"),
        (KERNEL, "return ptr32(int(y) + 16)[3] + meta[3]"),
        ("eviction/fifo.py", "return a[3]"),
    ],
)
def test_what_is_an_index_of_a_field_or_of_another_array_passes(name: str, line: str, project: Path) -> None:
    tables_of = "units, region, node" if name == POOL else "attend, encode"
    text = f"# fields: {tables_of}\n# end of fields\n\n\ndef f(meta, a, e, n, i, k):\n    {line}\n"
    run(project, text, "--write", name=name)
    done = run(project, (project / "mpy_kv" / name).read_text(), name=name)
    assert done.output == ""


def test_a_name_for_an_array_is_one_in_its_function_only() -> None:
    text = "def f(self):\n    m = self._meta\n    return m\n\n\ndef g(m):\n    return m[3]\n"
    assert indexes.faults("mpy_kv/pools/units.py", text, tables.ALL) == []


def test_places_of_a_table_have_one_name_each() -> None:
    for table in tables.ALL.values():
        named = list(table.indexes())
        assert max(Counter(name for name, _, _ in named).values()) == 1, table.name
        assert max(Counter(index for _, index, _ in named).values()) == 1, table.name
        assert all(field is None or (field.unit and field.by and field.means) for _, _, field in named)


def test_every_table_is_used_and_every_pattern_finds_a_file() -> None:
    files = {path.relative_to(ROOT).as_posix(): path.read_text() for path in blocks.files(ROOT)}
    marks = re.findall(r"^# (?:all )?fields: (.+)$", "\n".join(files.values()), re.MULTILINE)
    assert set(tables.ALL) == {name for mark in marks for name in mark.split(", ")}
    for table in tables.ALL.values():
        for glob in table.arrays:
            found = [name for name in files if indexes._pattern(glob).fullmatch(name.removeprefix("mpy_kv/"))]
            assert found, (table.name, glob)


def test_the_list_has_every_field() -> None:
    said = CliRunner().invoke(fields.main, ["--list"]).output
    for table in tables.ALL.values():
        assert f"\n{table.name}: {table.means}\n" in said
        for name, index, _ in table.indexes():
            assert re.search(rf"^ +{index}  {name} ", said, re.MULTILINE), name
