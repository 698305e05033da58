"""config.json files whose layers differ: what each keeps, or the name of the key that is not understood."""

import json

import pytest

from commandline.errors import BadInput
from kvlab import boards, cli, profiles
from kvlab.plan import models, planner, sizes, targets
from kvlab.plan.planner import Question
from mpy_kv import geometry_for

SHAPE = {
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "hidden_size": 64,
    "intermediate_size": 10,
    "vocab_size": 7,
    "tie_word_embeddings": True,
}
LATENT = {"kv_lora_rank": 24, "qk_rope_head_dim": 8, "qk_nope_head_dim": 16, "v_head_dim": 16}
A_LAYER = 8_192  # full attention, 64 tokens, float16
SLIDING, FULL, LINEAR = "sliding_attention", "full_attention", "linear_attention"


def config(**changes):
    return models.from_config({**SHAPE, **changes}, "test", "--model x.json")


def kv_bytes(changes, codec="float16", tokens=64):
    return sizes.need(config(**changes), tokens, codec).kv_bytes


# Each by the model family whose keys these are; the layers that keep everything count A_LAYER.
CASES = {
    "plain": ({}, 4 * A_LAYER),
    "layer_types-linear": ({"layer_types": [LINEAR] * 3 + [FULL]}, A_LAYER),
    "qwen3-next": ({"full_attention_interval": 4}, A_LAYER),
    "qwen3.5-both": ({"full_attention_interval": 4, "layer_types": [LINEAR] * 3 + [FULL]}, A_LAYER),
    "gemma3n": ({"num_kv_shared_layers": 2}, 2 * A_LAYER),
    "decilm": ({"num_key_value_heads_per_layer": [2, 1, 1, 1]}, A_LAYER + 3 * A_LAYER // 2),
    "list-of-kv-heads": ({"num_key_value_heads": [2, 1, 1, 1]}, A_LAYER + 3 * A_LAYER // 2),
    "list-of-head-dims": ({"head_dim": [16, 8, 8, 8]}, A_LAYER + 3 * A_LAYER // 2),
    "heads-per-layer": (
        {"num_attention_heads_per_layer": [4, 2, 2, 2], "num_key_value_heads": None},
        2 * A_LAYER + 3 * A_LAYER,
    ),
    "jamba": ({"attn_layer_period": 4, "attn_layer_offset": 3, "mamba_d_state": 16}, A_LAYER),
    "bamba": ({"attn_layer_indices": [1, 2], "mamba_n_heads": 8}, 2 * A_LAYER),
    "granite-hybrid": ({"layers_block_type": ["mamba", "mamba", "attention", "mamba"]}, A_LAYER),
    "zamba2": ({"hybrid_layer_ids": [2], "mamba_d_conv": 4}, A_LAYER),
    "nemotron-h": ({"hybrid_override_pattern": "M-*E", "ssm_state_size": 128}, A_LAYER),
    "minimax": ({"attn_type_list": [0, 0, 0, 1]}, A_LAYER),
    "lfm2": ({"layer_types": ["conv", FULL, "conv", FULL]}, 2 * A_LAYER),
    "falcon-h1": ({"model_type": "falcon_h1", "mamba_d_ssm": 64}, 4 * A_LAYER),
    "kimi-linear": (
        {"linear_attn_config": {"full_attn_layers": [4], "kda_layers": [1, 2, 3], "head_dim": 8}, **LATENT},
        64 * 32 * 2,
    ),
    "recurrentgemma": (
        {"block_types": ["recurrent", "attention"], "attention_window_size": 16},
        A_LAYER // 2,
    ),
    "v_head_dim": ({"v_head_dim": 8}, 3 * A_LAYER),
    "mla": (LATENT, 4 * 64 * 32 * 2),
    "deepseek-v3.2": ({**LATENT, "index_head_dim": 16}, 24_576),
    "indexer-of-plain-keys": ({"index_head_dim": 16}, 4 * (A_LAYER + 64 * 16 * 2)),
    "mllama": ({"cross_attention_layers": [1]}, 3 * A_LAYER),
    "layer_types-sliding": ({"layer_types": [SLIDING, FULL] * 2, "sliding_window": 16}, 2.5 * A_LAYER),
    "gemma3": ({"sliding_window_pattern": 4, "sliding_window": 16}, A_LAYER + 3 * A_LAYER // 4),
    "gemma3-text": ({"model_type": "gemma3_text", "sliding_window": 16}, A_LAYER),
    "gemma2": ({"model_type": "gemma2", "sliding_window": 16}, 2.5 * A_LAYER),
    "exaone4": ({"sliding_window_pattern": "LLLG", "sliding_window": 16}, A_LAYER + 3 * A_LAYER // 4),
    "mistral": ({"model_type": "mistral", "sliding_window": 16}, A_LAYER),
    "mistral-null": ({"model_type": "mistral", "sliding_window": None}, 4 * A_LAYER),
    "qwen2": (
        {"model_type": "qwen2", "use_sliding_window": True, "max_window_layers": 2, "sliding_window": 16},
        2.5 * A_LAYER,
    ),
    "qwen2-off": (
        {"model_type": "qwen2", "use_sliding_window": False, "max_window_layers": 2, "sliding_window": 16},
        4 * A_LAYER,
    ),
    "llama4": ({"attention_chunk_size": 16, "no_rope_layers": [1, 1, 1, 0]}, A_LAYER + 3 * A_LAYER // 4),
    "llama4-interval": (
        {"attention_chunk_size": 16, "no_rope_layers": [], "no_rope_layer_interval": 4},
        A_LAYER + 3 * A_LAYER // 4,
    ),
    "chunked": ({"attention_chunk_size": 16, "layer_types": ["chunked_attention"] * 4}, A_LAYER),
    "smollm3": ({"no_rope_layers": [1, 1, 1, 0], "no_rope_layer_interval": 4}, 4 * A_LAYER),
    "gemma4": (
        {
            "layer_types": [SLIDING] * 3 + [FULL],
            "sliding_window": 16,
            "global_head_dim": 32,
            "num_global_key_value_heads": 1,
            "attention_k_eq_v": True,
        },
        A_LAYER + 3 * A_LAYER // 4,
    ),
    "gemma4-own-kv": (
        {
            "layer_types": [SLIDING] * 3 + [FULL],
            "sliding_window": 16,
            "global_head_dim": 32,
            "num_global_key_value_heads": 1,
            "attention_k_eq_v": False,
        },
        2 * A_LAYER + 3 * A_LAYER // 4,
    ),
    "gemma4-shared": (
        {"layer_types": [SLIDING, FULL] * 2, "sliding_window": 16, "num_kv_shared_layers": 2},
        A_LAYER + A_LAYER // 4,
    ),
    "mimo-v2": (
        {
            "hybrid_layer_pattern": [0, 1, 1, 1],
            "sliding_window": 16,
            "attention_chunk_size": 16,
            "num_key_value_heads": 1,
            "v_head_dim": 8,
            "swa_num_key_value_heads": 2,
            "swa_head_dim": 16,
            "swa_v_head_dim": 8,
            "swa_num_attention_heads": 4,
        },
        64 * 24 * 2 + 3 * 16 * 2 * 24 * 2,
    ),
    "t5": (
        {
            "is_encoder_decoder": True,
            "d_model": 64,
            "d_kv": 16,
            "num_heads": 2,
            "d_ff": 10,
            "num_layers": 6,
            "num_decoder_layers": 3,
            "num_key_value_heads": None,
        },
        3 * A_LAYER,
    ),
    "whisper": (
        {
            "is_encoder_decoder": True,
            "d_model": 64,
            "decoder_layers": 2,
            "encoder_layers": 32,
            "decoder_attention_heads": 4,
            "num_key_value_heads": None,
            "head_dim": None,
        },
        2 * 2 * A_LAYER,
    ),
}


@pytest.mark.parametrize("name", list(CASES))
def test_what_every_layer_keeps(name):
    changes, expected = CASES[name]
    assert kv_bytes(changes) == expected


def test_the_right_values_through_the_command(tmp_path, capfd):
    """On a board and on a profile, in the figures and in what is printed."""
    path, out = tmp_path / "config.json", tmp_path / "plan.json"
    path.write_text(json.dumps({**SHAPE, "layer_types": [LINEAR] * 3 + [FULL]}))
    words = ["plan", "--model", str(path), "--tokens", "64", "--codec", "float16", "--json", str(out)]
    for where in (["--board", "rp2040"], ["--profile", "soc"]):
        assert cli.main([*words, *where]) == 0
        printed = capfd.readouterr().out
        figures = json.loads(out.read_text())
        assert figures["kv_bytes"] == A_LAYER
        assert [part["count"] for part in figures["layers"]] == [1]
        assert "1 see all tokens; 3 keep none of their own" in printed
        assert any("3 of 4 layers (linear_attention) have a state" in text for text in figures["warnings"])
    assert cli.main(["models", str(path), "--json", str(out)]) == 0
    assert json.loads(out.read_text())["models"][0]["windows"] == [None]
    assert "1 of 4" in capfd.readouterr().out


def test_two_widths_are_those_of_their_geometries():
    """Of every element type: K of head_dim 32 beside V of head_dim 16, from buffers with one width."""
    changes = {"head_dim": 32, "v_head_dim": 16}
    for codec, a_token in (
        ("float32", 2 * 48 * 4),
        ("int8", 2 * (32 + 2 + 16 + 1)),  # groups of 32: of V one for two heads
        ("int8-int4", 2 * (32 + 2) + 2 * 8 + 2),
        ("sparse", 2 * (32 + 2) + 4 + 24 + 2),
    ):
        assert kv_bytes(changes, codec, 40) == 4 * 40 * a_token
    # int4: of 40 tokens the first block of 16 is sealed, 24 are in int8
    sealed = 2 * 16 * (16 + 8) + 4 * 64 + 2 * 2 + 16 * 4
    assert kv_bytes(changes, "int4", 40) == 4 * (24 * 2 * (32 + 2 + 16 + 1) + sealed)
    for codec in sizes.TYPES:
        one = geometry_for(codec, 4, 4, 2, 32, capacity=40)
        assert kv_bytes({"head_dim": 32, "v_head_dim": 32}, codec, 40) == one.kv_bytes(40)
        need = sizes.need(config(**changes), 40, codec)
        assert geometry_for(codec, 4, 4, 2, 16, capacity=40).bytes() < need.buffer_bytes < one.bytes()


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"layer_types": [FULL] * 3}, "layer_types has 3 entries for 4 num_hidden_layers"),
        (
            {"layer_types": [FULL] * 3 + ["magic"]},
            'layer_types.3: layers of kind "magic" are not known; known:',
        ),
        ({"layers_block_type": ["mamba"] * 5}, "layers_block_type has 5 entries for 4"),
        ({"block_types": ["recurrent", "odd"]}, 'block_types.1: layers of kind "odd" are not known'),
        ({"hybrid_override_pattern": "M-*"}, "hybrid_override_pattern has 3 entries for 4"),
        ({"hybrid_override_pattern": "M-*X"}, 'hybrid_override_pattern.3: "X" is not one of M, *, -, E'),
        ({"hybrid_layer_pattern": [0, 1]}, "hybrid_layer_pattern has 2 entries for 4"),
        ({"hybrid_layer_pattern": [0, 1, 1, 2]}, "hybrid_layer_pattern.3: 2 is not one of [0, 1]"),
        ({"attn_layer_period": 4}, "attn_layer_period 4 needs an attn_layer_offset below it, not None"),
        ({"attn_layer_period": 4, "attn_layer_offset": 4}, "needs an attn_layer_offset below it, not 4"),
        ({"attn_layer_indices": [4]}, "attn_layer_indices names layer 4; the last is 3"),
        ({"cross_attention_layers": [9]}, "cross_attention_layers names layer 9; the last is 3"),
        ({"num_kv_shared_layers": 4}, "num_kv_shared_layers 4: of 4 num_hidden_layers none is left"),
        ({"num_key_value_heads_per_layer": [2, 1]}, "num_key_value_heads_per_layer has 2 entries for 4"),
        ({"num_key_value_heads": [2, 1, 1]}, "num_key_value_heads has 3 entries for 4"),
        ({"num_key_value_heads": [2, 1, 3, 1]}, "not a multiple of num_key_value_heads 3 in layer 2"),
        ({"intermediate_size": [10, 10]}, "intermediate_size has 2 entries for 4"),
        (
            {"layer_types": [SLIDING] * 4},
            "layer 0 is of kind sliding_attention, and there is no sliding_window",
        ),
        ({"layer_types": ["chunked_attention"] * 4}, "and there is no attention_chunk_size"),
        ({"layer_types": [LINEAR] * 4}, "none of its 4 layers has a KV cache"),
        ({"sliding_window": 9, "sliding_window_pattern": "LX"}, 'sliding_window_pattern: "LX" is not of the'),
        (
            {"linear_attn_config": {"full_attn_layers": [4], "kda_layers": [1, 2]}},
            "linear_attn_config: full_attn_layers and kda_layers do not name layers 1 to 4 once each",
        ),
        (
            {"is_encoder_decoder": True},
            "is_encoder_decoder: the decoder's layers are not said (decoder_layers",
        ),
        ({"model_type": "bert"}, "model_type bert: an encoder has no KV cache"),
        *(
            ({"model_type": kind}, f"model_type {kind}: an encoder has no KV cache")
            for kind in (
                *("xlm-roberta", "nomic_bert", "clip_text_model", "roberta", "xlm-roberta-xl", "camembert"),
                *("deberta-v2", "siglip_vision_model", "qwen2_audio_encoder", "Dream", "modernbert", "esm"),
            )
        ),
        ({"architectures": ["OddForMaskedLM"]}, "architectures: an encoder has no KV cache"),
        ({"causal": False}, "causal false: an encoder has no KV cache"),
        ({"causal": 0}, "causal false: an encoder has no KV cache"),
        ({"num_key_value_heads": None, "num_kv_heads": [2, 1]}, "num_kv_heads has 2 entries for 4"),
        ({"is_causal": False}, "is_causal false: an encoder has no KV cache"),
        ({"use_bidirectional_attention": True}, "use_bidirectional_attention true: an encoder has no KV"),
        ({"total_ut_steps": 4}, "total_ut_steps 4: models that pass their layers again are not read"),
        ({"loop_num_passes": 2}, "loop_num_passes 2: models that pass their layers again are not read"),
        ({"use_mla": True}, "use_mla true and kv_lora_rank None disagree"),
        ({**LATENT, "use_mla": False}, "use_mla false and kv_lora_rank 24 disagree"),
        ({"num_kv_heads": 1}, "num_key_value_heads 2 and num_kv_heads 1 disagree"),
        ({"multi_query": True}, "num_key_value_heads 2 and multi_query True disagree"),
        (
            {"num_key_value_heads": None, "n_head_kv": 2, "num_query_groups": 1},
            "n_head_kv 2 and num_query_groups 1 disagree",
        ),
        ({"num_key_value_heads": None, "num_gqa_groups": 2}, "num_gqa_groups 2: its meaning differs"),
        (
            {"num_key_value_heads": None, "multi_query_group_num": 2},
            "multi_query_group_num 2: there is no multi_query_attention",
        ),
        ({"multi_query_attention": True}, "multi_query_attention: there is no multi_query_group_num"),
        ({"block_configs": [{}]}, "block_configs: layers that are described one by one are not read"),
        ({"parameters": 5}, "parameters 5 is not the"),
    ],
)
def test_what_is_not_understood_is_refused(changes, named):
    with pytest.raises(BadInput) as refused:
        config(**changes)
    assert named in str(refused.value)
    assert str(refused.value).startswith("--model x.json: ")


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"cla_share_factor": 2}, "not read: cla_share_factor 2; it may change what the cache takes"),
        ({"num_memory_tokens": 8}, "not read: num_memory_tokens 8; it may change"),
        ({"num_meta_tokens": 128, "qk_dim": 5}, "not read: num_meta_tokens 128, qk_dim 5; they may change"),
        ({"key_dim": 8, "value_dim": 9}, "not read: key_dim 8, value_dim 9"),
        ({"qk_head_dim": 24}, "not read: qk_head_dim 24"),
        ({"v_dim": 8}, "not read: v_dim 8"),
        ({"expand_k": 0.5, "expand_v": 2}, "not read: expand_k, expand_v 2"),
        ({"expand_k": 0.5, "layer_types": [LINEAR] * 3 + [FULL]}, "not read: expand_k"),
        ({"attention_sink_tokens": 4}, "not read: attention_sink_tokens 4"),
        ({"odd": {"y": 1}}, "not read: odd; it may"),
        ({"text_config": SHAPE, "num_meta_tokens": 9}, "beside text_config, not read: num_meta_tokens 9; it"),
        ({"num_gqa_groups": 2}, "not read: num_gqa_groups 2"),
        ({"sliding_window_pattern": 3}, "sliding_window_pattern is not counted: there is no sliding_window"),
        ({"_sliding_window_pattern": 3}, "_sliding_window_pattern is not counted: there is no"),
        ({"sliding_window_layers": [1]}, "sliding_window_layers is not counted: there is no sliding_window"),
        ({"model_type": "gemma2"}, "sliding_window is not said: model_type gemma2 has one of its own"),
        ({"mamba_d_state": 16}, "not read: mamba_d_state 16"),
        ({"swa_head_dim": 8}, "not read: swa_head_dim 8"),
        ({"num_nextn_predict_layers": 1}, "not read: num_nextn_predict_layers 1"),
        ({"attention_chunk_size": 5}, "attention_chunk_size 5 is not counted: --model x.json does not say"),
        (
            {"full_attention_interval": 2, "layer_types": [LINEAR] * 3 + [FULL]},
            "layer_types and full_attention_interval disagree, on layer 1 first: layer_types is taken",
        ),
        ({"cross_attention_layers": [1]}, "1 layers keep keys and values of the image, 64 values for each"),
        ({"is_encoder_decoder": True, "decoder_layers": 2}, "keys and values of the encoder's tokens"),
        (
            {"num_key_value_heads": None, "model_type": "mistral"},
            "num_key_value_heads is not said: taken as the 4 of",
        ),
    ],
)
def test_what_is_not_read_is_warned_of_by_name(changes, named):
    assert any(named in text for text in config(**changes).warnings)


@pytest.mark.parametrize(
    ("changes", "heads"),
    [
        ({"num_query_groups": 2}, 2),
        ({"num_attention_groups": 1}, 1),
        ({"n_head_kv": 2}, 2),
        ({"num_kv_heads": 2}, 2),
        ({"num_kv_heads": [2, 2, 2, 2]}, 2),
        ({"multi_query": True}, 1),
        ({"multi_query": True, "num_kv_heads": 4}, 1),  # falcon-7b
        ({"multi_query": True, "num_kv_heads": 2, "new_decoder_architecture": True}, 2),  # falcon-40b
        ({"multi_query": False}, 4),
        ({"multi_query_attention": True, "multi_query_group_num": 2}, 2),  # chatglm3
        ({"multi_query_attention": False, "multi_query_group_num": 2}, 4),
        ({"num_key_value_heads": 2, "num_kv_heads": 2}, 2),
    ],
)
def test_other_names_of_num_key_value_heads(changes, heads):
    found = config(**{"num_key_value_heads": None, **changes})
    assert found == config(num_key_value_heads=heads)
    assert found.warnings == ()


def test_what_is_said_to_be_off_is_no_news():
    """A decoder of an encoder's kind, one pass, a window that is not used, attention both ways in images."""
    for changes in (
        {"model_type": "roberta", "is_decoder": True},
        {"causal": True},
        {"total_ut_steps": 1},
        {"sliding_window_pattern": 3, "use_sliding_window": False},
        {"sliding_window_layers": []},
        {"model_type": "mistral", "sliding_window": None},
        {"use_bidirectional_attention": False},
        {"use_bidirectional_attention": "vision"},
        {"use_mla": False},
        {**LATENT, "use_mla": True, "qk_head_dim": 24},
    ):
        assert config(**changes).warnings == (), changes


def test_keys_that_do_not_shape_the_cache_are_no_news():
    """All that the config.json of a Llama, a Qwen3 and a Gemma 3 has besides."""
    quiet = {
        "attention_bias": False,
        "attention_dropout": 0.1,
        "attn_logit_softcapping": 50.0,
        "architectures": ["LlamaForCausalLM"],
        "bos_token_id": 1,
        "cache_implementation": "hybrid",
        "hidden_act": "silu",
        "image_token_index": 5,
        "initializer_range": 0.02,
        "layer_norm_eps": 1e-5,
        "max_window_layers": 4,
        "mlp_bias": False,
        "query_pre_attn_scalar": 256,
        "rms_norm_eps": 1e-5,
        "rope_local_base_freq": 1e4,
        "rope_scaling": {"factor": 8.0},
        "rope_theta": 1e4,
        "torch_dtype": "bfloat16",
        "transformers_version": "4.50",
        "use_cache": True,
        "use_sliding_window": False,
        "sliding_window": None,
        "layer_types": None,
        "kv_cache_dtype": None,
    }
    assert config(**quiet).warnings == ()


REAL = {
    "phi-3": {
        "_name_or_path": "Phi-3-mini-4k-instruct",
        "model_type": "phi3",
        "auto_map": {"AutoConfig": "configuration_phi3.Phi3Config"},
        "embd_pdrop": 0.1,
        "original_max_position_embeddings": 4096,
        "pad_token_id": 32000,
        "resid_pdrop": 0.1,
        "sliding_window": None,
        "rope_scaling": {"long_factor": [1.0], "short_factor": [1.0], "type": "longrope"},
    },
    "qwen2.5": {
        "model_type": "qwen2",
        "max_window_layers": 4,
        "sliding_window": 131072,
        "use_mrope": True,
        "use_sliding_window": False,
    },
    "qwen3": {"model_type": "qwen3", "max_window_layers": 4, "sliding_window": None},
    "gemma-2": {
        "model_type": "gemma2",
        "attn_logit_softcapping": 50.0,
        "cache_implementation": "hybrid",
        "final_logit_softcapping": 30.0,
        "hidden_activation": "gelu_pytorch_tanh",
        "query_pre_attn_scalar": 256,
        "sliding_window": 4096,
    },
    "mistral": {"model_type": "mistral", "sliding_window": 4096, "rope_theta": 1e4, "use_cache": True},
    "falcon": {
        "model_type": "falcon",
        "num_kv_heads": 2,
        "multi_query": True,
        "new_decoder_architecture": True,
        "bias": True,
        "hidden_dropout": 0.1,
        "layer_norm_epsilon": 1e-5,
        "parallel_attn": True,
    },
    "deepseek-v3": {
        **LATENT,
        "model_type": "deepseek_v3",
        "aux_loss_alpha": 0.001,
        "ep_size": 1,
        "first_k_dense_replace": 3,
        "moe_layer_freq": 1,
        "n_group": 8,
        "norm_topk_prob": True,
        "num_experts_per_tok": None,
        "q_lora_rank": 16,
        "quantization_config": {"fmt": "e4m3", "quant_method": "fp8"},
        "routed_scaling_factor": 2.5,
        "scoring_func": "sigmoid",
        "seq_aux": True,
        "topk_group": 4,
        "topk_method": "noaux_tc",
    },
    "gpt-neox": {"model_type": "gpt_neox", "rotary_pct": 0.25, "use_parallel_residual": True},
    "gemma-3": {
        "text_config": {**SHAPE, "model_type": "gemma3_text", "sliding_window": 1024},
        "boi_token_index": 255999,
        "image_token_index": 262144,
        "mm_tokens_per_image": 256,
        "vision_config": {"num_hidden_layers": 27, "hidden_size": 1152},
    },
    "granite": {
        "model_type": "granite",
        "attention_multiplier": 0.015625,
        "embedding_multiplier": 12.0,
        "logits_scaling": 8.0,
        "residual_multiplier": 0.22,
    },
}


@pytest.mark.parametrize("name", list(REAL))
def test_a_plain_config_gives_no_warning(name):
    common = {
        "architectures": ["PlainForCausalLM"],
        "bos_token_id": 1,
        "eos_token_id": [1, 2],
        "hidden_act": "silu",
        "initializer_range": 0.02,
        "max_position_embeddings": 4096,
        "pretraining_tp": 1,
        "rms_norm_eps": 1e-6,
        "rope_theta": 1e4,
        "torch_dtype": "bfloat16",
        "transformers_version": "4.43.1",
        "use_cache": True,
    }
    assert config(**{**common, **REAL[name]}).warnings == ()


def test_published_models_have_no_key_that_is_not_read():
    unread = {name for name, m in models.published().items() for text in m.warnings if "not read:" in text}
    assert unread == {"deepseek-v3"}  # num_nextn_predict_layers


def test_the_part_that_writes_text():
    for key in ("text_config", "language_config", "llm_config"):
        outer = {key: {**SHAPE, "tie_word_embeddings": None}, "tie_word_embeddings": True}
        found = models.from_config(outer, "test", "x")
        assert found.values_per_token == config().values_per_token
        assert found.warnings == ()
    assert models.from_config({"text_config": SHAPE}, "test", "x").parameters == config().parameters


def test_a_shape_that_no_board_runs_is_planned_with_a_warning():
    target = targets.of_board(boards.load("rp2040"))
    for changes in ({"v_head_dim": 8}, {"full_attention_interval": 4}, {"num_key_value_heads": [2, 1, 1, 1]}):
        found = planner.plan(config(**changes), target, Question(64, "float16"))
        assert any("the app on a board runs layers that are all alike" in text for text in found.warnings)
    plain = planner.plan(config(), target, Question(64, "float16"))
    assert plain.warnings == []


# --- weights -------------------------------------------------------------------------------------

PUBLISHED = {
    "llama-3.2-1b": 1_235_814_400,
    "qwen3-8b": 8_190_735_360,
    "qwen2.5-0.5b": 494_032_768,
    "gemma-2-2b": 2_614_341_888,
    "gemma-3-1b-it": 999_885_952,
    "mistral-7b-v0.1": 7_241_732_096,
    "phi-3-mini-4k-instruct": 3_821_079_552,
    "smollm2-360m": 361_821_120,
    "deepseek-v3": 671_026_419_200,
}


def test_parameters_are_counted_in_one_way():
    """Every tensor of the checkpoint, a shared embedding once: stated, and the shape's."""
    known = json.loads(models.facts.MODELS.read_text())
    for name, model in models.published().items():
        assert known[name]["parameters"] == model.parameters
        assert isinstance(known[name]["tied_embeddings"], bool)
        assert known[name]["vocab_size"] == model.vocab
        assert not any("embedding" in text for text in model.warnings)
    assert {name: models.find(name).parameters for name in PUBLISHED} == PUBLISHED
    wrong = {**known["qwen3-8b"], "tied_embeddings": True}
    with pytest.raises(BadInput, match="parameters 8190735360 is not the 7568405504 of its shape"):
        models.from_config(wrong, "test", "x")


@pytest.mark.parametrize(
    ("weights", "bits"), [("int4", 4.5), ("int8", 8.5), ("float16", 16), ("float32", 32)]
)
def test_bits_of_a_weight(weights, bits, tmp_path, capfd):
    """Scales are counted: float16 for 32 weights."""
    path = tmp_path / "plan.json"
    words = ["plan", "--model", "qwen3-8b", "--profile", "server", "--tokens", "1000", "--json", str(path)]
    assert cli.main([*words, "--weights", weights]) == 0
    part = json.loads(path.read_text())["parts"][-1]
    assert part["bytes"] == 8_190_735_360 * bits / 8
    assert part["name"] == f"weights ({weights}, {bits:g} bits each)"
    assert f"{bits:g} bits each" in capfd.readouterr().out


@pytest.mark.parametrize(
    ("part", "whole", "text"),
    [(109, 100, "1.09"), (100, 100, "1.00"), (1994, 1000, "1.99"), (168, 10, "16.8"), (123456, 10, "12,346")],
)
def test_how_many_times(part, whole, text):
    assert planner.times(part, whole) == text


def test_what_is_no_remedy_is_no_advice():
    """Weights of 8 billion parameters in float16 on a profile of 16 GB: a little too much."""
    target = targets.of_profile(profiles.load("edge"))
    found = planner.plan(models.find("qwen3-8b"), target, Question(1000, "int8", weights="float16"))
    rest = found.parts[1].bytes + found.parts[-1].bytes
    assert (
        f"{rest:,} bytes beside any cache, {rest / target.room:.2f} times the 16,000,000,000" in found.verdict
    )
    assert found.advice == ["--weights int8 fits", "--weights int4 fits"]
