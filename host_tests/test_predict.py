"""`kvlab predict`: outcomes computed by hand, learning only from the past, the command and its errors."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from kvlab.predict.simulate import RULES, Outcome, Pool, simulate
from kvlab.predict.workload import Speed, Workload
from kvlab.traces import Request

SPEED = Speed(prefill=4, decode=1)


def workload(*jobs: tuple[float, int, int], max_tokens: int | None = None, task: str = "t") -> Workload:
    """jobs: (arrival_s, prompt_tokens, output_tokens)"""
    return Workload.of((Request(*job, task=task) for job in jobs), max_tokens)


def run(work: Workload, rule: str, blocks: int, quantile: float = 0.9) -> Outcome:
    return simulate(work, Pool(blocks, 4, quantile), SPEED, rule)


def test_reserving_the_maximum() -> None:
    """Two of 4 + 4 tokens, 12 reserved each: three of four blocks, so that the second waits for the first."""
    found = run(workload((7, 4, 4), (7, 4, 4), max_tokens=8), "maximum", 4)
    assert (found.requests, found.finished, found.refused) == (2, 2, 0)
    assert (found.reserved, found.used, found.over_reserved, found.under_reserved) == (6, 4, 2, 0)
    assert (found.grown, found.preempted, found.recomputed_tokens) == (0, 0, 0)
    # A second for the prompt, four for the answer.
    assert found.end_s == pytest.approx(10)
    assert (found.waiting_mean_s, found.waiting_p95_s) == pytest.approx((2.5, 4.75))
    assert (found.response_mean_s, found.running_mean, found.running_most) == pytest.approx((7.5, 1, 1))
    # Block-seconds: one for the prompt, 1.5 on average for four seconds of the answer.
    assert found.filled_pct == pytest.approx(100 * 14 / 40)
    assert found.idle_pct == pytest.approx(100 * (1 - 14 / 30))


def test_reserving_nothing_without_need() -> None:
    found = run(workload((7, 4, 4), (7, 4, 4), max_tokens=8), "nothing", 4)
    assert (found.reserved, found.used, found.over_reserved, found.under_reserved) == (4, 4, 0, 0)
    assert (found.end_s, found.running_mean, found.waiting_mean_s) == pytest.approx((5, 2, 0))
    assert found.sufficed_pct == 100


def test_reserving_nothing_gives_way() -> None:
    """Both need the whole pool. At 5 s the first asks for a third block and gives way; the second grows twice
    and ends at 13 s; the first computes 4 + 4 tokens anew, grows once more and ends at 23 s."""
    found = run(workload((0, 4, 12), (0, 4, 12), max_tokens=12), "nothing", 4)
    assert (found.reserved, found.used, found.over_reserved, found.under_reserved) == (4, 8, 0, 4)
    assert (found.preempted, found.grown, found.recomputed_tokens) == (1, 3, 8)
    assert (found.waiting_mean_s, found.response_mean_s, found.end_s) == pytest.approx((4, 18, 23))
    assert found.sufficed_pct == 0


def test_only_what_has_ended_is_learnt_from() -> None:
    """Twenty at once find nothing known and reserve the maximum; the one after them their length."""
    crowd = [(0.0, 4, 5)] * 20
    alike = run(workload(*crowd, max_tokens=40), "predict", 1000)
    assert alike.reserved == run(workload(*crowd, max_tokens=40), "maximum", 1000).reserved == 20 * 11
    later = run(workload(*crowd, (100.0, 4, 5), max_tokens=40), "predict", 1000)
    assert later.reserved == 20 * 11 + 3


def test_tasks_are_predicted_apart() -> None:
    def requests(length: dict[str, int]) -> Workload:
        return Workload.of(
            (Request(100.0 * i, 4, length[task], task=task) for i in range(40) for task in ("short", "long")),
            max_tokens=64,
        )

    work = requests({"short": 4, "long": 32})
    assert work.tasks == ["short", "long"]
    found = run(work, "predict", 1000)
    # Until 16 answers of a task are known: first the maximum, then what all tasks are like.
    assert found.reserved < 16 * 2 * 17 + 24 * (2 + 9)
    assert found.under_reserved == 0


def test_a_prediction_that_falls_short_grows() -> None:
    """After answers of 4 tokens one of 40: it grows by what is now likely, not block by block."""
    work = workload(*[(50.0 * i, 4, 4) for i in range(30)], (5000.0, 4, 40), max_tokens=64)
    found = run(work, "predict", 1000)
    assert found.under_reserved == 11 - 2
    assert 1 <= found.grown <= 5  # doublings


def test_what_never_fits_is_refused_and_the_rest_runs() -> None:
    work = workload((0, 4, 4), (0, 40, 4), (0, 4, 4), max_tokens=4)
    for rule in RULES:
        found = run(work, rule, 3)
        assert (found.finished, found.refused, found.used) == (2, 1, 4)


def test_all_refused_is_an_outcome_too() -> None:
    assert run(workload((0, 40, 4), max_tokens=4), "maximum", 3).figures()["refused"] == 1


def test_empty_prompts_and_answers_take_a_token() -> None:
    work = workload((0, 0, 0), (0, 0, 3), max_tokens=2)
    assert [(job.prompt_tokens, job.output_tokens) for job in work.jobs] == [(1, 1), (1, 2)]
    assert work.cut == 1


def test_the_longest_answer_comes_from_the_first_tenth() -> None:
    jobs = [(float(i), 4, 100 if i < 10 else 900) for i in range(100)]
    work = workload(*jobs)
    assert (work.max_tokens, work.cut) == (128, 90)
    assert workload((0, 4, 128)).max_tokens == 128
    assert workload((0, 4, 1)).max_tokens == 1


def test_demand_is_that_of_a_pool_without_end() -> None:
    """Four requests of 2 blocks for 5 s each, in 20 s."""
    work = workload(*[(5.0 * i, 4, 4) for i in range(4)], max_tokens=8)
    assert work.demand(4, SPEED) == pytest.approx(2)
    assert work.default_blocks(4, SPEED) == 3  # what the largest may need
    crowd = workload(*[(0.0, 4, 4)] * 100, max_tokens=8)
    assert crowd.default_blocks(4, SPEED) == 250


def test_progress_counts_every_request() -> None:
    counted = []
    work = workload((0, 4, 4), (0, 400, 4), (1, 4, 4), max_tokens=4)
    simulate(work, Pool(3, 4, 0.9), SPEED, "nothing", counted.append)
    assert sum(counted) == 3


ROWS = [f"2023-11-16 18:{15 + i // 60}:{i % 60:02},{100 + 7 * i % 300},{5 + i * i % 120}" for i in range(200)]


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    path = tmp_path / "service.csv"
    path.write_text("\n".join(["TIMESTAMP,ContextTokens,GeneratedTokens", *ROWS]))
    return path


def test_the_command(kvlab, trace: Path, tmp_path: Path) -> None:
    figures, picture = tmp_path / "out" / "f.json", tmp_path / "out" / "p.png"
    status, out, err = kvlab("predict", "--trace", trace, "--json", figures, "--plot", picture)
    assert (status, err) == (0, "")
    found = json.loads(figures.read_text())
    assert (found["requests"], found["traces"], found["tasks"]) == (200, ["service.csv"], {"service": 200})
    maximum, nothing, predict = (found["rules"][rule] for rule in RULES)
    assert list(found["rules"]) == list(RULES)
    for each in (maximum, nothing, predict):
        assert each["finished"] == 200
        assert each["refused"] == 0
        assert each["used"] == maximum["used"]
        assert each["reserved"] - each["over_reserved"] + each["under_reserved"] == each["used"]
    assert maximum["under_reserved"] == nothing["over_reserved"] == maximum["preempted"] == 0
    assert nothing["reserved"] < predict["reserved"] < maximum["reserved"]
    assert nothing["preempted"] > 0
    assert maximum["waiting_mean_s"] > predict["waiting_mean_s"]
    assert picture.read_bytes().startswith(b"\x89PNG")
    for text in ("service.csv", "reserved, never used", "used, not reserved", f"{maximum['reserved']:,}"):
        assert text in out


def test_two_runs_are_the_same(kvlab, trace: Path, tmp_path: Path) -> None:
    written = []
    for name in ("a.json", "b.json"):
        path = tmp_path / name
        assert kvlab("predict", "--trace", trace, "--no-plot", "--json", path)[0] == 0
        written.append(path.read_bytes())
    assert written[0] == written[1]


def test_options_are_heeded(kvlab, trace: Path, tmp_path: Path) -> None:
    path = tmp_path / "f.json"
    other = trace.with_name("other.csv")
    other.write_text(trace.read_text())
    words = ["--blocks", 90, "--block-tokens", 8, "--max-tokens", 60, "--requests", 50, "--quantile", 0.5]
    words += ["--tokens-per-s", 10, "--prefill-tokens-per-s", 100, "--speedup", 2, "--trace", other]
    assert kvlab("predict", "--trace", trace, "--no-plot", "--json", path, *words)[0] == 0
    found = json.loads(path.read_text())
    for key, value in zip(words[:-2:2], words[1:-2:2], strict=True):
        assert found[key[2:].replace("-", "_")] == value
    assert found["tasks"] == {"service": 25, "other": 25}
    assert found["cut_answers"] > 0


def test_nobody_waits_in_a_large_pool(kvlab, trace: Path) -> None:
    status, out, _ = kvlab("predict", "--trace", trace, "--no-plot", "--blocks", 100_000)
    assert status == 0
    assert "Nobody waited: take fewer --blocks or more --speedup" in out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "'--trace'"),
        (["--trace", "nothing"], "--trace nothing: no such file"),
        (
            ["--trace", "{trace}", "--blocks", 3],
            "--blocks 3: no request fits: the smallest prompt and --max-tokens 128",
        ),
        (["--trace", "{trace}", "--blocks", 0], "'--blocks'"),
        (["--trace", "{trace}", "--block-tokens", 0], "'--block-tokens'"),
        (["--trace", "{trace}", "--max-tokens", -1], "'--max-tokens'"),
        (["--trace", "{trace}", "--quantile", 0], "'--quantile'"),
        (["--trace", "{trace}", "--quantile", 1.5], "'--quantile'"),
        (["--trace", "{trace}", "--quantile", "nan"], "'--quantile'"),
        (["--trace", "{trace}", "--tokens-per-s", 0], "'--tokens-per-s'"),
        (["--trace", "{trace}", "--tokens-per-s", "inf"], "'--tokens-per-s'"),
        (["--trace", "{trace}", "--prefill-tokens-per-s", -2], "'--prefill-tokens-per-s'"),
        (["--trace", "{trace}", "--speedup", 0], "'--speedup'"),
        (["--trace", "{trace}", "--requests", 0], "'--requests'"),
        (["--trace", "{trace}", "--no-plot", "--plot", "x.png"], "--no-plot: is at odds with --plot"),
        (["--trace", "{trace}", "--plot", "{trace}"], "--plot {trace}: would overwrite the file of --trace"),
        (["--trace", "{trace}", "--no-plot", "--json", "{trace}"], "would overwrite the file of"),
        (["--trace", "{trace}", "--tarce", 3], "no option --tarce"),
    ],
)
def test_errors_are_one_line_and_name_the_option(kvlab, trace: Path, words: list[Any], said: str) -> None:
    before = trace.read_text()
    status, out, err = kvlab("predict", *(str(word).format(trace=trace) for word in words))
    assert (status, out) == (2, "")
    assert said.format(trace=trace) in err
    assert err.startswith("kvlab: error: ")
    assert err.count("\n") == 1
    assert trace.read_text() == before


def test_a_faulty_trace_leaves_no_file(kvlab, trace: Path, tmp_path: Path) -> None:
    trace.write_text(trace.read_text() + "\n\noops\n")
    figures = tmp_path / "f.json"
    status, out, err = kvlab("predict", "--trace", trace, "--json", figures, "--plot", tmp_path / "p.png")
    assert (status, out) == (2, "")
    assert f"--trace {trace}: line 203: has 1 columns; expected 3" in err
    assert {path.name for path in tmp_path.iterdir()} == {trace.name}


def test_without_matplotlib_there_are_figures(kvlab, trace: Path, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    monkeypatch.setattr("kvlab.paths.OUT", tmp_path / "out")
    figures = tmp_path / "f.json"
    status, out, err = kvlab("predict", "--trace", trace, "--json", figures)
    assert status == 0
    assert "reserved, never used" in out
    assert err.startswith("No picture: matplotlib cannot be imported")
    assert "pip install" in err
    assert json.loads(figures.read_text())["requests"] == 200
    status, _, err = kvlab("predict", "--trace", trace, "--plot", tmp_path / "p.png")
    assert status == 2
    assert "--plot" in err
    assert "pip install" in err
    assert not (tmp_path / "p.png").exists()


def test_help_has_an_example(kvlab) -> None:
    status, out, _ = kvlab("predict", "--help")
    assert status == 0
    assert "kvlab predict --trace AzureLLMInferenceTrace_conv.csv \\\n" in out


def test_on_azure_the_quantile_is_met(kvlab, needs_data, tmp_path: Path) -> None:
    """Of code and conversation together, the first 3,000: what is predicted to suffice for 9 of 10 does."""
    path = tmp_path / "f.json"
    words = []
    for name in ("code", "conv"):
        words += ["--trace", needs_data(f"traces/AzureLLMInferenceTrace_{name}.csv")]
    assert kvlab("predict", *words, "--requests", 3000, "--no-plot", "--json", path)[0] == 0
    found = json.loads(path.read_text())
    predict = found["rules"]["predict"]
    assert sum(found["tasks"].values()) == 3000
    assert 87 < predict["sufficed_pct"] < 95
    assert predict["over_reserved"] < found["rules"]["maximum"]["over_reserved"] / 2
    assert predict["under_reserved"] < found["rules"]["nothing"]["under_reserved"] / 5
