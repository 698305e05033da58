"""`kvlab quality`: figures by hand, passages, kept results, the gate, the command and its errors."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from tiny_model import write_tiny

from kvlab import judging, paths, shipped
from kvlab.docs.producers import quality as pages
from kvlab.element_types import IN_IMAGES, NAMES, SEALED
from kvlab.models.image import Image, with_codecs
from kvlab.models.llama2c import BOS, read_checkpoint
from kvlab.models.load import load_checkpoint, load_image
from kvlab.models.reference import Reference
from kvlab.plots.quality_frontier import frontier
from kvlab.quality import cache, gate, ranges, score, text, trials
from kvlab.quality.harness import Harness
from kvlab.quality.kinds import CODECS, Arrangement
from kvlab.quality.score import Sums, compare, figures
from mpy_kv.per_layer import MixedGeometry


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    return write_tiny(tmp_path_factory.mktemp("tiny"), layers=2)


@pytest.fixture(scope="module")
def model(tiny):
    checkpoint = read_checkpoint(tiny[0])
    return Reference(checkpoint.config, checkpoint.weights)


PASSAGES = [[BOS, *ids] for ids in np.random.default_rng(3).integers(3, 320, size=(4, 47)).tolist()]


def harness(model, place=None, passages=PASSAGES):
    return Harness(model, passages, cache.Results(place, 1))


# --- figures


class Logits:
    """A model whose classifier is the identity."""

    def logits(self, x):
        return x


def test_figures_by_hand():
    """Two tokens to choose from: 3/4 and 1/4 become 1/2 and 1/2, or are turned round."""
    p, q = np.log([[0.75, 0.25]] * 2), np.log([[0.5, 0.5], [0.25, 0.75]])
    found = compare(Logits(), p, q, [0, 1])
    assert (found.tokens, found.agree) == (2, 1)
    assert found.reference_nats == pytest.approx(-math.log(0.75) - math.log(0.25))
    assert found.nats == pytest.approx(-math.log(0.5) - math.log(0.75))
    first = 0.75 * math.log(1.5) + 0.25 * math.log(0.5)
    assert found.kld == pytest.approx(first + 0.5 * math.log(3))
    late = compare(Logits(), p, q, [0, 1], first=1)
    assert (late.tokens, late.agree, late.kld) == (1, 0, pytest.approx(0.5 * math.log(3)))


def test_a_model_compared_with_itself():
    logits = np.random.default_rng(0).normal(size=(700, 5)).astype(np.float32)
    found = compare(Logits(), logits, logits, [0] * 700)
    assert (found.tokens, found.agree, found.kld) == (700, 700, 0)
    assert found.nats == found.reference_nats


def test_intervals_tell_how_much_passages_differ():
    same = [Sums(100, 110, 100, 3, 90)] * 9
    found = figures(same)
    assert found["perplexity_change_pct"] == pytest.approx(100 * math.expm1(0.1))
    assert found["perplexity_change_interval_pct"] == pytest.approx([100 * math.expm1(0.1)] * 2)
    assert (found["kld"], found["top1_pct"]) == (pytest.approx(0.03), 90)
    # The mean of n passages of deviation d has one of d / sqrt(n), and 95 % lie within 1.96 of these.
    rng = np.random.default_rng(1)
    apart = [Sums(100, 100 + x, 100, 3, 90) for x in rng.normal(0, 1, 60)]
    low, high = figures(apart)["perplexity_change_interval_pct"]
    deviation = np.std([p.nats for p in apart]) / 100 / math.sqrt(60)
    assert high - low == pytest.approx(200 * 1.96 * deviation, rel=0.1)
    assert low < figures(apart)["perplexity_change_pct"] < high
    assert figures(apart[:1])["perplexity_change_interval_pct"] is None


def test_what_two_trials_share_falls_out_of_their_difference():
    """Passages differ by far more than the two trials do, and that is not in the interval."""
    rng = np.random.default_rng(2)
    hard, more = rng.normal(0, 9, 40), rng.normal(1, 0.1, 40)
    ours = [Sums(100, 200 + h + m, 200, 5 + h / 9 + m, 90) for h, m in zip(hard, more)]
    theirs = [Sums(100, 200 + h, 200, 5 + h / 9, 90) for h in hard]
    found = score.against(ours, theirs)
    assert found["perplexity_change_pct"] == pytest.approx(100 * math.expm1(more.mean() / 100))
    assert found["kld_change"] == pytest.approx(more.mean() / 100)
    low, high = found["kld_change_interval"]
    assert high - low == pytest.approx(2 * 1.96 * more.std() / math.sqrt(40) / 100, rel=0.15)
    low, high = found["perplexity_change_interval_pct"]
    assert 0 < low < found["perplexity_change_pct"] < high
    alone = figures(ours)
    assert np.diff(alone["kld_interval"]) > 5 * np.diff(found["kld_change_interval"])
    assert alone["kld_interval"][0] < alone["kld"] < alone["kld_interval"][1]
    assert score.against(ours[:1], theirs[:1])["kld_change_interval"] is None


def test_passages_count_by_their_tokens():
    found = figures([Sums(10, 20, 10, 1, 10), Sums(90, 90, 90, 0, 0)])
    assert found["perplexity_change_pct"] == pytest.approx(score.percent(0.1))
    assert (found["kld"], found["top1_pct"]) == (0.01, 10)


# --- text


def test_short_stories_are_joined():
    assert list(text.joined([[1, 2, 3, 4], [1, 5], [1, 6, 7], [1]], 4)) == [[1, 2, 3, 4], [1, 5, 1, 6]]
    assert list(text.joined([[1, 2]], 4)) == [[1, 2]]


@pytest.mark.parametrize("name", shipped.TELLERS)
def test_the_stories_of_a_shipped_model(name):
    """What `kvlab sample` wrote: each fills the context, so that a passage is the beginning of one story."""
    words = load_checkpoint(shipped.checkpoint(name))[1]
    lines = [json.loads(line) for line in shipped.told(name).read_text(encoding="utf-8").splitlines()]
    assert len(lines) == 48
    assert {line["split"] for line in lines} == {"heldout"}
    encoded = [words.encode(line["text"]) for line in lines]
    assert min(map(len, encoded)) >= 512
    found = text.passages(shipped.told(name), words, 512, 48 * 511)
    assert found == [ids[:512] for ids in encoded]


def test_nobody_is_judged_on_what_it_told(monkeypatch, tmp_path):
    """Without the data folder: the models that ship, and any other on the first one's stories."""
    monkeypatch.setenv(paths.DATA_ENV, str(tmp_path))
    found = judging.pairs()
    assert [pair.model for pair in found] == [shipped.checkpoint(name) for name in shipped.NAMES]
    for name, pair in zip(shipped.NAMES, found, strict=True):
        assert pair.text in [shipped.told(other) for other in shipped.TELLERS if other != name]
        assert pair.text.name in pair.label
        for same in (name, name.upper(), str(shipped.image(name)), str(shipped.checkpoint(name))):
            assert judging.pairs(same)[0].text == pair.text
    other, _ = write_tiny(tmp_path / "tiny")
    assert judging.pairs(str(other)) == [
        judging.Pair(other, shipped.told("stories"), "told-by-stories.jsonl, seed 1001")
    ]
    mine = tmp_path / "mine.txt"
    mine.write_text("Mine.")
    assert {(pair.text, pair.label) for pair in judging.pairs(None, str(mine))} == {(mine, "mine.txt")}


def test_with_the_data_folder_stories260k_is_judged_too(monkeypatch, tmp_path):
    for name in (paths.STORIES260K, paths.STORIES):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text("")
    monkeypatch.setenv(paths.DATA_ENV, str(tmp_path))
    *ours, last = judging.pairs()
    assert [pair.model for pair in ours] == [shipped.checkpoint(name) for name in shipped.NAMES]
    stories = tmp_path / "corpus" / "stories.jsonl"
    assert last == judging.Pair(
        tmp_path / "stories260K" / "stories260K.bin", stories, "held-out stories of stories.jsonl"
    )


def test_images_are_models_too(tmp_path, tiny):
    found = text.load_model(shipped.image("stories"))
    floats = text.load_model(shipped.checkpoint("stories"))
    assert found.reference.config == floats.reference.config
    assert 0 < np.abs(found.reference.w.wk - floats.reference.w.wk).max() < 0.1
    assert found.crc32 != floats.crc32


# --- what is kept


def test_results_are_kept_by_passage_and_trial(model, tmp_path):
    counted = []
    first = harness(model, tmp_path)
    tried = [trials.stored(first.uniform("int8")), trials.stored(first.uniform("int4"))]
    assert first.steps(tried) == 8
    found = first.measure(tried, counted.append)
    assert sum(counted) == 8
    assert found[0] != found[1]
    again = harness(model, tmp_path)
    assert again.steps(tried) == 0
    assert again.measure(tried) == found
    more = harness(model, tmp_path, [*PASSAGES, PASSAGES[0][::-1]])
    assert more.steps(tried) == 2
    assert [each[:4] for each in more.measure(tried)] == found
    assert Harness(model, PASSAGES, cache.Results(tmp_path, 2)).steps(tried) == 8  # another model
    assert harness(model).steps(tried) == 8
    fresh = Harness(model, PASSAGES[:1], cache.Results(tmp_path, 1, fresh=True))
    assert fresh.steps(tried) == 2
    fresh.measure(tried)
    assert (fresh.steps(tried), harness(model, tmp_path).steps(tried)) == (0, 0)


def test_damaged_results_are_measured_anew(model, tmp_path):
    one = harness(model, tmp_path)
    tried = [trials.stored(one.uniform("int8"))]
    found = one.measure(tried)
    (kept,) = tmp_path.rglob("*.json")
    for damage in (b"", b"[]", b'{"trial": "another", "passages": {}}', kept.read_bytes()[:-9], b"\xff"):
        kept.write_bytes(damage)
        assert harness(model, tmp_path).steps(tried) == 4
    assert harness(model, tmp_path).measure(tried) == found


def test_no_place_for_results_is_no_error(model, tmp_path, monkeypatch):
    place = tmp_path / "file"
    place.write_bytes(b"")
    one = harness(model, place)
    tried = [trials.stored(one.uniform("float16"))]
    assert len(one.measure(tried)[0]) == 4
    monkeypatch.setenv(cache.PLACE_ENV, str(tmp_path))
    assert cache.folder() == tmp_path / "kvlab" / "quality"


def test_old_states_of_the_sources_go(tmp_path):
    for i in range(9):
        (tmp_path / f"old{i}").mkdir()
    cache.Results(tmp_path, 1)
    assert len(list(tmp_path.iterdir())) == 4


# --- the gate


def test_the_gate_stays_within_its_budget(model):
    one = harness(model)
    chooser = gate.Gate(one, 1.0, 48)
    uniform = chooser.uniform()
    assert list(uniform) == [name for name in CODECS if name not in ("float32", "int4-naive")]
    for budget in (uniform["int8"].kld * 1.01, uniform["int8-int4"].kld * 1.5):
        chooser = gate.Gate(one, budget, 48)
        steps = []
        found = chooser.choose(steps.append)
        assert found.kld <= budget
        held = [uniform[name] for name in gate.IN_IMAGES]
        assert found.bytes <= min(each.bytes for each in held if each.kld <= budget)
        assert sum(steps) <= chooser.steps
        assert all(kld > budget for kld in chooser.refused.values())
        # Nothing that saves bytes is left that would still fit.
        for move in chooser.moves:
            codecs = list(found.codecs)
            codecs[move.layer] = move.codec
            changed = chooser.measure(tuple(codecs))
            if changed.bytes < found.bytes:
                assert changed.kld > budget
        assert set(found.codecs) <= set(NAMES)
        assert found.bytes == Arrangement.of(found.codecs, one.shape).bytes(48).exact
    least = min(uniform[name].kld for name in gate.IN_IMAGES)
    assert gate.Gate(one, least / 2, 48).choose() is None


def test_the_gate_chooses_among_what_devices_have(model, monkeypatch):
    """What no device has is measured and never chosen; what takes all layers is taken by all or none."""
    one = harness(model)
    monkeypatch.setattr(gate, "OF_A_LAYER", ("int8",))
    monkeypatch.setattr(gate, "IN_IMAGES", ("int8",))
    chooser = gate.Gate(one, 1.0, 512)
    assert chooser.choose().codecs == ("int8", "int8")
    assert "int4-float16" in chooser.uniform()
    monkeypatch.setattr(gate, "IN_IMAGES", ("int8", "int4"))
    assert chooser.choose().codecs == ("int4", "int4")


def test_a_device_s_names_are_those_of_an_image_and_a_cache():
    assert set(IN_IMAGES) <= set(CODECS)
    assert set(gate.OF_A_LAYER) == set(gate.IN_IMAGES) - {SEALED}
    for name in gate.OF_A_LAYER:
        assert MixedGeometry(1, 2, 1, 8, codec=[name]).token_bytes() > 0


# --- pictures


def test_the_frontier_is_what_nothing_beats():
    points = {"a": (1, 9), "b": (2, 5), "c": (3, 6), "d": (4, 1), "e": (4, 2)}
    assert frontier(points) == ["a", "b", "d"]


def test_ranges_of_keys(model):
    found = ranges.key_ranges(model, PASSAGES)
    keys = []
    for ids in PASSAGES:
        model.forward(ids, watch=lambda layer, _q, k, _v: keys.append(k) if layer == 1 else None)
    flat = np.concatenate(keys).reshape(-1, found.low.shape[1])
    assert found.constant[1] == pytest.approx(np.abs(flat.mean(0)), rel=1e-4)
    assert (found.low < found.high).all()
    share = ((flat >= found.low[1]) & (flat <= found.high[1])).mean()
    assert share == pytest.approx(0.9, abs=0.02)
    # A step of a token's group is a seventh of its largest magnitude, of a channel a fifteenth of its span.
    blocks = np.concatenate([each[: len(each) // 16 * 16] for each in keys]).reshape(-1, 16, 16)
    assert found.channel_step[1] == pytest.approx(np.ptp(blocks, axis=1).mean(0) / 15, rel=0.01)
    assert found.token_step[1] == pytest.approx(np.abs(blocks).max(2).mean() / 7, rel=0.01)
    assert found.spread[1] == pytest.approx(blocks.std(1).mean(0), rel=1e-4)
    assert found.ratio().shape == (2,)


# --- the tables of the documentation


def _told(change, interval, kld=0.5, beside=None):
    found = {"perplexity_change_pct": change, "perplexity_change_interval_pct": interval}
    found |= {"kld": kld, "kld_interval": [kld / 2, 2 * kld]}
    if beside:
        keys = ("perplexity_change_interval_pct", "kld_change_interval")
        found["against_window"] = dict(zip(keys, beside, strict=True))
    return found


def _model(name, lru):
    stored = {"bytes_per_token": 340.0, "of_float16": 0.53125}
    kept = {str(budget): _told(2.0, [1.5, 2.5]) for budget in pages.BUDGETS}
    return {
        "model": f"{name}.bin",
        "int8": {**_told(-0.004, [-0.02, 0.013]), **stored},
        "int4-naive": {**_told(288.4, [278, 297.2], 1.25), **stored},
        "policies": {
            "window": kept,
            "lru": {str(budget): lru for budget in pages.BUDGETS},
            "compress": {"0.5": _told(1, [0.5, 1.5])},
        },
    }


def test_the_tables_of_the_documentation():
    models = [
        _model("one", _told(3.0, [2, 4], beside=([0.1, 2], [-1, -0.1]))),
        _model("two", _told(-1.0, [-2, 1], beside=([-3, -2], [-1, 1]))),
    ]
    head = "|  | one | two |\n| --- | ---: | ---: |\n"
    same = "0.00 % (-0.02 .. +0.01)"
    naive = "+288 % (+278 .. +297)"
    want = f"{head}| `int8` | {same} | {same} |\n| `int4-naive` | {naive} | {naive} |"
    assert pages.codec_table(models, pages.lost) == want
    assert "| `int4-naive` | 1.2500 (0.6250 .. 2.5000) |" in pages.codec_table(models, pages.drifted)
    assert "| `int8` | 340.0 (53.1 %) |" in pages.codec_table(models, pages.stored)
    assert pages.codec_range(models).splitlines() == [
        "| element type | bytes a token of `one` | change of perplexity |",
        "| --- | ---: | ---: |",
        "| `int8` | 340.0 | 0.00 % |",
        "| `int4-naive` | 340.0 | +288 % |",
    ]
    assert pages.policy_range(models, 128).splitlines()[2:] == [
        "| `window` | +2.00 % |",
        "| `lru` | -1.00 .. +3.00 % |",
    ]
    want = "| `window` | +2.00 % (+1.50 .. +2.50) | +2.00 % (+1.50 .. +2.50) |"
    assert pages.policy_table(models, 64, pages.lost).splitlines()[2] == want
    assert pages.verdict_table(models) == f"{head}| `lru` | > <; > < | < =; < = |"
    lost = "+1.00 % (+0.50 .. +1.50)"
    assert pages.compress_table(models, pages.lost) == f"{head}| `compress` 0.5 | {lost} | {lost} |"


# --- the command


def test_all_shipped_models_in_one_file(kvlab, tmp_path, monkeypatch):
    """Each on a text of its own, its tables under its name, its pictures beside the others'."""
    monkeypatch.setenv(cache.PLACE_ENV, str(tmp_path / "cache"))
    monkeypatch.setenv(paths.DATA_ENV, str(tmp_path / "nothing"))
    monkeypatch.setattr(text, "PASSAGE_TOKENS", 64)
    out, pictures = tmp_path / "figures.json", tmp_path / "pictures"
    words = ("quality", "--tokens", 200, "--policies", "window,lru-attention", "--budgets", 20)
    status, shown, err = kvlab(*words, "--codecs", "int8,int4-naive", "--json", out, "--out", pictures)
    assert (status, err) == (0, "")
    found = json.loads(out.read_text())["models"]
    assert [each["model"] for each in found] == [f"{name}.bin" for name in shipped.NAMES]
    for name, each in zip(shipped.NAMES, found, strict=True):
        assert f"{name}.bin" in shown
        assert each["text"] == f"told-by-{shipped.judge(name)}.jsonl, seed 1001"
        assert (each["passages"], each["tokens"]) == (4, 4 * 63)
        assert 1 < each["float32_nats"] < 3
        assert 0 < each["int8"]["kld"] < each["int4-naive"]["kld"]
        mine, window = (each["policies"][policy]["20"] for policy in ("lru-attention", "window"))
        beside = mine["against_window"]
        assert beside["kld_change"] == pytest.approx(mine["kld"] - window["kld"])
        assert beside["kld_change_interval"][0] <= beside["kld_change"] <= beside["kld_change_interval"][1]
        assert "against_window" not in window
    assert "Against the window" in shown
    assert max(len(line) for line in shown.splitlines() if not line.startswith("Picture: ")) <= 80
    made = {f"quality-{kind}-{name}.png" for kind in ("frontier", "budget", "keys") for name in shipped.NAMES}
    assert {path.name for path in pictures.iterdir()} == made
    for refused in (("--image", tmp_path / "x.mkvm", "--gate", 1), ("--tokenizer", __file__)):
        status, _, err = kvlab(*words, *refused, "--no-plot")
        assert (status, "name it as --model" in err, err.count("\n")) == (2, True, 1)


def test_sampling_repeats_what_ships(kvlab, tmp_path):
    """A tiny model, twice; what ships is told by the same command, at length."""
    path, _ = write_tiny(tmp_path / "tiny", seq_len=24)
    made = []
    for name in ("a.jsonl", "b.jsonl"):
        words = ("sample", "--model", path, "--stories", 3, "--least", 5, "--seed", 2)
        status, shown, err = kvlab(*words, "--out", tmp_path / name, "--json", tmp_path / "f.json")
        assert (status, err) == (0, "")
        assert "3 stories" in shown
        made.append((tmp_path / name).read_text())
    assert made[0] == made[1]
    lines = [json.loads(line) for line in made[0].splitlines()]
    figures = json.loads((tmp_path / "f.json").read_text())
    assert (figures["stories"], figures["seed"], figures["least_tokens"]) == (3, 2, 5)
    assert figures["bytes"] == sum(len(line["text"].encode()) for line in lines)
    status, _, err = kvlab("sample", "--model", path, "--least", 25, "--out", tmp_path / "c.jsonl")
    assert (status, "--least 25" in err, err.count("\n")) == (2, True, 1)
    assert not (tmp_path / "c.jsonl").exists()


@pytest.fixture
def place(tmp_path, monkeypatch, tiny):
    monkeypatch.setenv(cache.PLACE_ENV, str(tmp_path / "cache"))
    story = tmp_path / "story.txt"
    story.write_text("The old sailor sat on the stones and told his tale to the children.\n" * 12)
    return story


def test_the_command(kvlab, place, tiny, tmp_path):
    out = tmp_path / "figures.json"
    words = ("quality", "--model", tiny[0], "--text", place, "--tokens", 150, "--budgets", "24,9")
    status, shown, err = kvlab(*words, "--gate", 0.5, "--json", out, "--out", tmp_path / "pictures")
    assert (status, err) == (0, "")
    found = json.loads(out.read_text())
    for name in (*CODECS, "policies"):
        assert name in found or name == "float32"
        assert name in shown or name == "policies"
    for name in ("float16", "int8", "int8-int4", "int4", "sparse"):
        assert {"perplexity_change_pct", "kld", "top1_pct", "bytes_per_token"} <= set(found[name])
    assert found["float16"]["kld"] < found["int8"]["kld"] < found["int4-naive"]["kld"]
    assert found["float16"]["bytes_per_token"] == 2 * 2 * 2 * 16
    assert found["int8"]["bytes_per_token"] == 2 * 2 * 18
    assert found["passages"] == 3
    assert found["tokens"] == 3 * 63
    assert set(found["policies"]["window"]) == {"9", "24"}
    assert found["policies"]["window"]["24"]["kld"] < found["policies"]["window"]["9"]["kld"]
    assert set(found["policies"]["compress"]) == {"0.5", "0.25"}
    assert found["gate"]["kld"] <= 0.5
    assert len(found["gate"]["layers"]) == 2
    assert set(found["gate"]["layers"]) <= set(NAMES)
    assert {name for name, each in found["gate"]["codecs"].items() if not each["held"]} >= {"int4-float16"}
    assert "no device has it" in shown
    for name in ("quality-frontier.png", "quality-budget.png", "quality-keys.png"):
        assert (tmp_path / "pictures" / name).read_bytes().startswith(b"\x89PNG")
    # Kept: the same again, to the last bit.
    assert kvlab(*words, "--no-plot", "--json", out)[0] == 0
    again = json.loads(out.read_text())
    assert again.pop("settings") == {**found.pop("settings"), "gate": None}
    assert again == {key: value for key, value in found.items() if key != "gate"}


def test_the_gate_of_the_command_refuses(kvlab, place, tiny):
    words = ("quality", "--model", tiny[0], "--text", place, "--tokens", 60, "--no-plot")
    status, shown, err = kvlab(*words, "--codecs", "none", "--policies", "none", "--gate", 1e-12)
    assert status == 1
    assert "refused" in shown
    assert "within" not in shown
    assert err.startswith("kvlab: error: --gate 1e-12:")
    assert err.count("\n") == 1


def test_the_choice_goes_into_an_image(kvlab, place, tiny, tmp_path):
    """Of a checkpoint, converted, and of an image, whose own choice is replaced."""
    words = ("quality", "--text", place, "--tokens", 60, "--no-plot")
    words += ("--codecs", "none", "--policies", "none")
    target, out, again = tmp_path / "a.mkvm", tmp_path / "a.json", tmp_path / "b.mkvm"
    status, shown, err = kvlab(
        *words, "--model", tiny[0], "--gate", 0.02, "--image", target, "--json", out
    )
    assert (status, err) == (0, "")
    assert "Wrote" in shown
    found = json.loads(out.read_text())["gate"]
    made = Image.read(target)
    assert found["image"] == str(target)
    assert list(made.codecs) == found["layers"]
    plain = load_image(tiny[0])
    assert plain.codecs is None
    assert with_codecs(plain, found["layers"]) == made.data
    assert kvlab(*words, "--model", target, "--gate", 9, "--image", again, "--json", out)[0] == 0
    assert list(Image.read(again).codecs) == json.loads(out.read_text())["gate"]["layers"]
    assert len(again.read_bytes()) == len(made.data)
    # Nothing to write: nothing written.
    status, _, err = kvlab(*words, "--model", tiny[0], "--gate", 1e-12, "--image", tmp_path / "c.mkvm")
    assert (status, (tmp_path / "c.mkvm").exists()) == (1, False)
    status, _, err = kvlab(*words[:-4], "--model", tiny[0], "--image", tmp_path / "c.mkvm")
    assert (status, err.count("\n")) == (2, 1)
    assert "pass a budget as --gate" in err
    status, _, err = kvlab(*words, "--model", tiny[0], "--gate", 9, "--image", tiny[0])
    assert (status, "would overwrite" in err) == (2, True)


def test_policies_on_sealed_blocks(kvlab, place, tiny, tmp_path):
    out = tmp_path / "figures.json"
    words = ("quality", "--model", tiny[0], "--text", place, "--tokens", 60, "--codecs", "none", "--no-plot")
    assert kvlab(*words, "--policy-codec", "int4", "--budgets", 20, "--json", out)[0] == 0
    found = json.loads(out.read_text())
    assert set(found["policies"]) == {"window", "sinks", "sinks-near"}
    assert found["policy_codec"] == "int4"
    status, _, err = kvlab(*words, "--policy-codec", "int4", "--policies", "window,lru-attention")
    assert (status, "--policies lru-attention" in err) == (2, True)


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (("--codecs", "int5"), "--codecs int5"),
        (("--policies", "windows"), 'did you mean "window"'),
        (("--budgets", "many"), "--budgets many"),
        (("--budgets", "64"), "--budgets 64"),
        (("--budgets", "5"), "--budgets 5"),
        (("--policy-codec", "int4,int8"), "--policy-codec"),
        (("--codecs", "none", "--policies", "none"), "--codecs none"),
        (("--no-plot", "--out", "x"), "--no-plot"),
        (("--model", "nowhere.bin"), "--model nowhere.bin"),
        (("--text", "nowhere.txt"), "--text nowhere.txt"),
        (("--gate", "0"), "--gate"),
        (("--gate", "nan"), "--gate"),
    ],
)
def test_bad_input(kvlab, place, tiny, words, named):
    given = ["quality", "--tokens", 60]
    if "--model" not in words:
        given += ["--model", tiny[0]]
    if "--text" not in words:
        given += ["--text", place]
    status, out, err = kvlab(*given, *words)
    assert (status, out) == (2, "")
    assert named in err
    assert err.count("\n") == 1


def test_short_texts_and_contexts(kvlab, place, tiny, tmp_path):
    words = ("quality", "--model", tiny[0], "--no-plot", "--text", place)
    place.write_text("The old sailor sat on.")
    out = tmp_path / "figures.json"
    assert kvlab(*words, "--json", out)[0] == 0
    found = json.loads(out.read_text())
    assert (found["passages"], found["int8"]["perplexity_change_interval_pct"]) == (1, None)
    assert 16 <= found["passage_tokens"] <= 32
    assert set(found["policies"]) == {"compress"}  # no budget evicts anything
    place.write_text("Hi")
    status, _, err = kvlab(*words)
    assert (status, "--text" in err, err.count("\n")) == (2, True, 1)
    short, _ = write_tiny(tmp_path / "short", seq_len=15)
    status, _, err = kvlab("quality", "--model", short)
    assert (status, "15 tokens" in err, err.count("\n")) == (2, True, 1)


def test_a_model_that_a_codec_cannot_store(kvlab, place, tmp_path):
    path, _ = write_tiny(tmp_path / "loud", layers=1)
    checkpoint = read_checkpoint(path)
    data = bytearray(path.read_bytes())
    wv = checkpoint.weights.wv
    at = bytes(data).index(np.ascontiguousarray(wv, "<f4").tobytes())
    data[at : at + wv.nbytes] = (wv * 1e6).astype("<f4").tobytes()
    path.write_bytes(data)
    words = ("quality", "--model", path, "--text", place, "--tokens", 60, "--policies", "none", "--no-plot")
    status, _, err = kvlab(*words, "--codecs", "float16")
    assert status == 1
    assert "values of layer 0" in err
    assert "--codecs" in err
    assert kvlab(*words, "--codecs", "int8")[0] == 0
