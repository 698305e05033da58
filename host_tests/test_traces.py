"""Traces: what each format is read as, every fault by its line, and the real files where they are."""

from __future__ import annotations

import gzip
import io
import json
import tracemalloc
from pathlib import Path

import pytest

from commandline.errors import BadInput
from kvlab import traces
from kvlab.traces import lines as lines_module
from kvlab.traces.lines import Source

AZURE = "TIMESTAMP,ContextTokens,GeneratedTokens"
FIRST, SECOND = "2023-11-16 18:17:03.9799600,4808,10", "2023-11-16 18:17:04.0319600,3180,8"
MOON = {"timestamp": 1500, "input_length": 1100, "output_length": 7, "hash_ids": [0, 1, 9]}
ASKED = {"t": 0.0, "in": 200, "out": 5, "ty": "n", "stop": "tool_use", "keep": 0, "add": [[1, 3]]}
TALK = {"id": "c1", "models": ["m"], "block_size": 64, "tool_tokens": 1, "system_tokens": 1, "reqs": [ASKED]}
PARTS = {"sys_prompt": [1, 2], "passages_ids": [5], "history": [7], "web_search": [], "user_input": [9]}
RAG = {
    "timestamp": "82",
    "input_length": 100,
    "output_length": 30,
    "hash_ids": PARTS,
    "session_id": "s",
}
RAG_LENGTHS = {
    "1_sys_prompt": ("sys_prompt_id", {1: 40, 2: 30}),
    "2_passages": ("passage_id", {5: 20}),
    "3_history": ("history_id", {7: 1, 8: 2}),
    "4_user_input": ("user_input_id", {9: 6}),
    "5_web_search": ("web_search_id", {11: 50}),
}


def lines(*records: object) -> str:
    return "".join((r if isinstance(r, str) else json.dumps(r)) + "\n" for r in records)


def without(record: dict, key: str) -> dict:
    return {k: v for k, v in record.items() if k != key}


@pytest.fixture
def written(tmp_path):
    """`written(text or bytes)`: a file of it."""

    def write(content: str | bytes, name: str = "trace") -> Path:
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write


@pytest.fixture
def rag(tmp_path):
    """`rag(*records)`: a folder of RAGPulse with these requests."""

    def write(*records: object) -> Path:
        for name, (key, lengths) in RAG_LENGTHS.items():
            text = lines("", *({key: i, "token_length": n} for i, n in lengths.items()), "")
            (tmp_path / f"{name}.jsonl").write_text(text)
        (tmp_path / "0_trace.jsonl").write_text(lines(*records))
        return tmp_path

    return write


def test_azure(written) -> None:
    trace = traces.open_trace(written(f"{AZURE}\r\n\r\n{FIRST}\r\n{SECOND}"))
    one, two = trace
    assert (trace.kind, trace.ordered, trace.utc) == ("azure", True, True)
    assert (one.prompt_tokens, one.output_tokens, one.task, len(one.blocks)) == (4808, 10, "trace", 0)
    assert one.arrival_s == pytest.approx(1700158623.97996, abs=1e-6)
    assert two.arrival_s - one.arrival_s == pytest.approx(0.052, abs=1e-6)
    assert list(one.pieces()) == []


def test_mooncake(written) -> None:
    trace = traces.open_trace(written(lines(MOON, "  ", {**MOON, "timestamp": 1500.5})))
    one, two = trace
    assert (trace.kind, one.arrival_s, two.arrival_s) == ("mooncake", 1.5, 1.5005)
    assert (one.blocks.runs, list(one.blocks)) == (((0, 2), (9, 1)), [0, 1, 9])
    assert list(one.pieces()) == [(0, 512), (1, 512), (9, 76)]


def test_ragpulse_by_its_folder_or_its_trace(rag) -> None:
    web = {**PARTS, "web_search": [11], "history": [7, 8], "passages_ids": []}
    folder = rag(RAG, "", {**RAG, "hash_ids": web}, {**RAG, "hash_ids": {**PARTS, "passages_ids": []}})
    for path in (folder, folder / "0_trace.jsonl"):
        trace = traces.open_trace(path)
        one, two, three = trace
        assert (trace.kind, trace.ordered, trace.name) == ("ragpulse", False, folder.name)
        assert (one.task, two.task, three.task) == ("passages", "web+history", "plain")
        assert (one.arrival_s, one.session) == (82, "s")
        assert list(one.pieces()) == [(1, 40), (2, 30), (5, 20), (7, 1), (9, 6)]
        assert list(two.pieces()) == [(1, 40), (2, 30), (7, 1), (8, 2), (11, 50), (9, 6)]


def agent(start: float, *requests: dict) -> dict:
    return {"ty": "subagent", "t": start, "agent_id": "a1", "subagent_type": "Explore", "reqs": [*requests]}


@pytest.mark.parametrize("packed", [False, True])
def test_weka(written, packed: bool) -> None:
    later = {**ASKED, "t": 9, "in": 260, "keep": 2, "add": [[7, 1], [20, 1]]}
    other = {**TALK, "id": "c2", "reqs": [ASKED]}
    text = lines({**TALK, "reqs": [ASKED, agent(4, ASKED, {**ASKED, "t": 2}), later]}, other).encode()
    trace = traces.open_trace(written(gzip.compress(text) if packed else text))
    found = list(trace)
    assert (trace.kind, trace.ordered) == ("weka", False)
    assert [each.arrival_s for each in found] == [0, 4, 6, 9, 0]
    assert [each.session for each in found] == ["c1", "c1/a1", "c1/a1", "c1", "c2"]
    assert [each.task for each in found] == ["m", "subagent Explore", "subagent Explore", "m", "m"]
    assert list(found[0].blocks) == [1, 2, 3]
    assert list(found[3].blocks) == [1, 2, 7, 20]
    assert list(found[3].pieces())[-1] == (20, 64)
    assert not set(found[0].blocks) & set(found[4].blocks), "ids of two conversations"


def test_a_trace_is_read_again_and_again(written) -> None:
    trace = traces.open_trace(written(lines(MOON)))
    assert list(trace) == list(trace) != []


def test_a_long_trace_is_not_loaded(written) -> None:
    count = 15_000
    path = written(lines(*[MOON] * count))
    trace = traces.open_trace(path)
    tracemalloc.start()
    try:
        assert sum(1 for _ in trace) == count
        assert tracemalloc.get_traced_memory()[1] < path.stat().st_size / 10
    finally:
        tracemalloc.stop()


HUGE = "9" * 5000
TIME = "a time such as 2023"
FAULTS = [
    ("empty", "", ": holds no requests"),
    ("blank", "\n \r\n\n", ": holds no requests"),
    ("header alone", AZURE, ": holds no requests"),
    (
        "other header",
        "num_prefill_tokens,num_decode_tokens\n1,2\n",
        "line 1: .*expected the header TIMESTAMP",
    ),
    ("header with a column more", f"{AZURE},x\n", "line 1: .*expected the header"),
    ("comment", f"# a comment\n{AZURE}\n", "line 1: .*expected the header"),
    ("prose", "hello\n", 'line 1: is "hello"; expected .*Mooncake.*WEKA'),
    ("no header", f"{FIRST}\n", "line 1: .*expected the header"),
    ("comment below", f"{AZURE}\n#\n{FIRST}\n", "line 2: has 1 columns; expected 3"),
    ("column missing", f"{AZURE}\n{FIRST}\n\n2023-11-16 18:17:04,5\n", "line 4: has 2 columns; expected 3"),
    ("cut short", f"{AZURE}\n{FIRST}\n2023-11-16 18:1", "line 3: has 1 columns"),
    ("text as time", f"{AZURE}\nnow,1,2\n", f'line 2: TIMESTAMP is "now"; expected {TIME}'),
    ("31 November", f"{AZURE}\n2023-11-31 00:00:00,1,2\n", f"line 2: TIMESTAMP is .*{TIME}"),
    ("year 0", f"{AZURE}\n0000-11-30 00:00:00,1,2\n", f"line 2: TIMESTAMP is .*{TIME}"),
    ("back in time", f"{AZURE}\n{SECOND}\n{FIRST}\n", "line 3: TIMESTAMP .* is before .* order of time"),
    ("negative", f"{AZURE}\n2023-11-16 18:17:04,-5,2\n", 'line 2: ContextTokens is "-5"; expected a whole'),
    (
        "fraction",
        f"{AZURE}\n2023-11-16 18:17:04,5,2.5\n",
        'line 2: GeneratedTokens is "2.5"; expected a whole',
    ),
    ("no number", f"{AZURE}\n2023-11-16 18:17:04,5,\n", 'line 2: GeneratedTokens is "";'),
    ("too large", f"{AZURE}\n2023-11-16 18:17:04,{HUGE},1\n", "line 2: ContextTokens is"),
    ("other digits", f"{AZURE}\n2023-11-16 18:17:04,\u0665,1\n", "line 2: ContextTokens is"),
    ("not JSON", lines(MOON, "{oops"), 'line 2: is not JSON .*"{oops"; expected one whole object'),
    ("not JSON at once", "{oops", 'line 1: is not JSON .*"{oops"'),
    ("cut JSON", lines(MOON) + json.dumps(MOON)[:40], "line 2: is not JSON"),
    ("deep JSON", lines(MOON, "[" * 100_000), "line 2: is not JSON"),
    ("a list", lines(MOON, "[1]"), r"line 2: the line is \[1\]; expected a JSON object"),
    ("a number", lines(MOON, "5"), "line 2: the line is 5; expected a JSON object"),
    ("other object", lines({"a": 1}), 'line 1: .*a JSON object with "hash_ids"'),
    ("no blocks", lines(without(MOON, "hash_ids")), 'line 1: "hash_ids" is missing; expected a list'),
    (
        "blocks too few",
        lines({**MOON, "hash_ids": [1]}),
        'line 1: "hash_ids" has 1 blocks; expected 3 of 512',
    ),
    ("id as text", lines(MOON, {**MOON, "hash_ids": [1, "2", 3]}), 'line 2: "hash_ids" is .*whole numbers'),
    ("id negative", lines(MOON, {**MOON, "hash_ids": [1, -2, 3]}), 'line 2: "hash_ids" is .*whole numbers'),
    ("id a truth", lines(MOON, {**MOON, "hash_ids": [1, True, 3]}), 'line 2: "hash_ids" is .*whole numbers'),
    (
        "no input",
        lines(MOON, without(MOON, "input_length")),
        'line 2: "input_length" is missing; expected a w',
    ),
    ("input null", lines({**MOON, "input_length": None}), 'line 1: "input_length" is null; expected a whole'),
    ("input text", lines({**MOON, "input_length": "1100"}), 'line 1: "input_length" is "1100"; expected'),
    ("input NaN", lines({**MOON, "input_length": float("nan")}), 'line 1: "input_length" is NaN; expected'),
    ("input true", lines({**MOON, "input_length": True}), 'line 1: "input_length" is true; expected'),
    ("output negative", lines({**MOON, "output_length": -1}), 'line 1: "output_length" is -1; expected'),
    (
        "output huge",
        lines({**MOON, "output_length": 1 << 40}),
        'line 1: "output_length" is 1099511627776; exp',
    ),
    ("digits", '{"hash_ids": [], "input_length": ' + HUGE + "}", "line 1: is not JSON"),
    (
        "time negative",
        lines({**MOON, "timestamp": -1}),
        'line 1: "timestamp" is -1; expected a number from 0',
    ),
    ("time infinite", lines({**MOON, "timestamp": float("inf")}), 'line 1: "timestamp" is Infinity; exp'),
    ("time NaN", lines({**MOON, "timestamp": float("nan")}), 'line 1: "timestamp" is NaN; expected'),
    ("time huge", lines({**MOON, "timestamp": 10**400}), 'line 1: "timestamp" is 1000.*; expected a number'),
    ("time text", lines({**MOON, "timestamp": "soon"}), 'line 1: "timestamp" is "soon"; expected a time'),
    (
        "time back",
        lines(MOON, "", {**MOON, "timestamp": 3}),
        'line 3: "timestamp" is 3; expected at least the',
    ),
    ("no id", lines(without(TALK, "id")), 'line 1: "id" is missing; expected text'),
    ("no models", lines({**TALK, "models": []}), r'line 1: "models" is \[\]; expected a list of names'),
    ("block size 0", lines({**TALK, "block_size": 0}), 'line 1: "block_size" is 0; expected a whole'),
    ("reqs an object", lines({**TALK, "reqs": {}}), 'line 1: "reqs" is {}; expected a list of objects'),
    ("req a number", lines({**TALK, "reqs": [3]}), r"line 1: reqs\[0\] is 3; expected a JSON object"),
    ("no reqs at all", lines({**TALK, "reqs": []}), ": holds no requests"),
    ("no out", lines({**TALK, "reqs": [without(ASKED, "out")]}), r'line 1: "reqs\[0\].out" is missing'),
    (
        "keeps what is not there",
        lines({**TALK, "reqs": [{**ASKED, "keep": 1, "add": [[1, 2]]}]}),
        r'line 1: "reqs\[0\].keep" is 1; expected at most the 0 blocks',
    ),
    (
        "run of three",
        lines({**TALK, "reqs": [{**ASKED, "add": [[1, 2, 3]]}]}),
        r'line 1: "reqs\[0\].add" is .*expected a list of \[first id, count\]',
    ),
    (
        "blocks too many",
        lines(TALK, {**TALK, "reqs": [{**ASKED, "add": [[1, 4]]}]}),
        r'line 2: "reqs\[0\]": "keep" and "add" make 4 blocks; expected 3 whole ones of 64 for 200',
    ),
    (
        "request before the last",
        lines({**TALK, "reqs": [{**ASKED, "t": 5}, ASKED]}),
        r'line 1: "reqs\[1\].t" is 0.0; expected at least the 5',
    ),
    (
        "fault of a sub-agent",
        lines({**TALK, "reqs": [agent(1, {**ASKED, "in": -1})]}),
        r'line 1: "reqs\[0\].reqs\[0\].in" is -1; expected',
    ),
    (
        "sub-agent of a sub-agent",
        lines({**TALK, "reqs": [agent(1, agent(1, ASKED))]}),
        r'line 1: "reqs\[0\].reqs\[0\].ty" is "subagent"; expected no sub-agent inside',
    ),
    ("binary", b"\x7fELF\0\0\1\2\n", "line 1: is not text in UTF-8"),
    ("binary below", lines(MOON).encode() + b"\xff\xfe\0", "line 2: is not text in UTF-8"),
    ("zeros", bytes(100), "line 1: is not text in UTF-8"),
    (
        "gzip cut",
        gzip.compress(lines(*[TALK] * 50).encode(), mtime=0)[:-20],
        "line [0-9]+: the gzip is cut off or dam",
    ),
    ("gzip of nothing", gzip.compress(b"", mtime=0), ": holds no requests"),
    ("gzip head alone", b"\x1f\x8b", "line 1: the gzip is cut off or damaged"),
    ("gzip garbage", b"\x1f\x8b\x08\0\0\0\0\0\0\0garbage", "line 1: the gzip is cut off or damaged"),
    ("gzip of other", b"\x1f\x8b\x09garbage", "line 1: the gzip is cut off or damaged"),
]


@pytest.mark.parametrize(("content", "said"), [f[1:] for f in FAULTS], ids=[f[0] for f in FAULTS])
def test_a_fault_is_one_line_with_file_and_line(written, content, said: str) -> None:
    path = written(content, "odd.trace")
    with pytest.raises(BadInput, match=said) as refused:
        list(traces.open_trace(path, "--load"))
    text = str(refused.value)
    assert text.startswith(f"--load {path}: ")
    assert "\n" not in text
    assert len(text) < len(str(path)) + 330


RAG_FAULTS = [
    (
        "no component",
        [{**RAG, "hash_ids": {**PARTS, "history": [6]}}],
        "line 1: history 6 is unknown.*3_history",
    ),
    (
        "no kind",
        [RAG, {**RAG, "hash_ids": without(PARTS, "history")}],
        'line 2: "hash_ids.history" is missing',
    ),
    (
        "ids no list",
        [{**RAG, "hash_ids": {**PARTS, "history": 7}}],
        'line 1: "hash_ids.history" is 7; expected',
    ),
    ("hash_ids a list", [RAG, {**RAG, "hash_ids": [1]}], r'line 2: "hash_ids" is \[1\]; expected an object'),
    ("time", [{**RAG, "timestamp": "-1"}], 'line 1: "timestamp" is "-1"; expected a number from 0'),
    ("time NaN", [{**RAG, "timestamp": "nan"}], 'line 1: "timestamp" is "nan"; expected'),
    ("no time", [without(RAG, "timestamp")], 'line 1: "timestamp" is missing; expected a time'),
    ("session", [{**RAG, "session_id": 5}], 'line 1: "session_id" is 5; expected text'),
]


@pytest.mark.parametrize(("records", "said"), [f[1:] for f in RAG_FAULTS], ids=[f[0] for f in RAG_FAULTS])
def test_faults_of_ragpulse(rag, records, said: str) -> None:
    folder = rag(*records)
    with pytest.raises(BadInput, match=said) as refused:
        list(traces.open_trace(folder))
    assert str(refused.value).startswith(f"--trace {folder / '0_trace.jsonl'}: ")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "2_passages.jsonl: no such file"),
        ("{", "2_passages.jsonl: line 1: is not JSON"),
        ('{"passage_id": 5}\n', '2_passages.jsonl: line 1: "token_length" is missing'),
        ('{"passage_id": 5, "token_length": -1}', '2_passages.jsonl: line 1: "token_length" is -1'),
        (lines(*[{"passage_id": 5, "token_length": 1}] * 2), "2_passages.jsonl: line 2: .*no line above has"),
    ],
)
def test_faults_of_its_components(rag, content: str | None, said: str) -> None:
    folder = rag(RAG)
    path = folder / "2_passages.jsonl"
    path.unlink()
    if content is not None:
        path.write_text(content)
    with pytest.raises(BadInput, match=said):
        list(traces.open_trace(folder))


def test_what_is_no_file(tmp_path) -> None:
    with pytest.raises(BadInput, match="--trace .*nothing: no such file"):
        traces.open_trace(tmp_path / "nothing")
    with pytest.raises(BadInput, match="--trace .*: is a folder without 0_trace.jsonl; name a file"):
        traces.open_trace(tmp_path)
    with pytest.raises(BadInput, match="--trace /dev/null: is a device"):
        traces.open_trace("/dev/null")


def test_order_is_by_arrival_and_stable(rag) -> None:
    times = ["9", "3", "9", "0"]
    found = traces.in_order(
        traces.open_trace(rag(*({**RAG, "timestamp": t, "session_id": f"{i}"} for i, t in enumerate(times))))
    )
    assert [(each.arrival_s, each.session) for each in found] == [(0, "3"), (3, "1"), (9, "0"), (9, "2")]


def test_several_traces_share_a_start(written) -> None:
    late = f"{AZURE}\n2023-11-16 18:17:14,1,1\n2023-11-16 18:17:16,2,1\n"
    early = f"{AZURE}\n2023-11-16 18:17:04,3,1\n2023-11-16 18:17:15,4,1\n"
    other = lines({**MOON, "timestamp": 5000}, {**MOON, "timestamp": 7000})
    opened = [
        traces.open_trace(written(text, name))
        for name, text in (("late", late), ("early", early), ("other", other))
    ]
    found = [(each.arrival_s, each.task) for each in traces.together(opened)]
    assert found == [
        *[(0, "early"), (0, "other"), (2, "other")],
        *[(10, "late"), (11, "early"), (12, "late")],
    ]


REAL = [
    ("AzureLLMInferenceTrace_code.csv", "azure", 8_819, 0, 1),
    ("AzureLLMInferenceTrace_conv.csv", "azure", 19_366, 0, 1),
    ("mooncake_conversation_trace.jsonl", "mooncake", 12_031, 288_500, 1),
    ("mooncake_synthetic_trace.jsonl", "mooncake", 3_993, 121_877, 1),
    ("ragpulse", "ragpulse", 7_106, 71_583, 3_990),
    ("weka_cc_compact.jsonl.gz", "weka", 49_334, 94_310_647, 710 + 63),  # sub-agents have their own
]


@pytest.mark.parametrize(
    ("name", "kind", "requests", "blocks", "sessions"), REAL, ids=[each[0] for each in REAL]
)
def test_the_real_files(needs_data, name: str, kind: str, requests: int, blocks: int, sessions: int) -> None:
    trace = traces.open_trace(needs_data(f"traces/{name}"))
    counted = references = 0
    known = set()
    for request in trace:
        counted += 1
        references += len(request.blocks)
        known.add(request.session)
    assert (trace.kind, counted, references, len(known)) == (kind, requests, blocks, sessions)


@pytest.mark.parametrize(("name", "share"), [("conversation", 36.6), ("synthetic", 64.0)])
def test_prefixes_of_mooncake(needs_data, name: str, share: float) -> None:
    """Blocks that a cache without end would have, up to the first one it has not."""
    known: set[int] = set()
    hits = total = 0
    for request in traces.open_trace(needs_data(f"traces/mooncake_{name}_trace.jsonl")):
        cold = False
        for block in request.blocks:
            cold = cold or block not in known
            hits += not cold
            known.add(block)
        total += len(request.blocks)
    assert round(100 * hits / total, 1) == share


def test_repeats_of_ragpulse(needs_data) -> None:
    known: set[int] = set()
    pieces = again = tokens = tokens_again = 0
    for request in traces.open_trace(needs_data("traces/ragpulse")):
        for block, size in request.pieces():
            pieces, tokens = pieces + 1, tokens + size
            if block in known:
                again, tokens_again = again + 1, tokens_again + size
            known.add(block)
    assert (pieces, len(known)) == (71_583, 21_857)
    assert (round(100 * again / pieces, 1), round(100 * tokens_again / tokens, 1)) == (69.5, 72.0)


@pytest.mark.parametrize("piece", [1, 2, 3, 7, 1 << 14])
@pytest.mark.parametrize("end", ["\n", "\r", "\r\n"], ids=["LF", "CR", "CRLF"])
def test_lines_end_as_python_says_however_they_are_read(written, monkeypatch, piece: int, end: str) -> None:
    monkeypatch.setattr(lines_module, "_PIECE", piece)
    texts = ["a", "", "bb", " c\u00e9", "", "", "d\u2028e\x0bf\x85g", "h"]
    for mixed in ("", "\r", "\n", "\r\n"):
        text = end.join(texts) + mixed + "i" + end + mixed + "j" + end
        found = [(line.number, line.text) for line in Source(written(text, "odd.trace"), "").lines()]
        want = io.StringIO(text, newline=None).read().split("\n")
        assert found == [(at + 1, line.strip()) for at, line in enumerate(want) if line.strip()]


def test_a_line_without_an_end_is_refused(written, monkeypatch) -> None:
    monkeypatch.setattr(lines_module, "_LINE_MAX", 1 << 20)
    with pytest.raises(BadInput, match="line 2: is longer than 1 MiB: not a text trace"):
        list(Source(written("a\n" + "b" * (5 << 20), "odd.trace"), "").lines())
