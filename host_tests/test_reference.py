"""The float reference against plain loops, published numbers, and stories260K's known figures."""

from __future__ import annotations

import math

import numpy as np
import pytest
from tiny_model import write_tiny

from commandline.errors import BadInput
from kvlab.models.corpus import predictions, read_passages, text_bytes
from kvlab.models.llama2c import read_checkpoint
from kvlab.models.load import load_checkpoint, load_image
from kvlab.models.reference import Reference, Session, cross_entropy, sample
from kvlab.models.tokenizer import read_tokenizer

IDS = [1, 7, 260, 3, 299, 40, 41, 42, 42, 261, 5, 17]


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    path, _ = write_tiny(tmp_path_factory.mktemp("tiny"), kv_heads=2, shared=False, seed=1)
    return read_checkpoint(path)


def loops(checkpoint, ids, window=None, sinks=0, first=0):
    """Llama written out number by number, one token after the other. Returns logits per token."""
    c, w = checkpoint.config, checkpoint.weights
    d, per = c.head_dim, c.heads // c.kv_heads

    def norm(x, gain):
        scale = 1 / math.sqrt(sum(a * a for a in x) / len(x) + 1e-5)
        return [a * scale * float(g) for a, g in zip(x, gain, strict=True)]

    def mul(m, x):
        return [sum(float(a) * b for a, b in zip(row, x, strict=True)) for row in m]

    def turn(x, position):
        out = list(x)
        for i in range(0, len(x), 2):
            a = position * 10000.0 ** -((i % d) / d)
            out[i] = x[i] * math.cos(a) - x[i + 1] * math.sin(a)
            out[i + 1] = x[i] * math.sin(a) + x[i + 1] * math.cos(a)
        return out

    keys, values, out = [[] for _ in range(c.layers)], [[] for _ in range(c.layers)], []
    for t, token in enumerate(ids):
        p = first + t
        x = [float(a) for a in w.embed[token]]
        for n in range(c.layers):
            h = norm(x, w.att_norm[n])
            q, near = mul(w.wq[n], h), None
            if window is not None:
                near = turn(q, min(p, sinks + window - 1))
            q = turn(q, p)
            keys[n].append(turn(mul(w.wk[n], h), p))
            values[n].append(mul(w.wv[n], h))
            mixed = []
            for head in range(c.heads):
                mine, theirs = slice(head * d, head * d + d), (head // per) * d
                scores = {}
                for j in range(t + 1):
                    if window is None or j > t - window or j < sinks:
                        ask = near if window is not None and j < sinks else q
                        k = keys[n][j][theirs : theirs + d]
                        dot = sum(a * b for a, b in zip(ask[mine], k, strict=True))
                        scores[j] = math.exp(dot / math.sqrt(d))
                total = sum(scores.values())
                for i in range(theirs, theirs + d):
                    mixed.append(sum(s * values[n][j][i] for j, s in scores.items()) / total)
            x = [a + b for a, b in zip(x, mul(w.wo[n], mixed), strict=True)]
            h = norm(x, w.ffn_norm[n])
            gate = [a / (1 + math.exp(-a)) for a in mul(w.w1[n], h)]
            gate = [a * b for a, b in zip(gate, mul(w.w3[n], h), strict=True)]
            x = [a + b for a, b in zip(x, mul(w.w2[n], gate), strict=True)]
        out.append(mul(w.classifier, norm(x, w.final_norm)))
    return np.array(out)


@pytest.mark.parametrize(
    "seen",
    [{}, {"window": 1}, {"window": 3}, {"window": 4, "sinks": 2}, {"window": 1, "sinks": 1}],
)
def test_forward_equals_plain_loops(tiny, seen):
    model = Reference(tiny.config, tiny.weights, np.float64)
    want = loops(tiny, IDS, **seen)
    assert np.abs(model.forward(IDS, **seen) - want).max() < 1e-9
    assert np.abs(want).max() > 1  # the model says something
    if seen:
        assert np.abs(model.forward(IDS) - want).max() > 1e-3  # and the window matters


def test_float32_is_close_to_float64(tiny):
    a = Reference(tiny.config, tiny.weights, np.float32).forward(IDS)
    b = Reference(tiny.config, tiny.weights, np.float64).forward(IDS)
    assert a.dtype == np.float32
    assert 0 < np.abs(a - b).max() < 1e-4


def test_token_by_token_equals_the_whole_text(tiny):
    model = Reference(tiny.config, tiny.weights, np.float64)
    session = Session(model, len(IDS))
    steps = np.array([session.step(t) for t in IDS])
    assert np.abs(steps - model.forward(IDS)).max() < 1e-12
    with pytest.raises(ValueError, match="capacity 12"):
        session.step(1)


def test_a_window_as_long_as_the_text_changes_nothing(tiny):
    model = Reference(tiny.config, tiny.weights, np.float64)
    full = model.forward(IDS)
    assert np.array_equal(model.forward(IDS, window=len(IDS)), full)
    assert np.abs(model.forward(IDS, window=len(IDS) - 2, sinks=2) - full).max() < 1e-12
    with pytest.raises(ValueError, match="window 0"):
        model.forward(IDS, window=0)


@pytest.mark.parametrize("first", [200, 4_000, 69_000])
def test_only_differences_of_positions_matter(tiny, first):
    model = Reference(tiny.config, tiny.weights, np.float64)
    moved = model.forward(IDS, positions=range(first, first + len(IDS)))
    assert np.abs(moved - model.forward(IDS)).max() < 1e-7
    spread = model.forward(IDS, positions=range(0, 2 * len(IDS), 2))
    assert np.abs(spread - model.forward(IDS)).max() > 1e-3
    with pytest.raises(ValueError, match="2 positions for 12 tokens"):
        model.forward(IDS, positions=[1, 2])


def test_sinks_stay_near_however_far_the_text_goes_on(tiny):
    """Positions jump from 3 to 69,000: sinks are scored as if they lay just before the window."""
    model = Reference(tiny.config, tiny.weights, np.float64)
    seen = {"window": 4, "sinks": 4}
    far = model.forward(IDS, positions=[0, 1, 2, 3, *range(69_000, 69_008)], **seen)
    near = model.forward(IDS, positions=[0, 1, 2, 3, *range(300, 308)], **seen)
    # from token 7 on the window holds none of the first four
    assert np.abs(far - near).max() < 1e-7


def test_rotation_has_the_published_values():
    """Raw key (1,2,3,4), base 10000, pairs interleaved."""
    model = Reference.__new__(Reference)
    model.dtype, model.freqs = np.dtype(float), 10000.0 ** (-2.0 * np.arange(2) / 4)
    x = np.array([[[1.0, 2.0, 3.0, 4.0]]])
    for position, want in (
        (1, (-1.14264, 1.92208, 2.95985, 4.02980)),
        (5, (2.20151, -0.39160, 2.79633, 4.14494)),
    ):
        assert np.abs(model.rotate(x, np.array([position])) - want).max() < 5e-6


def test_transform_sees_and_replaces_keys_and_values(tiny):
    c = tiny.config
    model = Reference(c, tiny.weights, np.float64)
    layers = []

    def look(layer, k, v):
        layers.append(layer)
        assert k.shape == v.shape == (len(IDS), c.kv_heads, c.head_dim)
        return k, v

    full = model.forward(IDS)
    assert np.array_equal(model.forward(IDS, kv_transform=look), full)
    assert layers == list(range(c.layers))
    # Values of zero leave attention nothing to say: the same as an output projection of zeros.
    silent = model.forward(IDS, kv_transform=lambda layer, k, v: (k, 0 * v))
    mute = Reference(c, tiny.weights, np.float64)
    mute.w.wo[:] = 0
    assert np.abs(silent - mute.forward(IDS)).max() < 1e-12
    # Equal keys weigh all that is seen equally.
    flat = model.forward(IDS, kv_transform=lambda layer, k, v: (0 * k, v))
    assert np.abs(flat - full).max() > 1e-3


def test_watch_sees_what_the_transform_gets(tiny):
    model = Reference(tiny.config, tiny.weights, np.float64)
    seen = {}
    model.forward(IDS, watch=lambda layer, q, k, v: seen.update({layer: (q, k, v)}))
    assert sorted(seen) == [0, 1]

    def same(layer, k, v):
        assert np.array_equal(seen[layer][1], k)
        assert np.array_equal(seen[layer][2], v)
        return k, v

    model.forward(IDS, kv_transform=same)


def test_cross_entropy():
    logits = np.log(np.array([[0.5, 0.25, 0.25], [0.1, 0.2, 0.7]])) + 1000
    assert np.allclose(cross_entropy(logits, [0, 2]), [-math.log(0.5), -math.log(0.7)])
    assert cross_entropy(np.zeros((1, 512), np.float32), [3])[0] == pytest.approx(math.log(512))


def test_nats_predict_each_token_from_those_before(tiny):
    model = Reference(tiny.config, tiny.weights)
    losses = model.nats(IDS)
    assert len(losses) == len(IDS) - 1
    assert losses[3] == pytest.approx(cross_entropy(model.forward(IDS[:4])[-1:], IDS[4:5])[0])


def test_sampling_follows_the_distribution():
    rng = np.random.default_rng(0)
    logits = np.log([0.5, 0.3, 0.2])
    counts = np.bincount([sample(logits, 1.0, rng) for _ in range(5000)], minlength=3)
    assert np.abs(counts / 5000 - [0.5, 0.3, 0.2]).max() < 0.03
    cold = np.bincount([sample(logits, 0.5, rng) for _ in range(5000)], minlength=3)
    squares = np.array([0.25, 0.09, 0.04])
    assert np.abs(cold / 5000 - squares / squares.sum()).max() < 0.03
    assert sample(logits, 0.0, rng) == 0


def test_generating_is_seeded_and_ends_when_full(tiny):
    model = Reference(tiny.config, tiny.weights)
    runs = [list(Session(model, 20).generate([1, 7], temperature=1, seed=s)) for s in (4, 4, 5)]
    assert runs[0] == runs[1] != runs[2]
    assert len(runs[0]) == 19
    greedy = list(Session(model, 20).generate([1, 7]))
    assert greedy[5] == int(model.forward([1, 7, *greedy[:5]])[-1].argmax())
    with pytest.raises(ValueError, match="at least one token"):
        next(Session(model, 20).generate([]))


# --- corpora -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def words(tmp_path_factory):
    return read_tokenizer(write_tiny(tmp_path_factory.mktemp("words"), vocab=400)[1], 400)


def test_stories_are_cut_and_split(tmp_path, words):
    path = tmp_path / "s.jsonl"
    path.write_text(
        '{"split": "train", "text": "no"}\n{"split": "heldout", "text": "tea for two"}\n\n'
        '{"text": "in every split"}\n{"split": "heldout", "text": ""}\n'
    )
    got = read_passages(path, words)
    assert [words.decode(p) for p in got] == ["tea for two", "in every split"]
    assert got[0] == words.encode("tea for two")
    assert read_passages(path, words, max_tokens=3) == [p[:3] for p in got]
    assert read_passages(path, words, limit=1) == got[:1]
    assert len(read_passages(path, words, split="train")) == 2
    assert predictions(got) == sum(map(len, got)) - 2
    assert text_bytes(words, got[0]) == len("tea for two")


@pytest.mark.parametrize("max_tokens", [3, 7, 64])
def test_running_text_is_cut_without_loss(tmp_path, words, max_tokens):
    text = "\n  The sun\u20acshines; \u4e2d and the rain falls.\n\n" * 20 + "end"
    path = tmp_path / "t.txt"
    path.write_text(text)
    got = read_passages(path, words, max_tokens=max_tokens)
    assert all(len(p) <= max_tokens and p[0] == 1 for p in got)
    assert all(len(p) == max_tokens for p in got[:-1])
    pieces = [words.piece(b, a) for p in got for a, b in zip(p, p[1:], strict=False)]
    assert b"".join(b"".join(pieces).split()) == b"".join(text.encode().split())
    assert read_passages(path, words, max_tokens=max_tokens, limit=3) == got[:3]
    with pytest.raises(ValueError, match="smallest is 3"):
        read_passages(path, words, max_tokens=2)


@pytest.mark.parametrize(
    ("name", "content", "what"),
    [
        ("a.jsonl", b'{"text": "x"}\n{"text": 5}\n', "line 2"),
        ("a.jsonl", b'{"text": "x"}\n{"tex', "line 2"),
        ("a.jsonl", b"[1]\n", "line 1"),
        ("a.jsonl", b'{"split": "train", "text": "x"}', 'holds no text in split "heldout"'),
        ("a.txt", b" \n ", "holds no text"),
        ("a.txt", b"\xff\xfe", "cannot be read"),
        ("a.txt", None, "cannot be read"),
    ],
)
def test_bad_corpora(tmp_path, words, name, content, what):
    path = tmp_path / name
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(BadInput, match=what) as caught:
        read_passages(path, words)
    assert str(caught.value).startswith("--text ")


# --- the real model ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def stories(needs_data):
    needs_data("stories260K/tok512.bin")
    return load_checkpoint(needs_data("stories260K/stories260K.bin"))


def test_stories260k_tells_its_story(stories):
    checkpoint, t = stories
    session = Session(Reference(checkpoint.config, checkpoint.weights), 60)
    ids = list(session.generate())
    assert ids[:20] == [
        *(403, 407, 261, 378, 432, 383, 286, 261, 376, 298),
        *(315, 421, 395, 317, 426, 338, 401, 396, 267, 337),
    ]
    assert t.decode(ids).startswith(
        "Once upon a time, there was a little girl named Lily. She loved to play outside in the "
        "park. One day, she saw a big, red ball."
    )


@pytest.mark.slow
def test_stories260k_has_its_known_loss_and_survives_int8_weights(stories, needs_data):
    checkpoint, t = stories
    passages = read_passages(needs_data("corpus/stories.jsonl"), t)
    assert predictions(passages) == 50_283
    plain = Reference(checkpoint.config, checkpoint.weights)
    losses = np.concatenate([plain.nats(p) for p in passages])
    assert losses.mean() == pytest.approx(1.4853, abs=5e-5)
    image = load_image(checkpoint.path)
    rounded = Reference(image.config, image.weights())
    some = passages[::4]
    before = np.concatenate([plain.nats(p) for p in some]).mean()
    after = np.concatenate([rounded.nats(p) for p in some]).mean()
    assert -0.001 < after / before - 1 < 0.001
