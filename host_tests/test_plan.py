"""The planner: the cache's own bytes, what fits, what to change, models of every kind."""

import functools
import json
import math
import re
import struct
from dataclasses import replace

import pytest
import stories_fixtures
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny_model import write_tiny

from commandline.errors import BadInput
from kvlab import boards, cli, profiles, shipped
from kvlab.element_types import NAMES
from kvlab.models import image as images
from kvlab.plan import models, planner, program, sizes, targets
from kvlab.plan.planner import Question, pack
from mpy_kv import Geometry, KVCache, kernels

KIB, MIB = 1024, 1024**2
STORIES = models.find("stories260k")


@functools.cache
def board(name):
    return targets.of_board(boards.load(name))


@functools.cache
def profile(name):
    return targets.of_profile(profiles.load(name))


def config(**changes):
    """A small model by the keys of a config.json."""
    shape = {
        "num_hidden_layers": 1,
        "num_attention_heads": 16,
        "num_key_value_heads": 8,
        "hidden_size": 3584,
        "intermediate_size": 1,
        "vocab_size": 1,
    }
    return models.from_config({**shape, **changes}, "test", "test")


@pytest.fixture
def kvlab(capfd, tmp_path):
    """`kvlab(*words)`: exit status, stdout, stderr and the figures of `kvlab plan`."""

    def run(*words):
        path = tmp_path / "plan.json"
        path.unlink(missing_ok=True)
        status = cli.main(["plan", *map(str, words), "--json", str(path)])
        out, err = capfd.readouterr()
        return status, out, err, json.loads(path.read_text()) if path.exists() else None

    return run


# --- sizes ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("codec", "group", "kv_bytes"),
    [
        ("float32", None, 655_360),
        ("float16", None, 327_680),
        ("int8", 8, 163_840 + 40_960),
        ("int8-int4", None, 512 * 5 * (32 + 16 + 4)),
        ("sparse", None, 512 * 320),
        # 31 sealed blocks: nibbles, ranges of K's channels and V's tokens, a power; 16 tokens in int8
        ("int4", None, 31 * 5 * (16 * 32 + 4 * 32 + 2 + 4 * 16) + 16 * 340),
    ],
)
def test_a_model_with_grouped_heads(codec, group, kv_bytes):
    """1,310,720 in float32 would be the query heads'."""
    assert sizes.need(STORIES, 512, codec, group=group).kv_bytes == kv_bytes


def test_a_model_without_grouped_heads():
    model = config(
        hidden_size=288, num_hidden_layers=6, num_attention_heads=6, num_key_value_heads=6, head_dim=48
    )
    assert sizes.need(model, 256, "float32").kv_bytes == 3_538_944
    assert sizes.need(model, 256, "int8", group=48).kv_bytes == 921_600


def test_head_dim_is_taken_from_the_config():
    assert sizes.need(config(head_dim=256), 1, "float16").kv_bytes == 8_192
    assert sizes.need(config(), 1, "float16").kv_bytes == 7_168
    model = config(
        hidden_size=2880, num_attention_heads=64, num_key_value_heads=8, num_hidden_layers=24, head_dim=64
    )
    assert sizes.need(model, 1, "float16").kv_bytes == 49_152


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"hidden_size": 2881}, "hidden_size 2881 is not divisible by num_attention_heads 16"),
        ({"num_key_value_heads": 3}, "16 is not a multiple of num_key_value_heads 3"),
        ({"num_hidden_layers": 0}, "num_hidden_layers: 0 is less than the minimum of 1"),
        ({"num_hidden_layers": 10**9}, "num_hidden_layers: 1000000000 is greater than the maximum of 1024"),
        ({"hidden_size": "4096"}, "hidden_size: '4096' is not of type 'integer'"),
        ({"num_attention_heads": None}, "num_attention_heads: None is not of type 'integer'"),
        ({"kv_elements_per_token": 7}, "kv_elements_per_token 7 is not the 3584 of its shape"),
    ],
)
def test_a_config_that_cannot_be(changes, message):
    with pytest.raises(BadInput) as refused:
        config(**changes)
    assert message in str(refused.value)


@pytest.mark.parametrize(
    ("model", "tokens", "batch", "kv_bytes"),
    [("qwen2.5-7b", 4096, 32, 7_516_192_768), ("qwen2.5-1.5b", 2048, 8, 469_762_048)],
)
def test_the_figures_of_the_errata(model, tokens, batch, kv_bytes):
    assert batch * sizes.need(models.find(model), tokens, "float16").kv_bytes == kv_bytes


@pytest.mark.parametrize(
    ("dim", "batch", "tokens", "kv_bytes"),
    [(4096, 32, 4096, 68_719_476_736), (2048, 8, 2048, 4_294_967_296)],
)
def test_the_figures_the_errata_correct(dim, batch, tokens, kv_bytes):
    """2 x 32 layers x batch x tokens x hidden_dim x 2 bytes, as if all heads had their own keys."""
    model = config(num_hidden_layers=32, hidden_size=dim, num_attention_heads=32, num_key_value_heads=32)
    assert batch * sizes.need(model, tokens, "float16").kv_bytes == kv_bytes


@settings(max_examples=100, deadline=None)
@given(
    layers=st.integers(1, 4),
    kv_heads=st.integers(1, 4),
    per_kv=st.integers(1, 3),
    head_dim=st.integers(1, 40).map(lambda n: 2 * n),
    tokens=st.integers(1, 300),
    window=st.none() | st.integers(1, 300),
    sinks=st.integers(0, 8),
    batch=st.integers(1, 3),
)
def test_the_plan_is_the_buffer_of_the_object(
    layers, kv_heads, per_kv, head_dim, tokens, window, sinks, batch
):
    heads = kv_heads * per_kv
    model = config(
        num_hidden_layers=layers,
        num_attention_heads=heads,
        num_key_value_heads=kv_heads,
        head_dim=head_dim,
        hidden_size=heads * head_dim,
    )
    sinks = sinks if window else 0
    shape = {"window": window, "sinks": sinks} if window else {"capacity": tokens}
    cache = KVCache(Geometry(layers, heads, kv_heads, head_dim, **shape), kernels=kernels.get("plain"))
    question = Question(tokens, "int8", window, sinks, batch)
    found = planner.plan(model, board("esp32s3_psram"), question).figures()
    assert found["buffer_bytes"] == batch * len(cache.buffer)
    visible = min(tokens, window + sinks) if window else tokens
    assert found["kv_bytes"] == batch * cache.geometry.kv_bytes(visible)


def test_layers_with_and_without_a_window():
    """Gemma 3 4B: 29 of 34 layers see 1,024 tokens."""
    model = models.find("gemma-3-4b-it")
    a_layer = 2 * 4 * 256 * 2
    need = sizes.need(model, 8192, "float16")
    assert need.kv_bytes == a_layer * (29 * 1024 + 5 * 8192)
    assert [(part.count, part.window, part.visible) for part in need.layers] == [
        (29, 1024, 1024),
        (5, None, 8192),
    ]
    assert need.buffers == (
        Geometry(29, 8, 4, 256, window=1024, sinks=0, codec="float16").bytes(),
        Geometry(5, 8, 4, 256, capacity=8192, codec="float16").bytes(),
    )
    # Up to the window there is no difference, and a smaller window of the user's holds for all.
    assert sizes.need(model, 1024, "float16").layers[0].count == 34
    both = sizes.need(model, 8192, "float16", window=500, sinks=4)
    assert [(part.count, part.window, part.sinks) for part in both.layers] == [(34, 500, 4)]
    wide = sizes.need(model, 8192, "float16", window=2000, sinks=4)
    assert [(p.count, p.window, p.sinks) for p in wide.layers] == [(29, 1024, 0), (5, 2000, 4)]
    # Four are what a window has by itself; the model's own has none, asked for or not.
    assert sizes.need(model, 8192, "float16", window=2000) == wide
    none = sizes.need(model, 8192, "float16", window=2000, sinks=0)
    assert [(p.count, p.window, p.sinks) for p in none.layers] == [(29, 1024, 0), (5, 2000, 0)]


def test_a_window_is_planned_with_the_sinks_that_it_has():
    """Those that Geometry gives it, in the cache and in the app's vectors; 0 must be asked for."""
    for sinks, kept in ((None, 4), (4, 4), (0, 0), (1, 1)):
        found = planner.plan(STORIES, board("rp2040"), Question(500, "int8", window=128, sinks=sinks))
        figures = found.figures()
        assert (figures["window"], figures["sinks"]) == (128, kept)
        assert found.need.buffers == (Geometry(5, 8, 4, 8, window=128, sinks=kept).bytes(),)
        app = next(part.bytes for part in found.parts if part.name == "the app's arrays")
        assert app == program.array_bytes(STORIES, kept, True)
        largest = planner.largest_window(STORIES, found.target, found.question)
        assert figures["largest_context_tokens"] == largest + kept
    whole = planner.plan(STORIES, board("rp2040"), Question(500, "int8")).figures()
    assert (whole["window"], whole["sinks"]) == (None, 0)


def test_windows_of_a_config():
    layers = {"num_hidden_layers": 4, "sliding_window": 100}
    assert config(**layers, sliding_window_layers=[0, 2]).windows == (100, None, 100, None)
    kinds = ["sliding_attention", "full_attention"] * 2
    assert config(**layers, layer_types=kinds).windows == (100, None, 100, None)
    assert config(**layers, use_sliding_window=False).windows == (None,) * 4
    unclear = config(**layers)
    assert unclear.windows == (None,) * 4
    assert "does not say in which layers" in unclear.warnings[0]


def test_a_latent_instead_of_keys_and_values():
    model = models.find("deepseek-v3")
    assert model.values_per_token == 35_136
    assert sizes.need(model, 100, "float16").kv_bytes == 100 * 70_272
    assert sizes.need(model, 100, "int8").kv_bytes == 100 * 61 * (576 + 2 * 18)
    assert 670e9 < model.parameters < 672e9
    assert 36e9 < model.read_parameters < 38e9


@pytest.mark.parametrize(
    ("name", "billions"),
    [("qwen2.5-0.5b", 0.494), ("qwen2.5-7b", 7.615), ("llama-3.1-8b", 8.03), ("stories260k", 0.000260032)],
)
def test_parameters_are_those_of_the_model(name, billions):
    assert math.isclose(models.find(name).parameters, billions * 1e9, rel_tol=1e-3)


def test_every_published_model_plans_on_every_profile():
    for model in models.published().values():
        assert model.sources
        assert model.id == model.id.lower()
        for name in profiles.names():
            found = planner.plan(model, profile(name), Question(1000, "int8", batch=2)).figures()
            assert found["buffer_bytes"] >= found["kv_bytes"] > 0
            assert found["bandwidth_bound_tokens_per_s"] > 0


# --- what fits -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("areas", "largest", "buffers", "rest", "fit"),
    [
        ([100 * KIB] * 2, 100 * KIB, [150 * KIB], 0, False),
        ([100 * KIB] * 2, 100 * KIB, [75 * KIB] * 2, 0, True),
        ([100 * KIB] * 2, 100 * KIB, [75 * KIB] * 2, 50 * KIB, True),
        ([100 * KIB] * 2, 100 * KIB, [75 * KIB] * 2, 50 * KIB + 1, False),
        ([100, 60], 100, [60, 50, 50], 0, True),
        ([100, 60], 100, [60, 60, 30], 0, True),
        ([100, 60], 100, [60, 60, 41], 0, False),
        ([200], 150, [151], 0, False),
        ([200], 150, [150, 50], 0, True),
    ],
)
def test_pieces_are_not_their_sum(areas, largest, buffers, rest, fit):
    assert pack(areas, largest, buffers, rest) is fit


def least_tokens(target, size):
    """The fewest tokens of stories260K in int8 whose buffer is that large."""
    return next(n for n in range(1, 1 << 20) if sizes.need(STORIES, n, "int8").buffer_bytes >= size)


@pytest.mark.parametrize(
    ("name", "size"), [("esp32s3", MIB), ("esp32_psram", 5 * MIB), ("rp2040", 300 * KIB)]
)
def test_neither_flash_nor_unmapped_memory_is_ram(name, size):
    """The S3 has 8 MB of flash, the first ESP32 8 MB of PSRAM behind a window of 4, the Pico 264 KiB."""
    target = board(name)
    found = planner.plan(STORIES, target, Question(least_tokens(target, size), "int8"))
    assert not found.fits
    assert f"{target.largest:,}" in found.verdict


def test_psram_that_is_mapped_is_ram():
    target = board("esp32_psram")
    trained = replace(STORIES, seq_len=1 << 20)
    assert planner.fits(trained, target, Question(least_tokens(target, 3 * MIB), "int8"))


def test_the_pico_and_float32(kvlab):
    """655,360 bytes do not go into 264 KiB."""
    words = ("--model", "stories260k", "--board", "rp2040", "--tokens", 512)
    status, out, err, figures = kvlab(*words, "--codec", "float32")
    assert status == 1
    assert figures["kv_bytes"] == 655_360
    assert figures["fits"] is False
    assert "does not fit" in err
    assert err.count("\n") == 1
    assert any(text.startswith("--codec int8 --window") for text in figures["advice"])
    assert any("esp32s3_psram" in text for text in figures["advice"])
    cache = KVCache(Geometry(5, 8, 4, 8, capacity=512), kernels=kernels.get("plain"))
    assert kvlab(*words, "--codec", "int8")[3]["buffer_bytes"] == len(cache.buffer)
    assert "655,360 B (640.0 KiB)" in out


def test_a_server(kvlab):
    words = ("--model", "qwen2.5-7b", "--profile", "server", "--batch", 32, "--tokens", 4096)
    status, out, err, figures = kvlab(*words, "--codec", "float16")
    assert (status, err) == (0, "")
    assert figures["kv_bytes"] == 7_516_192_768
    assert figures["fits"] is True
    assert {part["memory"] for part in figures["parts"]} == {"HBM3"}
    assert "(7.00 GiB)" in out
    weights, kv = figures["weights_read_bytes_per_step"], figures["kv_read_bytes_per_step"]
    assert kv == figures["kv_bytes"]
    seconds = (weights + kv) / 3_350_000_000_000
    assert math.isclose(figures["bandwidth_bound_tokens_per_s"], 32 / seconds)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--tokens", 0), "'--tokens': 0 is not in the range"),
        (("--tokens", -5), "'--tokens': -5 is not in the range"),
        (("--tokens", 10, "--sinks", 4), "--sinks 4: sinks need --window"),
        (("--tokens", 10, "--window", 0), "'--window': 0 is not in the range"),
        (("--tokens", 10, "--batch", 0), "'--batch': 0 is not in the range"),
        (("--tokens", 10, "--group", 3), "--group 3 must divide"),
        (("--tokens", 10, "--window", 1 << 27), "--window must be 1..67108864"),
        (("--tokens", 10, "--window", 8, "--sinks", 1 << 27), "--sinks must be 0..67108856"),
        (("--tokens", 10, "--codec", "float16", "--group", 8), "--group 8: float16 has no scales"),
        (("--tokens", 10, "--codec", "int7"), "'--codec': 'int7' is not one of"),
        (("--tokens", 10, "--weights", "float16"), "a board reads a board image"),
        (("--tokens", 10, "--profile", "soc"), "name either --board or --profile"),
    ],
)
def test_bad_input(kvlab, words, message):
    status, out, err, figures = kvlab("--model", "stories260k", "--board", "rp2040", *words)
    assert (status, out, figures) == (2, "", None)
    assert message in err
    assert err.count("\n") == 1


def test_a_group_larger_than_sparse_has(kvlab):
    """It says so where sparse is asked for; as one of those to compare with it has its own."""
    words = ("--model", "qwen2.5-7b", "--profile", "server", "--tokens", 4096, "--group", 64, "--codec")
    status, out, err, figures = kvlab(*words, "sparse")
    assert (status, out, figures) == (2, "", None)
    assert "--group 64: sparse takes at most 32" in err
    status, _, _, figures = kvlab(*words, "int8")
    assert status == 0
    assert figures["by_codec"]["int4"]["kv_bytes"] > 4096 * 28 * 512
    assert figures["by_codec"]["sparse"]["kv_bytes"] == 4096 * 28 * (512 + 16 * (4 + 24 + 2 + 2))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--model", "qwen2.5-7", "--board", "rp2040"), 'did you mean "qwen2.5-7b"'),
        (("--model", "nothing.bin", "--board", "rp2040"), "no such model and no such file"),
        (("--model", ".", "--board", "rp2040"), "--model .: is a folder"),
        (("--model", "/dev/null", "--board", "rp2040"), "--model /dev/null: is a device or a stream"),
        (("--model", "", "--board", "rp2040"), "no such model and no such file"),
        (("--model", "stories260k", "--board", "rp2400"), 'did you mean "rp2040"'),
        (("--model", "stories260k", "--profile", "sever"), 'did you mean "server"'),
        (("--model", "stories260k"), "name either --board or --profile"),
    ],
)
def test_unknown_names(kvlab, words, message):
    status, _, err, _ = kvlab(*words, "--tokens", 10)
    assert status == 2
    assert message in err


@pytest.mark.parametrize(
    ("words", "warned"),
    [
        (("--tokens", 600), True),
        (("--tokens", 600, "--window", 508, "--sinks", 4), False),
        (("--tokens", 600, "--window", 509, "--sinks", 4), True),
        (("--tokens", 512), False),
    ],
)
def test_a_context_the_model_was_not_trained_for(kvlab, words, warned):
    """The context is sinks and window, or the capacity: never the position. The app on a board refuses it."""
    status, _, err, figures = kvlab("--model", "stories260k", "--board", "rp2350", *words)
    assert (status, figures["fits"]) == ((1, False) if warned else (0, True))
    assert ("trained for 512: the app refuses it" in err) is warned
    status, out, _, figures = kvlab("--model", "stories260k", "--profile", "soc", *words)
    assert (status, figures["fits"]) == (0, True)
    assert any("trained for" in text for text in figures["warnings"]) is warned
    assert ("- warning: a context of" in out) is warned


def test_advice_is_true():
    """Every window, batch and context that is named fits, and one more does not."""
    for name, question in (
        ("rp2040", Question(512, "int8")),
        ("esp32", Question(300, "int8", window=250, sinks=4)),
        ("esp32s3", Question(100, "int8", batch=20)),
    ):
        target = board(name)
        found = planner.plan(STORIES, target, question)
        assert not found.fits
        window = planner.largest_window(STORIES, target, question)
        for more in (0, 1):
            tried = Question(**{**vars(question), "window": window + more, "tokens": 10**6})
            assert planner.fits(STORIES, target, tried) is (more == 0)
        assert any(f"--window {window}" in text for text in found.advice)
        context = found.largest_context
        if question.window is None:
            for more in (0, 1):
                tried = Question(**{**vars(question), "tokens": context + more})
                assert planner.fits(STORIES, target, tried) is (more == 0)
        else:
            assert context == window + question.sinks
        most = found.most_requests
        for more in (0, 1):
            if most + more:
                tried = Question(**{**vars(question), "batch": most + more})
                assert planner.fits(STORIES, target, tried) is (more == 0)


def test_what_main_memory_does_not_hold_goes_into_the_extension():
    target = profile("edge")
    question = Question(32768, "float16", batch=8, weights="int8")
    found = planner.plan(models.find("qwen2.5-7b"), target, question)
    assert not found.fits
    text = next(text for text in found.advice if "NVMe" in text)
    over = found.need.buffer_bytes * 8 + 2_147_483_648 + found.parts[-1].bytes - 16_000_000_000
    assert text.startswith(f"{over:,} bytes of the caches into NVMe")


def test_weights_that_do_not_fit_are_said(kvlab):
    _, out, err, figures = kvlab("--model", "deepseek-v3", "--profile", "server", "--tokens", 1000)
    assert "beside any cache, 16.8 times the 80,000,000,000 bytes of HBM3" in err
    assert figures["advice"] == []
    _, _, err, _ = kvlab("--model", "smollm2-135m", "--board", "rp2040", "--tokens", 10)
    assert "bytes in 1,441,792 bytes of flash" in err


# --- models by file ------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", list(stories_fixtures.SHAPES))
def test_a_checkpoint_its_image_and_the_app(shape, tmp_path):
    """The planner's bytes of an image and of the app's arrays are the real ones."""
    checkpoint, _ = write_tiny(tmp_path, **stories_fixtures.SHAPES[shape])
    image = stories_fixtures.tiny(shape)[2]
    (tmp_path / "tiny.mkvm").write_bytes(image)
    from_checkpoint, from_image = models.find(str(checkpoint)), models.find(str(tmp_path / "tiny.mkvm"))
    assert from_checkpoint.image_bytes == from_image.image_bytes == len(image)
    assert from_checkpoint.parameters == stories_fixtures.tiny(shape)[0].parameters
    for mapped in (True, False):
        for sinks in (0, 2):
            llama = stories_fixtures.llama(image, mapped, window=8, sinks=sinks)
            assert program.array_bytes(from_image, sinks, mapped) == llama.ram_bytes()


def test_an_image_that_names_element_types(tmp_path):
    image = stories_fixtures.tiny()[2]
    codecs = ["int8", *["float16"] * (images.Image.parse(image).config.layers - 1)]
    (tmp_path / "named.mkvm").write_bytes(images.with_codecs(images.Image.parse(image), codecs))
    found = models.find(str(tmp_path / "named.mkvm"))
    assert f"its image names element types by layer ({', '.join(codecs)})" in found.warnings[0]


def test_a_checkpoint_without_its_tokenizer(tmp_path, kvlab):
    checkpoint, tokenizer = write_tiny(tmp_path)
    tokenizer.unlink()
    _, out, _, figures = kvlab("--model", checkpoint, "--board", "rp2040", "--tokens", 10)
    assert "no tokenizer beside tiny.bin" in figures["warnings"][0]


def test_the_header_of_a_checkpoint_is_all_that_is_read(tmp_path, kvlab):
    """A negative vocabulary size means weights of its own for the classifier."""
    path = tmp_path / "head.bin"
    path.write_bytes(struct.pack("<7i", 64, 172, 5, 8, 4, -512, 512))
    words = ("--board", "rp2040", "--tokens", 512, "--codec", "float32")
    assert kvlab("--model", path, *words)[3]["kv_bytes"] == 655_360
    for bad, message in (
        (struct.pack(">7i", 64, 172, 5, 8, 4, 512, 512), "implausible"),
        (path.read_bytes()[:27], "27 bytes"),
    ):
        path.write_bytes(bad)
        status, _, err, _ = kvlab("--model", path, *words)
        assert status == 2
        assert message in err


def test_a_config_json(tmp_path, kvlab):
    path = tmp_path / "config.json"
    path.write_text(json.dumps({**json.loads(models.facts.MODELS.read_text())["llama-3.2-1b"]}))
    found = kvlab("--model", path, "--profile", "soc", "--tokens", 100, "--codec", "float16")[3]
    assert found["kv_bytes"] == 100 * 32_768
    for text, message in (
        ("[]", "[] is not of type 'object'"),
        ("{", "not readable as JSON"),
        ("{}", "num_hidden_layers"),
    ):
        path.write_text(text)
        status, _, err, _ = kvlab("--model", path, "--profile", "soc", "--tokens", 100)
        assert status == 2
        assert message in err


def test_the_command_lists_models(tmp_path, capfd):
    path = tmp_path / "models.json"
    assert cli.main(["models", "--json", str(path)]) == 0
    listed = {model["id"]: model for model in json.loads(path.read_text())["models"]}
    assert listed["qwen2.5-7b"]["kv_bytes_per_token"]["float16"] == 57_344
    assert {listed[name]["attention"] for name in listed} == {"MHA", "GQA", "MQA", "MLA"}
    assert "57,344 B" in capfd.readouterr().out
    assert cli.main(["models", "qwen2.5-7b"]) == 0
    assert "litgpt/config.py" in capfd.readouterr().out


def test_the_shipped_model_has_a_name(monkeypatch, tmp_path):
    for name in shipped.NAMES:
        assert (name in models.catalogue()) is shipped.image(name).is_file()
    folder = models.paths.ROOT / "out" / f"test-{tmp_path.name}"
    folder.mkdir(parents=True)
    try:
        path = folder / "stories.mkvm"
        path.write_bytes(stories_fixtures.tiny()[2])
        monkeypatch.setattr(models.shipped, "FOLDER", folder)
        assert models.find("stories").image_bytes == len(stories_fixtures.tiny()[2])
    finally:
        path.unlink()
        folder.rmdir()


def test_every_number_has_a_unit(kvlab):
    """Bytes, tokens, requests, layers: no bare number in what is printed."""
    _, out, _, _ = kvlab("--model", "gemma-2-2b", "--profile", "edge", "--tokens", 5000, "--batch", 2)
    for line in out.splitlines():
        for word, unit in zip(line.split(), [*line.split()[1:], ""]):
            if word.replace(",", "").isdigit():
                assert unit.strip("(),;")[:1].isalpha() or unit.startswith("("), line


# --- against the emulator ------------------------------------------------------------------------


def test_the_question_of_the_story(kvlab):
    """Without --tokens the app's own: a window of 256, or what the model was trained for."""
    words = ("--model", "stories", "--board")
    status, out, _, figures = kvlab(*words, "rp2040")
    assert (status, figures["window"]) == (0, 256)
    assert figures["largest_window_firmware"]["board"] == "qemu_arm"
    assert figures["largest_window"] < figures["largest_window_firmware"]["largest_window"]
    assert f"{figures['largest_window']} tokens; " in out
    largest = figures["largest_window"]
    assert kvlab(*words, "rp2040", "--window", largest)[0] == 0
    assert kvlab(*words, "rp2040", "--window", largest + 1)[0] == 1
    firmware = figures["largest_window_firmware"]["largest_window"]
    assert kvlab(*words, "qemu_arm")[3]["largest_window"] == firmware
    assert kvlab(*words, "esp32")[3]["largest_window_firmware"] is None
    assert kvlab(*words, "rp2350")[3]["largest_context_tokens"] == 512
    for window, status in ((512, 0), (513, 1)):  # sinks as there is room for, as the app has it
        assert kvlab(*words, "rp2350", "--window", window)[0] == status
    for name in boards.names():  # what each board's program asks for fits it
        assert kvlab(*words, name)[0] == 0, name
    assert kvlab(*words, "esp32")[3]["window"] == 64
    status, _, err, _ = kvlab("--model", "stories", "--profile", "soc")
    assert (status, err) == (2, "kvlab: error: --tokens: needed with --profile, or --window\n")


def test_a_window_that_the_firmware_has_no_room_for_is_warned_of(kvlab, monkeypatch):
    """It has more today, whatever the type, since its machine code is short: here as if it had less."""
    words = ("--model", "stories-mha", "--board", "rp2040", "--codec", "int4")
    figures = kvlab(*words)[3]
    assert 0 < figures["largest_window"] < figures["largest_window_firmware"]["largest_window"]
    real, most = planner.Plan.stand_in, figures["largest_window"] - 40
    monkeypatch.setattr(planner.Plan, "stand_in", lambda plan, name, _: real(plan, name, most))
    for window, warned in ((most, False), (most + 1, True)):
        status, out, _, figures = kvlab(*words, "--window", window)
        assert status == 0
        assert ("--board qemu_arm, with objects of 32 bits" in out) is warned
        assert len(figures["warnings"]) == warned


def test_element_types_that_a_policy_cannot_have_are_named(kvlab):
    words = ("--model", "stories", "--board", "rp2040")
    out, figures = kvlab(*words, "--policy", "lru-peak")[1::2]
    assert re.search(r"^ int4 +not with --policy lru-peak *$", out, re.M)
    assert figures["by_codec"].keys() == planner.TYPES.keys() - {"int4"}
    out, figures = kvlab(*words, "--policy", "window")[1::2]
    assert "not with" not in out
    assert figures["by_codec"].keys() == planner.TYPES.keys()


ROOM = ("largest context", "most requests at once", "largest window")


@pytest.mark.parametrize(
    ("words", "answer", "rows"),
    [
        ("--model qwen2.5-7b --board rp2040", "does not fit, not even one token", ()),
        (
            "--model qwen2.5-7b --profile edge --batch 4 --tokens 9 --weights float32",
            "does not fit, not even one token of each request",
            (),
        ),
        ("--model stories --board rp2040 --window 500", "does not fit", ROOM[::2]),
        ("--model stories --board rp2040", "fits", ROOM),
    ],
    ids=["a board", "a profile", "less would", "fits"],
)
def test_what_there_is_no_room_for_is_said_once(kvlab, words, answer, rows):
    out = kvlab(*words.split())[1]
    assert re.search(rf"^ answer +{answer} *$", out, re.M)
    assert tuple(row for row in ROOM if f"\n {row} " in out) == rows
    assert not re.search(r"(?<![\d.])0(\.0)? (tokens|of that size)", out)


def test_fewer_sinks_than_usual_are_warned_of(kvlab):
    words = ("--model", "stories", "--board", "rp2350", "--window")
    said = (
        "sinks: 3 instead of 4, as the model was trained for 512 tokens and the window has 509 of them; a"
        " window of at most 508 leaves 4"
    )
    for more, warnings, sinks in (
        ((509,), [said], 3),
        ((508,), [], 4),
        ((509, "--sinks", 3), [], 3),
        ((509, "--policy", "lru-peak"), [], 0),
    ):
        figures = kvlab(*words, *more)[3]
        assert (figures["warnings"], figures["sinks"]) == (warnings, sinks)
    status, _, err, figures = kvlab(*words, 1000)
    assert (status, figures["sinks"], figures["warnings"]) == (1, 4, [])
    assert "a context of 1,004 tokens" in err


@pytest.mark.parametrize(
    ("words", "sinks"),
    [
        ("--window 509", 4),  # 3 of its own: what is named has room for all
        ("--window 512", 4),
        ("--window 509 --sinks 3", 3),
        ("--window 511 --sinks 1", 1),
        ("--window 500", 4),
        ("--policy window --budget 513", 4),
        ("--policy window --budget 500 --sinks 2", 2),
        ("--policy lru-peak --window 500", 0),
        ("--policy lru-peak --budget 500 --sinks 1", 1),
    ],
)
def test_what_is_advised_fits_as_it_is_told(kvlab, words, sinks):
    """In place of the options that were given: with as many sinks and tokens as are named, and no warning. Of
    the element type that was asked for it is the largest there is."""
    asked = ("--model", "stories", "--board", "rp2040")
    policy = words.split()[:2] if words.startswith("--policy") else []
    status, out, _, figures = kvlab(*asked, *words.split())
    tried = [text for text in figures["advice"] if not text.startswith("--board")]
    assert status == 1
    assert tried
    for text in tried:
        options, said = text.split(" fits: ")
        status, _, _, found = kvlab(*asked, *policy, *options.split())
        assert (status, found["warnings"], found["sinks"]) == (0, [], sinks), text
        kept = "{} tokens of its choice" if "lru" in words else "the newest {} tokens"
        assert said == f"{sinks} sink{'s' * (sinks != 1)} and {kept.format(found['window'])} stay"
        if found["codec"] == "int8":
            assert figures["largest_window"] == found["window"]
    assert figures["largest_context_tokens"] == figures["largest_window"] + sinks


def test_what_fits_as_it_is_is_advised_once(kvlab):
    figures = kvlab("--model", "stories", "--board", "rp2350", "--window", 508, "--codec", "float32")[3]
    tried = [text for text in figures["advice"] if not text.startswith("--board")]
    others = [codec for codec in figures["by_codec"] if codec != "float32"]
    assert tried[:-1] == [f"--codec {codec} fits as it is" for codec in others]
    assert tried[-1].startswith("--codec float32 --window ")


def test_a_budget_beyond_what_the_model_was_trained_for_is_refused_as_by_the_app(kvlab):
    words = ("--model", "stories", "--board", "rp2350", "--policy", "window", "--budget")
    assert kvlab(*words, 512)[0] == 0
    status, _, err, figures = kvlab(*words, 513)
    assert (status, figures["sinks"], figures["warnings"]) == (1, 4, [])
    assert "a context of 513 tokens, and stories was trained for 512: the app refuses it" in err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--policy", "lru-peak", "--tokens", 100), "--policy lru-peak: chooses the tokens of a window"),
        (("--budget", 64), "--budget 64: needs --policy: one of window, lru-attention"),
        (("--policy", "lfu", "--budget", 64, "--window", 32), "--budget 64: holds window and sinks together"),
        (("--policy", "lfu", "--budget", 4, "--sinks", 4), "--budget 4: leaves no token beside 4 sinks"),
        (("--policy", "lfu", "--window", 64, "--codec", "int4"), "--codec int4: seals blocks of 16 tokens"),
    ],
    ids=["no window", "no policy", "both", "sinks", "int4"],
)
def test_policies_that_cannot_be(kvlab, words, message):
    status, _, err, _ = kvlab("--model", "stories", "--board", "rp2040", *words)
    assert status == 2
    assert message in err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            "--board rp2040 --policy lru-peak --budget 99999999999",
            "--budget 99999999999: must be at most 67108864",
        ),
        (
            "--profile edge --tokens 10 --policy window --budget 67108865",
            "--budget 67108865: must be at most",
        ),
        (
            "--profile edge --window 67108864",
            "--window 67108864: with 4 sinks more than 67108864 tokens: at most",
        ),
        ("--profile edge --window 67108861 --tokens 10", "at most 67108860, or add --sinks 0"),
        ("--profile edge --window 67108865", "--window must be 1..67108864, got 67108865"),
        ("--profile edge --window 67108864 --sinks 1", "--sinks must be 0..0, got 1"),
    ],
    ids=["budget", "budget and sinks", "window", "window of few tokens", "too large", "sinks"],
)
def test_an_error_names_an_option_that_was_given(kvlab, words, message):
    words = words.split()
    status, _, err, _ = kvlab("--model", "stories", *words)
    assert (status, err.count("\n")) == (2, 1)
    assert message in err
    named = next(word for word in err.split() if word.startswith("--"))
    assert named.rstrip(":") in words


@pytest.mark.parametrize(
    "words",
    ["--window 67108860", "--window 67108864 --sinks 0", "--policy window --budget 67108864"],
    ids=["window", "no sinks", "budget"],
)
def test_the_largest_window_is_planned(kvlab, words):
    assert kvlab("--model", "stories", "--profile", "server", *words.split())[0] in (0, 1)


def test_a_policy_takes_code_and_tables(kvlab):
    words = ("--model", "stories", "--board", "rp2040", "--sinks", 0)
    ring = kvlab(*words, "--window", 64)[3]
    kept = kvlab(*words, "--policy", "lru-peak", "--budget", 64)[3]
    assert kept["buffer_bytes"] == ring["buffer_bytes"]
    assert (ring["policy"], kept["policy"]) == ("window", "lru-peak")
    assert kept["largest_window"] < ring["largest_window"]
    (part,) = [part for part in kept["parts"] if part["name"] == "the policy and its tables"]
    assert part["bytes"] > program.table_bytes(64, 0)
    assert kvlab(*words, "--policy", "window", "--budget", 64)[3]["parts"] == ring["parts"]


def test_codecs_are_those_of_the_device():
    question = Question(100, "int8")
    assert set(planner.plan(STORIES, board("rp2040"), question).by_codec) == set(NAMES)


def test_the_code_of_other_element_types_counts():
    """What a board has beside the cache, with int8 and with others; a profile has it reserved."""
    for name in ("rp2040", "esp32s3", "qemu_arm"):
        beside = {codec: board(name).beside(STORIES, 4, codec) for codec in NAMES}
        totals = {codec: sum(part.bytes for part in parts) for codec, parts in beside.items()}
        least, most = totals["int8"], totals["int4"]
        assert totals["float32"] == least
        assert all(least < totals[codec] < most for codec in ("int8-int4", "sparse", "float16"))
        measured = f"kvlab docs --write measured_{name}"
        assert {part.source for part in beside["int4"]} == {measured, "boards/apps/stories/model.py"}
    assert profile("server").beside(STORIES, 0, "int4") == profile("server").beside(STORIES, 0, "int8")
