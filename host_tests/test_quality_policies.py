"""Token eviction of `kvlab quality`: victims by hand, protected tokens, ratios, decoding with a policy."""

from __future__ import annotations

import numpy as np
import pytest
from tiny_model import write_tiny

from kvlab.models.llama2c import read_checkpoint
from kvlab.models.reference import Reference
from kvlab.quality import decode, policies, teacher, trials
from kvlab.quality.kinds import CODECS, Arrangement, Shape
from kvlab.quality.policies import POLICIES, Policy, Table, compress, keep_count, leaving
from kvlab.quality.teacher import View


def table_of(weights, capacity=None):
    """A table that took a token a row of `weights`; row i is what token 0..i gets in step i."""
    table = Table(1, capacity or len(weights))
    for i, row in enumerate(weights):
        table.insert(np.array([i]))
        row = np.array([row], float)
        assert row.shape == (1, i + 1)
        table.watch(row, row)
    return table


# Token 0 gets much and early, token 1 is used last, token 2 never, token 3 is the newest.
STEPS = [[1.0], [0.9, 0.1], [0.9, 0.05, 0.05], [0.05, 0.8, 0.1, 0.05]]


def victim(name, budget=4, steps=STEPS):
    table = table_of(steps)
    return int(table.position[0, POLICIES[name].victims(table, budget)[0]])


def test_victims_by_hand():
    """The thresholds are 0.5 / n: 0.5, 0.25, 0.167, 0.125."""
    assert victim("window") == 0
    # Used last: 0 in step 2, 1 in step 3, 2 when it came (0.1 in step 3 is too little), 3 is the newest.
    assert table_of(STEPS).used[0].tolist() == [2, 3, 2, 3]
    assert victim("lru-attention") == 0  # of 0 and 2 the older
    # Added up: 2.85, 0.95, 0.15, 0.05, the newest protected.
    assert table_of(STEPS).mass[0] == pytest.approx([2.85, 0.95, 0.15, 0.05])
    assert victim("lfu") == 2
    assert victim("heavy-hitters") == 1  # 2 and 3 are the newer half
    decayed = [0.95**3 + 0.9 * 0.95**2 + 0.9 * 0.95 + 0.05, 0.1 * 0.95**2 + 0.05 * 0.95 + 0.8]
    assert table_of(STEPS).decayed[0, :2] == pytest.approx(decayed)
    assert victim("lfu-decay") == 1


def test_policies_differ_from_each_other():
    """A use keeps a token from LRU, not from the window; a half window keeps the newer half from LRU."""
    steps = [[1.0], [0.9, 0.1], [0.3, 0.3, 0.4], [0.6, 0.05, 0.05, 0.3], [0.6, 0.1, 0.2, 0.05, 0.05]]
    found = {name: victim(name, 5, steps) for name in ("window", "lru-attention", "lfu", "window-lru")}
    assert found == {"window": 0, "lru-attention": 1, "lfu": 3, "window-lru": 1}
    # Nobody looks at 0 any more, and the window of two protects 3 and 4.
    late = [*steps[:3], [0.05, 0.4, 0.5, 0.05], [0.05, 0.45, 0.4, 0.05, 0.05]]
    assert victim("window-lru", 5, late) == 0


def test_the_strongest_head_is_a_use_of_its_own():
    table = Table(1, 20)
    for i in range(20):
        table.insert(np.array([i]))
        n = i + 1
        mean = np.full((1, n), 1 / n)
        most = mean.copy()
        most[0, 2:3] = 0.9
        mean[0, 1:2] = 0.1 / n  # too little for the mean
        table.watch(most, mean)
    assert table.used[0, 1] < 19
    assert table.used[0, 2] == table.used[0, 0] == 19
    assert table.peaked[0].tolist() == [0, 1, 19, *range(3, 20)]


def test_equal_ones_leave_by_age():
    table = table_of([[1.0], [0.5, 0.5], [0.0, 0.0, 1.0], [0.25] * 4])
    table.position[0] = [3, 1, 0, 2]  # slots tell nothing of age
    table.used[:] = 3
    order = leaving(table, table.used, 1)
    assert table.position[0, order[0]].tolist() == [0, 1, 2, 3]


def test_protecting_nothing_protects_nothing():
    """WIN-9: a 0 is no slice over everything."""
    table = table_of(STEPS)
    table.used[0] = [5, 5, 5, 1]
    assert leaving(table, table.used, 0)[0, 0] == 3
    assert leaving(table, table.used, 1)[0, 0] == 0
    plain = Policy("lru", policies.used)
    assert plain.protected(4) == 1  # the token just stored
    assert POLICIES["window-lru"].protected(4) == 2
    assert POLICIES["window-lru"].protected(1) == 1


def test_sinks_never_leave():
    steps = [[1 / (i + 1)] * (i + 1) for i in range(8)]
    table = table_of(steps)
    assert POLICIES["sinks"].victims(table, 8)[0] == 4
    assert leaving(table, table.position, 2, 4)[0].tolist() == [4, 5, 0, 1, 2, 3, 6, 7]


@pytest.mark.parametrize(
    ("tokens", "ratio", "kept"),
    [(10, 0.02, 1), (100, 0.5, 50), (50, 0.5, 25), (10, 1, 10), (1, 0.5, 1), (30, 0.1, 3), (5, 0.5, 3)],
)
def test_keep_count(tokens, ratio, kept):
    """WIN-9."""
    assert keep_count(tokens, ratio) == kept


@pytest.mark.parametrize("ratio", [0, -0.1, 1.01, float("nan")])
def test_ratios_that_mean_nothing(ratio):
    with pytest.raises(ValueError, match="keep ratio"):
        keep_count(10, ratio)


def test_compressing_twice_by_half():
    """WIN-9: 100 tokens leave 50 and then 25, the worthiest, in the order of their positions."""
    table = Table(2, 100)
    rng = np.random.default_rng(0)
    worth = rng.permuted(np.tile(np.arange(100.0), (2, 1)), axis=1)
    for i in range(100):
        table.insert(np.array([i, i]))
    table.mass[:] = worth
    compress(table, 0.5, policies.mass)
    assert table.count == 50
    assert compress(table, 0.5, policies.mass).shape == (2, 25)
    assert table.count == 25
    for row in range(2):
        assert table.position[row, :25].tolist() == sorted(np.flatnonzero(worth[row] >= 75))


def test_compressing_keeps_sinks_and_the_newest():
    table = Table(1, 40)
    for i in range(40):
        table.insert(np.array([i]))
    table.mass[0] = np.arange(40)[::-1]
    compress(table, 0.25, policies.mass, protect_last=4, sinks=2)
    assert table.position[0, : table.count].tolist() == [0, 1, 2, 3, 4, 5, 36, 37, 38, 39]
    compress(table, 0.02, policies.mass, protect_last=4, sinks=2)  # at least what is protected
    assert table.position[0, : table.count].tolist() == [0, 1, 36, 37, 38, 39]


# --- decoding with them


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    path, _ = write_tiny(tmp_path_factory.mktemp("tiny"), layers=2, heads=4, kv_heads=2)
    checkpoint = read_checkpoint(path)
    return Reference(checkpoint.config, checkpoint.weights, np.float64)


def arrangement(model, codec):
    c = model.config
    return Arrangement.uniform(codec, c.layers, Shape.of(c.kv_heads, c.head_dim))


PASSAGES = np.random.default_rng(7).integers(3, 320, size=(3, 40)).tolist()


def test_decoding_everything_is_the_whole_passage_at_once(model):
    """Also with keys and values as a codec stores them, token by token."""
    for codec in ("float32", "int8", "int8-int4", "sparse"):
        stored = arrangement(model, codec)
        found = decode.hidden(model, PASSAGES, 40, decode.growing, store=trials._storing(stored))
        for ids, row in zip(PASSAGES, found, strict=True):
            assert np.abs(row - teacher.hidden(model, ids, stored)).max() < 1e-9


@pytest.mark.parametrize("name", ["window", "sinks"])
def test_policies_of_position_are_views(model, name):
    """Token by token through the table, and at once with a mask: the same."""
    policy, stored = POLICIES[name], arrangement(model, "float32")
    found = decode.hidden(model, PASSAGES, 9, decode.evicting(policy, 9))
    at_once = trials.evicted(policy, 9, stored).hidden(model, PASSAGES)
    assert np.abs(found - at_once).max() < 1e-9
    everything = teacher.hidden(model, PASSAGES[0], stored)
    assert np.abs(found[0] - everything).max() > 1e-3
    assert np.abs(found[0, :9] - everything[:9]).max() < 1e-9


def test_what_is_evicted_is_gone_exactly(model):
    """Keys and values of a token that left, however large, change nothing after it."""
    seen = []

    def run(poison):
        one = decode.Run(model, 1, 8)
        slot = decode.evicting(POLICIES["lru-attention"], 8)
        out = []
        for token in PASSAGES[0]:
            at = slot(one.table)
            if poison and one.table.count == 8:
                one.k[:, 0, :, at[0]] = 1e6
                one.v[:, 0, :, at[0]] = 1e6
            out.append(one.step(np.array([token]), at))
            seen.append(sorted(one.table.position[0, : one.table.count]))
        return np.array(out)

    clean = run(False)
    assert (run(True) == clean).all()
    assert all(len(set(each)) == len(each) <= 8 for each in seen)
    assert all(i % 40 in each for i, each in enumerate(seen))  # the newest token stays


def test_compressing_in_the_middle(model):
    """Until then everything is seen, afterwards what stayed and all that came since."""
    counts = []

    def after(run):
        if run.table.step == 20:
            run.keep(compress(run.table, 0.5, policies.decayed))
        counts.append(run.table.count)

    found = decode.hidden(model, PASSAGES, 40, decode.growing, after)
    assert counts == [*range(1, 20), 10, *range(11, 31)]
    whole = np.stack([teacher.hidden(model, ids, arrangement(model, "float32")) for ids in PASSAGES])
    difference = np.abs(found - whole).max(axis=(0, 2))
    assert difference[:20].max() < 1e-9
    assert difference[20:].min() > 1e-6
    kept_all = trials.compressed(1, 20, arrangement(model, "float32")).hidden(model, PASSAGES)
    assert np.abs(kept_all - whole).max() < 1e-9


def test_sealed_blocks_refuse_a_choice_of_tokens(model):
    for codec in CODECS:
        sealed = "sealed" in CODECS[codec][0]
        if sealed:
            with pytest.raises(ValueError, match="sealed"):
                trials.evicted(POLICIES["lru-attention"], 8, arrangement(model, codec))
        windowed = trials.evicted(POLICIES["window"], 8, arrangement(model, codec))
        assert windowed.hidden(model, PASSAGES).shape == (3, 40, model.config.dim)


@pytest.mark.parametrize("view", [View(), View(40), View(37, 3), View(37, 3, near=True), View(None, 5)])
def test_queries_see_blocks_sealed_when_they_are(model, view):
    """Query by query: blocks but the query's own and the one before are int4, sinks int8 for ever."""
    stored, ids = arrangement(model, "int4"), PASSAGES[1] + PASSAGES[2]
    at, x = np.arange(len(ids)), model.w.embed[ids]
    for layer, kinds in enumerate(stored.kinds()):
        q, k, v = model.project(layer, x)
        near = model.rotate(q, np.minimum(at, view.sinks + (view.window or 0) - 1))
        q, k = model.rotate(q, at), model.rotate(k, at)
        seen = [
            kind.read(each.astype(np.float32), stored.shape, view.sinks) for kind, each in zip(kinds, (k, v))
        ]
        rows = []
        for i in at:
            there = [j for j in range(i + 1) if view.window is None or j < view.sinks or i - j < view.window]
            old = [j >= view.sinks and (j - view.sinks) // 16 <= (i - view.sinks) // 16 - 2 for j in there]
            keys, values = (
                np.where(np.array(old)[:, None, None], each.old[there], each.new[there]).astype(float)
                for each in seen
            )
            scores = model.scores(q[i : i + 1], keys)
            if view.near:
                first = [n for n, j in enumerate(there) if j < view.sinks]
                scores[:, :, first] = model.scores(near[i : i + 1], keys[first])
            rows.append(model.mix(scores, values)[0])
        x = model.finish(layer, x, np.array(rows))
    found = teacher.hidden(model, ids, stored, view)
    assert np.abs(found - x).max() < 1e-9
    assert np.abs(found - teacher.hidden(model, ids, arrangement(model, "int8"), view)).max() > 1e-4
