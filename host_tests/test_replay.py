"""`kvlab replay`: misses known beforehand, the best possible, sizes, odd files, and the device's victims."""

from __future__ import annotations

import gzip
import json
import os
import random
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import policies as device
import pytest

from commandline.errors import BadInput
from kvlab.replay import catalogue, optimal, runs, source
from kvlab.replay.keys import Numbering
from mpy_kv import eviction

TEXTBOOK = (1, 2, 3, 4, 1, 2, 5, 1, 2, 3, 4, 5)
ONLINE = tuple(catalogue.POLICIES)


def accesses(keys: Sequence[int], sizes: Sequence[int] | None = None) -> source.Accesses:
    ids = Numbering().numbers(np.array(keys, np.int64))
    held = None if sizes is None else np.array(sizes, np.int32)
    return source.Accesses("t", "keys", "objects", ids, held, int(ids.max()) + 1)


def misses(found: dict[str, dict[str, Any]], name: str) -> list[int]:
    return [each["misses"] for each in found[name].values()]


# --- by hand -------------------------------------------------------------------------------------


def test_the_textbook_trace() -> None:
    found = runs.replay(accesses(TEXTBOOK), runs.NAMES, (3, 4, 5))
    assert misses(found, "fifo") == [9, 10, 5]
    assert misses(found, "lru") == [10, 8, 5]
    assert misses(found, "lfu") == [10, 8, 5]
    assert misses(found, "optimal") == [7, 6, 5]


def test_a_loop_larger_than_the_cache() -> None:
    """Optimal keeps four of five, and every miss takes the place of one."""
    found = runs.replay(accesses(list(range(5)) * 10), ("lru", "optimal"), (4, 5))
    assert [each["hits"] for each in found["lru"].values()] == [0, 45]
    assert [each["hits"] for each in found["optimal"].values()] == [34, 45]


def test_sizes() -> None:
    """X, larger than the whole, is never admitted and evicts nothing; of exactly 100, it evicts both."""
    a, b, x = 0, 1, 2
    small = accesses((a, b, x, a, b), (60, 30, 150, 60, 30))
    for name, found in runs.replay(small, runs.NAMES, (100,)).items():
        assert (found["100"]["hits"], found["100"]["misses"], found["100"]["evictions"]) == (2, 3, 0), name
        assert found["100"]["refused"] == 1
    full = accesses((a, b, x, x, a), (60, 30, 100, 100, 60))
    for name, found in runs.replay(full, ("fifo", "lru", "lfu", "sieve"), (100,)).items():
        assert (found["100"]["hits"], found["100"]["evictions"]) == (1, 3), name


def test_another_size_is_another_object() -> None:
    found = runs.replay(accesses((0, 0, 0, 1), (60, 70, 70, 30)), ("lru",), (100,))["lru"]["100"]
    assert (found["hits"], found["evictions"], found["replaced"]) == (1, 0, 1)


# --- what holds always ---------------------------------------------------------------------------


def best_possible(keys: Sequence[int], capacity: int) -> int:
    """Hits, by looking through the future at each eviction."""
    held: set[int] = set()
    hits = 0
    for t, key in enumerate(keys):
        if key in held:
            hits += 1
            continue
        if len(held) == capacity:
            rest = list(keys[t + 1 :])
            held.remove(max(held, key=lambda each: rest.index(each) if each in rest else len(keys)))
        held.add(key)
    return hits


def test_a_hundred_random_traces() -> None:
    rng = random.Random(5)
    for _ in range(100):
        keys = [int(12 * rng.random() ** 2) for _ in range(80)]
        trace = accesses(keys)
        found = runs.replay(trace, runs.NAMES, range(1, 10))
        best = [each["hits"] for each in found["optimal"].values()]
        assert best == [best_possible(keys, capacity) for capacity in range(1, 10)]
        for name, by_capacity in found.items():
            for capacity, each in by_capacity.items():
                assert each["hits"] <= found["optimal"][capacity]["hits"], name
                assert each["hits"] + each["misses"] == each["accesses"] == 80
                held = min(int(capacity), trace.distinct)
                assert each["evictions"] == each["misses"] - held
        for name in ("lru", "optimal"):
            hits = [each["hits"] for each in found[name].values()]
            assert hits == sorted(hits)


@pytest.mark.parametrize("name", ONLINE)
def test_victims_are_those_of_the_policy_object(name: str) -> None:
    """The same 3,000 accesses through the class in CPython."""
    rng = random.Random(3)
    trace = accesses([int(200 * rng.random() ** 3) for _ in range(3000)])
    victims = np.full(len(trace), -1, np.int32)
    figures = runs.of_policy(trace, name, 20, None, lambda _: None, victims)
    options = runs.policy_options(trace, name, 20, None)
    cache = device.Cache(eviction.make(name, 20, **options), 20)
    for key in trace.ids.tolist():
        cache.access(key)
    assert victims[victims >= 0].tolist() == cache.victims
    assert figures["hits"] == cache.hits > 500
    assert figures["evictions"] == len(cache.victims) > 500


@pytest.mark.parametrize("name", ONLINE)
def test_objects_of_size_one_are_objects_of_one_size(name: str) -> None:
    """The loop for sizes, against the other one."""
    rng = random.Random(4)
    keys = [int(100 * rng.random() ** 2) for _ in range(2000)]
    alike, sized = accesses(keys), accesses(keys, [1] * 2000)
    want = runs.replay(alike, (name,), (7, 30))[name]
    got = runs.replay(sized, (name,), (7, 30))[name]
    for capacity in ("7", "30"):
        assert {key: got[capacity][key] for key in want[capacity]} == want[capacity]
        assert got[capacity]["refused"] == got[capacity]["replaced"] == 0


def naive_sized(keys: Sequence[int], sizes: Sequence[int], capacity: int) -> tuple[int, int]:
    """(hits, evictions) of LRU."""
    held: dict[int, int] = {}
    hits = evictions = 0
    for key, size in zip(keys, sizes, strict=True):
        old = held.pop(key, None)
        if old == size:
            hits += 1
        elif size > capacity:
            continue
        while sum(held.values()) + size > capacity:
            held.pop(next(iter(held)))
            evictions += 1
        held[key] = size
    return hits, evictions


def test_sizes_against_a_naive_lru() -> None:
    rng = random.Random(9)
    keys = [int(40 * rng.random() ** 2) for _ in range(3000)]
    sizes = [1 + 13 * key % 29 + (rng.random() < 0.02) for key in keys]
    for capacity in (5, 28, 60, 200, 10_000):
        found = runs.replay(accesses(keys, sizes), ("lru",), (capacity,))["lru"][str(capacity)]
        assert (found["hits"], found["evictions"]) == naive_sized(keys, sizes, capacity)


# Of two million requests to 100,000 keys under Zipf's law (exponent 1), with 10,000 entries, by libCacheSim.
PUBLISHED = {
    "fifo": 0.2996,
    "lru": 0.2637,
    "lfu": 0.2191,
    "sieve": 0.2190,
    "s3fifo": 0.2170,
    "optimal": 0.1521,
}


def test_miss_ratios_are_those_that_others_measure() -> None:
    chances = np.cumsum(1 / np.arange(1, 100_001))
    drawn = np.random.default_rng(42).random(2_000_000) * chances[-1]
    ids = Numbering().numbers(np.searchsorted(chances, drawn))
    trace = source.Accesses("zipf", "keys", "objects", ids, None, int(ids.max()) + 1)
    found = runs.replay(trace, tuple(PUBLISHED), (10_000,))
    for name, ratio in PUBLISHED.items():
        assert found[name]["10000"]["miss_ratio"] == pytest.approx(ratio, abs=0.0015), name


def test_keys_are_numbered_as_they_come() -> None:
    rng = np.random.default_rng(2)
    keys = rng.integers(0, 1 << 60, 90_000)[rng.integers(0, 90_000, 400_000)]
    keys[:3] = 0, (1 << 63) - 1, 0
    known: dict[int, int] = {}
    want = [known.setdefault(key, len(known)) for key in keys.tolist()]
    numbering = Numbering()
    got = [number for part in np.array_split(keys, 7) for number in numbering.numbers(part).tolist()]
    assert got == want
    assert numbering.distinct == len(known)


def test_next_uses() -> None:
    assert optimal.next_uses(np.array([0, 1, 0, 2, 1], np.int32), 3).tolist() == [2, 4, 5, 5, 5]


# --- files ---------------------------------------------------------------------------------------


def read(tmp_path: Path, text: str | bytes, **how: Any) -> source.Accesses:
    path = tmp_path / "trace.txt"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return source.read(path, **how)


@pytest.mark.parametrize(
    ("text", "ids", "sizes"),
    [
        ("a\nb\na\n", [0, 1, 0], None),
        ("a\r\nb\r\na", [0, 1, 0], None),
        ("# made by hand\n\n7\n007\n7\n", [0, 1, 0], None),  # keys are text
        ("\ufeffa,1\nb,2\na,1", [0, 1, 0], [1, 2, 1]),
        ("key\na\nb", [0, 1], None),
        ("time,Key,Size\n9,a,10\n3,b,20\n3,a,10\n", [0, 1, 0], [10, 20, 10]),  # times are not looked at
        ("size,obj_id\n10,a\n", [0], [10]),
        ('key,size\n"a,b",5\na,6\n', [0, 1], [5, 6]),
        ("id,op\nx,get\ny,put\n", [0, 1], None),
        pytest.param(gzip.compress(b"a\nb\n", mtime=0), [0, 1], None, id="gzip"),
        pytest.param(gzip.compress(b"a;1\rb;2\r", mtime=0), [0, 1], [1, 2], id="gzip of semicolons and CR"),
        ("a\rb\ra\r", [0, 1, 0], None),  # each kind of line end, and all in one file
        ("a\rb\r\nc\n\n\r\ra", [0, 1, 2, 0], None),
        ("a;1\nb;2\na;1\n", [0, 1, 0], [1, 2, 1]),
        ("a\t1\nb\t2\na\t1\n", [0, 1, 0], [1, 2, 1]),
        ("a|1\nb|2\na|1\n", [0, 1, 0], [1, 2, 1]),
        ("key;size\na;1\nb,c;2\n", [0, 1], [1, 2]),  # what is between the names is between the columns
        ("key,size\na|b;c,1\n", [0], [1]),
        ("sep=;\nkey;size\na;1\n", [0], [1]),
        ("sep=;\na,b;1\n", [0], [1]),
        ('"key"\t"size"\n"a\tb"\t5\n', [0], [5]),
        ('"a;b"\n"a;b"\n"say ""a"""\n', [0, 0, 1], None),
        ("\ufeffObject ID;Size\r\na;1\r\n", [0], [1]),  # whatever the case and the marks of a name
        ("id,key\n1,a\n2,a\n", [0, 0], None),  # the plainest name counts
        ("key,size,\na,1,\nb,2,\n", [0, 1], [1, 2]),  # a separator at the end of each line
        ('key,count,size\na,"1,024",5\n', [0], [5]),
        ("New York\nRome\nNew York\n", [0, 1, 0], None),
        ("  a \n\tb\n \na\n", [0, 1, 0], None),
        ("b\n1\nb\n", [0, 1, 0], None),
        ("id,3\nuser,4\nname,5\nid,5\nuser,4\n", [0, 1, 2, 0, 1], [3, 4, 5, 5, 4]),  # no column is called 3
        ("page,3\nother,4\n", [0, 1], [3, 4]),
        ("url;30\nb;40\n", [0, 1], [30, 40]),
        ("block,1\nblock,1\n", [0, 0], [1, 1]),
        ('sep=;\n"id";"3"\nb;4\n', [0, 1], [3, 4]),
        ("key,2,size\na,x,5\n", [0], [5]),  # a name of each: a header
        ("id,key,key_id\nx,a,1\nx,b,1\n", [0, 1], None),
    ],
)
def test_lists_of_keys(tmp_path: Path, text: str | bytes, ids: list[int], sizes: list[int] | None) -> None:
    found = read(tmp_path, text)
    assert found.ids.tolist() == ids
    assert (None if found.sizes is None else found.sizes.tolist()) == sizes
    assert found.distinct == max(ids) + 1


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "holds no accesses"),
        ("# nothing\n\n", "holds no accesses"),
        ("key,size\n", "holds no accesses, only a header"),
        ("a,1\nb\n", "line 2: has 1 columns; expected 2"),
        ("a,1\nb,2,3\n", "line 2: has 3 columns; expected 2"),
        ("a,1\nb,", 'line 2: size is ""; expected a whole number from 1'),  # cut off
        ("a,1\n,2\n", "line 2: has no key"),
        ("a,0\n", 'line 1: size is "0"'),
        ("a,1\nb,-3\n", 'line 2: size is "-3"'),
        ("a,1.5\n", 'line 1: size is "1.5"'),
        ("a,1073741825\n", 'line 1: size is "1073741825"'),
        ("name,length\na,5\n", 'line 1: size is "length"'),
        ("1,2,3\n", "line 1: has 3 columns and no name of one"),
        ('key,size\n"a,5\n', "line 2: is no line of a CSV"),
        ('key,size\n"a\nb",5\n', "line 2: is no line of a CSV"),
        ("a\rb;1\r", "line 2: has 2 columns; expected 1 as in the first line"),
        ("a\rb\r\n\nc\td\r", "line 4: has 2 columns; expected 1 as in the first line"),
        ("a;1\nb,2\n", "line 2: has 1 columns; expected 2 as in the first line"),
        ("a,1;5\nb,2;5\n", 'line 1: has "," and ";" in it, and each may separate columns'),
        ("a;1,5\n", 'line 1: has "," and ";" in it'),
        ("a 5\nb 6\n", 'line 1: is "a 5", more than a key; separate columns with commas'),
        ("key\npage 1\n", 'line 2: is "page 1", more than a key'),
        ("1 2 3\n", 'line 1: is "1 2 3", more than a key'),
        ("a,1,024\n", "line 1: has 3 columns and no name of one"),
        ("a;1.024\n", 'line 1: size is "1.024"'),
        ('a,"1,024"\n', 'line 1: size is "1,024"'),
        ("1,024\n2,048\n", 'line 1: size is "024"'),  # keys, with a mark of thousands
        ("a,1,\nb,2,\n", "line 1: has 3 columns and no name of one"),
        ("a,\nb,\n", 'line 1: size is ""'),
        ("visited;size of it\na;5\n", 'line 1: size is "size of it"'),
        ("visited\n1\n2\n", 'line 1: is "visited" where all others are numbers: a header'),
        ("visited,5\n1,5\n", 'line 1: is "visited" where all others are numbers: a header'),
        ("id,3\n1,4\n2,5\n", 'line 1: is "id" where all others are numbers'),
        ("id,4KB\nuser,8KB\n", 'line 1: may be a header, or an access with "4KB"'),
        ("page|1,5\nb|2,6\n", 'line 1: may be a header, or an access with "1,5"'),
        ("id,+.5\nuser,1\n", 'line 1: may be a header, or an access with "+.5"'),
        ("9,id,4\n8,user,5\n", "line 1: has 3 columns and a number for a name"),
        ("key,key,size\na,b,5\n", 'line 1: has more than one column "key"; rename all but one'),
        ("Obj ID,obj_id\na,b\n", 'line 1: has more than one column "Obj ID"'),
        ("key,size,SIZE\na,1,2\n", 'line 1: has more than one column "size"'),
        ("key\na\nkey\nb\n", "line 3: is the header again"),
        ("key,size\na,1\nkey,size\n", "line 3: is the header again"),
        pytest.param(b"\xff\xfea\0\n\0", "line 1: is text in UTF-16; save it in UTF-8", id="UTF-16"),
        pytest.param(b"\0a\0\n", "line 1: is not text in UTF-8", id="UTF-16 without a mark"),
        pytest.param(b"a\n\xff\n", "line 2: is not text", id="Latin-1"),
        pytest.param(
            gzip.compress(b"a\n" * 5000, mtime=0)[:-9], "the gzip is cut off or damaged", id="half a gzip"
        ),
        ('{"prompt": 1}\n', "expected the header"),
    ],
)
def test_odd_files_are_refused_by_the_line(tmp_path: Path, text: str | bytes, said: str) -> None:
    with pytest.raises(BadInput) as error:
        read(tmp_path, text)
    assert str(error.value).startswith(f"TRACE {tmp_path / 'trace.txt'}: ")
    assert said in str(error.value)


def test_count_looks_at_no_size(tmp_path: Path) -> None:
    assert read(tmp_path, "a,60\nb,none\na,9\n", count=True).sizes is None
    assert read(tmp_path, "key;size\na;60\na;x\n", count=True).ids.tolist() == [0, 0]
    with pytest.raises(BadInput, match='line 1: size is "length"; expected a number, or a header'):
        read(tmp_path, "name,length\na,5\n", count=True)
    with pytest.raises(BadInput, match="line 3: is the header again"):
        read(tmp_path, "key,size\na,5\nkey,size\n", count=True)
    assert read(tmp_path, "id,3\nuser,4\nid,5\n", count=True).ids.tolist() == [0, 1, 0]
    assert read(tmp_path, "key,size,size\na,1,2\n", count=True).ids.tolist() == [0]
    assert read(tmp_path, "a,60\nb,30\na,60\n", limit=2).sizes.tolist() == [60, 30]


MOONCAKE = [
    {"timestamp": 0, "input_length": 1024, "output_length": 5, "hash_ids": [0, 1]},
    {"timestamp": 5, "input_length": 1100, "output_length": 5, "hash_ids": [0, 1, 9]},
    {"timestamp": 5, "input_length": 600, "output_length": 5, "hash_ids": [0, 4]},
]


def written(path: Path, records: Sequence[Any]) -> Path:
    path.write_text("\n".join(map(json.dumps, records)))
    return path


def test_blocks_of_mooncake(tmp_path: Path) -> None:
    found = source.read(written(tmp_path / "m.jsonl", MOONCAKE))
    assert found.ids.tolist() == [0, 1, 0, 1, 2, 0, 3]
    assert (found.unit, found.distinct, found.kind) == ("blocks of 512 tokens", 4, "mooncake")
    assert len(source.read(tmp_path / "m.jsonl", limit=1)) == 2


def test_blocks_of_weka(tmp_path: Path) -> None:
    """In order of time, the second conversation between the requests of the first; ids are each one's own."""

    def talk(name: str, *requests: tuple[float, int, int, list[list[int]]]) -> dict[str, Any]:
        return {
            "id": name,
            "models": ["m"],
            "block_size": 64,
            "reqs": [
                {"t": t, "in": 64 * n, "out": 1, "keep": keep, "add": add} for t, n, keep, add in requests
            ],
        }

    records = [talk("a", (0, 2, 0, [[0, 2]]), (9, 3, 2, [[5, 1]])), talk("b", (4, 2, 0, [[0, 2]]))]
    found = source.read(written(tmp_path / "w.jsonl", records))
    assert found.ids.tolist() == [0, 1, 2, 3, 0, 1, 4]
    assert found.unit == "blocks of 64 tokens"


def test_components_of_ragpulse_have_sizes(tmp_path: Path) -> None:
    parts = {"sys_prompt": [1], "passages_ids": [2, 2], "history": [3], "web_search": [], "user_input": [4]}
    line = {
        "timestamp": "1",
        "input_length": 60,
        "output_length": 1,
        "session_id": "s",
        "hash_ids": parts,
    }
    written(tmp_path / "0_trace.jsonl", [{**line, "timestamp": "9"}, line])
    for name, key, ids in (
        ("1_sys_prompt", "sys_prompt_id", [1]),
        ("2_passages", "passage_id", [2]),
        ("3_history", "history_id", [3]),
        ("4_user_input", "user_input_id", [4]),
        ("5_web_search", "web_search_id", [7]),
    ):
        written(tmp_path / f"{name}.jsonl", [{key: each, "token_length": 10 * each} for each in ids])
    found = source.read(tmp_path)
    assert found.ids.tolist() == [0, 1, 1, 2, 3] * 2
    assert found.sizes.tolist() == [10, 20, 20, 30, 40] * 2
    assert found.unit == "tokens"
    assert source.read(tmp_path, count=True).unit == "components"


# --- the command ---------------------------------------------------------------------------------


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    path = tmp_path / "textbook.txt"
    path.write_text("\n".join(map(str, TEXTBOOK)))
    return path


def test_the_command(kvlab: Any, trace: Path, tmp_path: Path) -> None:
    figures, picture = tmp_path / "out" / "f.json", tmp_path / "out" / "p.png"
    words = ["--policies", "all", "--capacities", "5,3e0,4", "--json", figures, "--plot", picture]
    status, out, err = kvlab("replay", trace, *words)
    assert (status, err) == (0, "")
    found = json.loads(figures.read_text())
    assert list(found["policies"]) == list(runs.NAMES)
    assert found["capacities"] == [3, 4, 5]
    assert (found["accesses"], found["distinct"], found["unit"]) == (12, 5, "objects")
    assert misses(found["policies"], "optimal") == [7, 6, 5]
    assert picture.read_bytes().startswith(b"\x89PNG")
    for text in ("textbook.txt", "capacity (objects)", "optimal", "83.33", "58.33"):  # 10 and 7 of 12
        assert text in out


def test_defaults_are_shares_of_what_is_there(kvlab: Any, tmp_path: Path) -> None:
    path = tmp_path / "f.json"
    (tmp_path / "t").write_text("\n".join(str(i % 300) for i in range(1000)))
    assert kvlab("replay", tmp_path / "t", "--no-plot", "--policies", "lru", "--json", path)[0] == 0
    found = json.loads(path.read_text())
    assert found["capacities"] == [3, 6, 15, 30, 60, 150, 300]
    assert found["policies"]["lru"]["300"]["misses"] == 300


def test_sizes_by_the_command(kvlab: Any, tmp_path: Path) -> None:
    (tmp_path / "t").write_text("A,60\nB,30\nX,150\nA,60\nB,30\n")
    status, out, _ = kvlab("replay", tmp_path / "t", "--no-plot", "--capacities", "100")
    assert status == 0
    assert "100: 1 accesses were to objects larger than that, never admitted." in out
    assert "optimal is known only for objects of one size" in out


def test_a_window_that_leaves_too_little(kvlab: Any, tmp_path: Path) -> None:
    """c has no room beside b, the newest, which may not go."""
    (tmp_path / "t").write_text("a,50\nb,50\nc,60\n")
    words = ["--policies", "lru,hybrid", "--window", 1, "--capacities", 100, "--no-plot"]
    status, out, _ = kvlab("replay", tmp_path / "t", *words)
    assert status == 0
    assert "100: 1 times the window of hybrid left too little to evict; take a smaller --window." in out


def test_two_runs_write_the_same(tmp_path: Path, trace: Path) -> None:
    written = []
    for seed in ("0", "1", "2"):
        path = tmp_path / f"{seed}.json"
        code = "import sys; from kvlab import cli; sys.exit(cli.main(sys.argv[1:]))"
        subprocess.run(
            [sys.executable, "-c", code, "replay", str(trace), "--no-plot", "--json", str(path)],
            env={**os.environ, "PYTHONHASHSEED": seed},
            check=True,
            capture_output=True,
        )
        written.append(path.read_bytes())
    assert written[0] == written[1] == written[2]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--policies", "mru"], "--policies mru: no policy 'mru'"),
        (["--policies", "lru,siev"], 'did you mean "sieve"?'),
        (["--capacities", "0"], "--capacities 0: 0 is no whole number from 1"),
        (["--capacities", "1e3,-4"], "-4 is no whole number from 1"),
        (["--capacities", "2.5"], "2.5 is no whole number"),
        (["--capacities", "nan"], "nan is no whole number"),
        (["--capacities", "many"], "'many' is no number; write such as 1e3,1e4"),
        (["--window", "3", "--capacities", "3"], "--window 3: with --capacities 3"),
        (["--requests", "0"], "--requests"),
        (["--no-plot", "--plot", "x.png"], "--no-plot: is at odds with --plot"),
    ],
)
def test_bad_options(kvlab: Any, trace: Path, words: list[str], said: str) -> None:
    status, out, err = kvlab("replay", trace, *words)
    assert (status, out) == (2, "")
    assert said in err
    assert err.count("\n") == 1


def test_traces_without_blocks_are_refused(kvlab: Any, tmp_path: Path) -> None:
    azure = tmp_path / "azure.csv"
    azure.write_text("TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46.68,374,44\n")
    status, _, err = kvlab("replay", azure)
    assert status == 2
    assert "says how long prompts are, not what is in them; name a Mooncake, WEKA or RAGPulse trace" in err
    written(tmp_path / "m.jsonl", [{"timestamp": 0, "input_length": 0, "output_length": 5, "hash_ids": []}])
    assert "its prompts have no whole block" in kvlab("replay", tmp_path / "m.jsonl")[2]
    assert "no such file" in kvlab("replay", tmp_path / "nothing")[2]
    sized = tmp_path / "sized"
    sized.write_text("a,5\n")
    assert "add --count" in kvlab("replay", sized, "--policies", "optimal")[2]


def test_known_traces(needs_data: Any) -> None:
    """What an unbounded cache would find again is known from the trace's own paper and from counting."""
    conversation = source.read(needs_data("traces/mooncake_conversation_trace.jsonl"))
    assert (len(conversation), conversation.distinct) == (288_500, 182_790)
    found = runs.replay(conversation, runs.NAMES, (1_000, 10_000, 200_000))
    for name, by_capacity in found.items():
        assert by_capacity["200000"]["misses"] == conversation.distinct
        assert by_capacity["10000"]["misses"] >= found["optimal"]["10000"]["misses"], name
    rag = source.read(needs_data("traces/ragpulse/0_trace.jsonl"))
    assert (len(rag), rag.distinct) == (71_583, 21_857)
