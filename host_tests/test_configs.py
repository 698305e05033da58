"""config.json files of every oddity: each is read as it is meant or refused by the name of the key."""

import json

import pytest

from commandline.errors import BadInput
from kvlab import boards, cli, facts, profiles
from kvlab.paths import BOARDS
from kvlab.plan import models, planner, targets
from kvlab.plan.planner import Question

SHAPE = {
    "num_hidden_layers": 4,
    "num_attention_heads": 16,
    "num_key_value_heads": 8,
    "hidden_size": 3584,
    "intermediate_size": 10,
    "vocab_size": 7,
}
MOE = {
    "first_k_dense": 1,
    "moe_intermediate_size": 2,
    "n_routed_experts": 8,
    "n_shared_experts": 1,
    "n_activated_experts": 2,
}
LATENT = {"kv_lora_rank": 512, "qk_rope_head_dim": 64, "qk_nope_head_dim": 128, "v_head_dim": 128}


def config(**changes):
    return models.from_config({**SHAPE, **changes}, "test", "--model x.json")


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"moe": 5}, "moe: 5 is not of type 'object', 'null'"),
        ({"moe": []}, "moe: [] is not of type"),
        ({"moe": {}}, "moe: 'first_k_dense' is a required property"),
        ({"moe": {**MOE, "n_routed_experts": "8"}}, "moe.n_routed_experts: '8' is not of type 'integer'"),
        ({"moe": {**MOE, "first_k_dense": 5}}, "moe.first_k_dense 5 is more than the 4 there are"),
        ({"moe": {**MOE, "n_activated_experts": 9}}, "moe.n_activated_experts 9 is more than the 8"),
        ({"sliding_window": 5, "sliding_window_layers": 5}, "sliding_window_layers: 5 is not of type"),
        ({"sliding_window": 5, "sliding_window_layers": [[1]]}, "window_layers.0: [1] is not of type"),
        ({"sliding_window": 5, "sliding_window_layers": [4]}, "names layer 4; the last is 3"),
        ({"sliding_window": 5, "sliding_window_layers": [-1]}, "sliding_window_layers.0: -1 is less than"),
        ({"sliding_window": 5, "layer_types": "sliding_attention"}, "layer_types: 'sliding_attention' is"),
        ({"sliding_window": 5, "layer_types": [1]}, "layer_types.0: 1 is not of type 'string'"),
        ({"sliding_window": 5, "layer_types": ["full_attention"]}, "layer_types has 1 entries for 4"),
        ({"sliding_window": "5"}, "sliding_window: '5' is not of type"),
        ({"use_sliding_window": "no"}, "use_sliding_window: 'no' is not of type 'boolean', 'null'"),
        ({"source": 5}, "source: 5 is not of type 'array'"),
        ({"source": "a book"}, "source: 'a book' is not of type 'array'"),
        ({"source": [5]}, "source.0: 5 is not of type 'string'"),
        ({"title": ["x"]}, "title: ['x'] is not of type 'string'"),
        ({"note": 1}, "note: 1 is not of type 'string'"),
        ({"tie_word_embeddings": "yes"}, "tie_word_embeddings: 'yes' is not of type"),
        ({"hidden_size": 3584.0}, "hidden_size: 3584.0 is not of type 'integer'"),
        ({"hidden_size": True}, "hidden_size: True is not of type 'integer'"),
        ({"hidden_size": float("nan")}, "hidden_size: nan is not of type 'integer'"),
        ({"vocab_size": 0}, "vocab_size: 0 is less than the minimum of 1"),
        ({"kv_lora_rank": "512"}, "kv_lora_rank: '512' is not of type"),
        ({"kv_lora_rank": 512}, "'qk_nope_head_dim' is a required property"),
        ({**LATENT, "v_head_dim": None}, "v_head_dim: None is not of type 'integer'"),
        ({**LATENT, "q_lora_rank": 0}, "q_lora_rank: 0 is less than the minimum of 1"),
        ({"text_config": 5}, "text_config: top level: 5 is not of type 'object'"),
        ({"text_config": {}}, "text_config: top level: 'num_hidden_layers' is a required property"),
    ],
)
def test_every_key_is_of_its_type(changes, named):
    with pytest.raises(BadInput) as refused:
        config(**changes)
    assert named in str(refused.value)
    assert str(refused.value).startswith("--model x.json: ")
    assert "\n" not in str(refused.value)


def test_a_long_value_is_cut_short():
    with pytest.raises(BadInput) as refused:
        config(note=list(range(100_000)))
    assert len(str(refused.value)) < 300


@pytest.mark.parametrize("text", ["5", '"x"', "null", "[1]", "[" * 100_000, "{", "", "\ufeff"])
def test_a_file_that_is_no_config(tmp_path, capfd, text):
    path = tmp_path / "config.json"
    path.write_text(text, encoding="utf-8")
    assert cli.main(["plan", "--model", str(path), "--board", "rp2040", "--tokens", "9"]) == 2
    err = capfd.readouterr().err
    assert err.startswith(f"kvlab: error: --model {path}") or "--model config.json: top level:" in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("text", "key"),
    [
        (json.dumps(SHAPE)[:-1] + ', "num_key_value_heads": 1}', "num_key_value_heads"),
        (json.dumps(SHAPE)[:-1] + ', "num_hidden_layers": 4}', "num_hidden_layers"),
        (json.dumps(SHAPE)[:-1] + ', "rope_scaling": {"a": 1, "a": 2}}', "a"),
    ],
    ids=["another-value", "the-same-value", "nested"],
)
def test_a_key_twice(tmp_path, capfd, text, key):
    path = tmp_path / "config.json"
    path.write_text(text)
    assert cli.main(["plan", "--model", str(path), "--board", "rp2040", "--tokens", "9"]) == 2
    err = capfd.readouterr().err
    assert err == f'kvlab: error: --model {path}: not readable as JSON: the key "{key}" is there twice\n'


def test_a_file_with_a_byte_order_mark(tmp_path):
    path = tmp_path / "config.json"
    path.write_text(json.dumps(SHAPE), encoding="utf-8-sig")
    assert models.from_file(path).layers == 4


def test_null_means_absent():
    nothing = dict.fromkeys(
        ("moe", "head_dim", "sliding_window", "sliding_window_layers", "layer_types", "use_sliding_window")
    )
    nothing.update(dict.fromkeys(("kv_lora_rank", "q_lora_rank", "text_config", "tokenizer_bytes")))
    assert config(**nothing) == config()


def test_queries_without_a_latent_of_their_own():
    """DeepSeek-V2-Lite has q_lora_rank null: one matrix from the hidden values to the queries."""
    with_, without = config(**LATENT, q_lora_rank=100), config(**LATENT, q_lora_rank=None)
    queries = 16 * (128 + 64)
    assert without == config(**LATENT)
    assert without.parameters - with_.parameters == 4 * (3584 * queries - 3584 * 100 - 100 * queries)
    assert without.values_per_token == with_.values_per_token == 4 * (512 + 64)


def test_a_model_that_cannot_be_converted_does_not_fit_a_board():
    target = targets.of_board(boards.load("esp32s3_psram"))
    for changes in ({"intermediate_size": 8193}, {"vocab_size": 65536}):
        model = config(num_hidden_layers=1, hidden_size=32, **changes)
        assert "; a board takes" in planner.plan(model, target, Question(1, "int8")).verdict
        assert planner.fits(model, targets.of_profile(profiles.load("server")), Question(1, "int8"))


@pytest.mark.parametrize(
    ("section", "key"), [("memory", "heap_bytes"), ("cpu", "clock_hz"), ("flash", "storage_bytes")]
)
def test_an_integer_of_a_board_is_written_as_one(tmp_path, section, key):
    """2e5 is a float to everything that reads it, though JSON Schema calls it an integer."""
    data = json.loads((BOARDS / "rp2040" / "board.json").read_text())
    value = data[section][key]["value"]
    data[section][key]["value"] = float(value)
    path = tmp_path / "rp2040" / "board.json"
    path.parent.mkdir()
    path.write_text(json.dumps(data))
    with pytest.raises(BadInput, match=f"{section}.{key}.value: {float(value)} is not of type 'integer'"):
        boards.read(path)


def test_an_array_of_integers_too():
    data = json.loads((BOARDS / "esp32s3" / "board.json").read_text())
    data["memory"]["areas_bytes"]["value"][0] = 62_432.0
    with pytest.raises(BadInput, match=r"areas_bytes.value.0: 62432.0 is not of type 'integer'"):
        facts.check(data, boards.SCHEMA, "board.json")
