"""A model from the keys of a Hugging Face config.json, as files state them and as facts/models.json does."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from commandline.errors import BadInput
from kvlab import facts
from kvlab.models import llama2c
from kvlab.plan.keys import unread
from kvlab.plan.layers import READ, layers_of
from kvlab.plan.llama import image_bytes, of_llama
from kvlab.plan.shape import Layer, Model, attention_name

SCHEMA = Path(__file__).with_name("config.schema.json")


# What a model's kind has of norms and biases beside two norms a layer.
_FOUR_NORMS = {"gemma2", "gemma3", "gemma3_text"}
_QK_NORMS = {"gemma3", "gemma3_text", "qwen3"}
_QKV_BIAS = {"qwen2"}
_LATENT_NORMS = {"deepseek_v2", "deepseek_v3", "deepseek_v32"}
# Where a model of several inputs keeps the part that writes text.
_TEXT = ("text_config", "language_config", "llm_config")
# Of a model with an encoder: its decoder's keys, in place of those of its encoder.
_DECODER = {
    "num_hidden_layers": ("decoder_layers", "num_decoder_layers", "num_layers"),
    "num_attention_heads": ("decoder_attention_heads", "num_heads"),
    "hidden_size": ("d_model",),
    "intermediate_size": ("decoder_ffn_dim", "d_ff"),
    "head_dim": ("d_kv",),
}


def from_config(config: Any, name: str, where: str) -> Model:
    """A model from a config.json. BadInput, which starts with `where`, names the key that cannot be."""
    config, where, warnings = _of_text(config, where)
    facts.check(config, SCHEMA, where)
    layers, dim, hidden = (config[key] for key in ("num_hidden_layers", "hidden_size", "intermediate_size"))
    cached, more = layers_of(config, where)
    warnings += more
    # What the model states for itself; a list stands for its largest.
    most = max(cached, key=lambda layer: layer.values)
    latent, heads, kv_heads = most.latent, most.heads, most.kv_heads
    attention = "MLA" if latent else attention_name(heads, kv_heads)
    vocab = config.get("vocab_size")
    if isinstance(hidden, list):
        if len(hidden) != layers:
            raise BadInput(
                f"{where}: intermediate_size has {len(hidden)} entries for {layers} num_hidden_layers"
            )
        hidden = -(-sum(hidden) // layers)  # on average: it matters to the weights alone
    inner, read, more = _inner_parameters(config, cached, dim, hidden, where)
    tied = config.get("tied_embeddings", config.get("tie_word_embeddings"))
    warnings += more
    if vocab is None:
        warnings += ("weights without the embedding: its vocabulary is not known",)
    elif tied is None:
        warnings += ("the embedding is counted twice: whether the classifier shares it is not known",)
    table = (vocab or 0) * dim
    model = Model(
        *(name, config.get("title", name), layers, heads, kv_heads, most.head_dim, cached),
        config.get("max_position_embeddings"),
        *(dim, hidden, vocab, attention, latent),
        parameters=inner + table * (1 if tied else 2),
        read_parameters=read + table,
        sources=tuple(config.get("source", (where,))),
        note=config.get("note", ""),
        warnings=warnings,
    )
    for key, value in (("kv_elements_per_token", model.values_per_token), ("parameters", model.parameters)):
        stated = config.get(key)
        if stated is not None and stated != value:
            raise BadInput(f"{where}: {key} {stated} is not the {value} of its shape")
    if config.get("tokenizer_bytes") is None or vocab is None:
        return model
    shape = llama2c.Config(
        *(dim, hidden, layers, heads, kv_heads, vocab), seq_len=model.seq_len or 1, shared=bool(tied)
    )
    size = image_bytes(shape, config["tokenizer_bytes"])
    named = of_llama(shape, name, model.title, size)
    return Model(**{**vars(named), "sources": model.sources, "note": model.note})


def _of_text(config: Any, where: str) -> tuple[Any, str, tuple[str, ...]]:
    """The part of a config that describes what writes text, where it was found, and what to warn of."""
    beside: tuple[str, ...] = ()
    for key in _TEXT:
        inner = config.get(key) if isinstance(config, Mapping) else None
        if inner is not None:
            where = f"{where}: {key}"
            if isinstance(inner, Mapping) and (text := unread(config, {*READ, *inner, key})):
                beside = (f"beside {key}, {text}",)
            tied = config.get("tie_word_embeddings")
            config = inner
            if isinstance(inner, Mapping) and inner.get("tie_word_embeddings") is None:
                config = {**inner, "tie_word_embeddings": tied}
            break
    if not isinstance(config, Mapping) or not config.get("is_encoder_decoder"):
        return config, where, beside
    # Its own keys are the encoder's, or of both: none may stand for the decoder's in silence.
    found = {
        key: next((config[name] for name in names if config.get(name) is not None), None)
        for key, names in _DECODER.items()
    }
    if found["num_hidden_layers"] is None:
        raise BadInput(
            f"{where}: is_encoder_decoder: the decoder's layers are not said"
            f" ({', '.join(_DECODER['num_hidden_layers'])})"
        )
    names = {name for each in _DECODER.values() for name in each}
    encoder = ("encoder_", "decoder_layerdrop")
    kept = {key: value for key, value in config.items() if key not in names and not key.startswith(encoder)}
    said = (
        "keys and values of the encoder's tokens are not counted: every layer of the decoder keeps as much"
        " for each of them as for one of its own",
        "weights of the decoder alone, without those that attend the encoder",
    )
    decoder = {key: value for key, value in found.items() if value is not None}
    return {**kept, **decoder}, where, (*beside, *said)


def _attention_parameters(config: Mapping[str, Any], dim: int, layer: Layer) -> int:
    """Of the attention matrices of one layer."""
    heads, kv_heads = layer.heads, layer.kv_heads
    if not layer.latent:
        queries, keys = heads * layer.head_dim, kv_heads * layer.head_dim
        return dim * (queries + keys + kv_heads * layer.v_dim + heads * layer.v_dim)
    q, kv, rope = config.get("q_lora_rank"), config["kv_lora_rank"], config["qk_rope_head_dim"]
    nope, v = config["qk_nope_head_dim"], config["v_head_dim"]
    queries = heads * (nope + rope)
    count: int = dim * q + q * queries if q else dim * queries
    count += dim * (kv + rope) + kv * heads * (nope + v) + heads * v * dim
    return count


def _small_parameters(config: Mapping[str, Any], dim: int, layer: Layer) -> int:
    """Of the norms and biases of one layer, as far as a config or the kind of its model tells of them."""
    kind = config.get("model_type")
    count = dim * (4 if kind in _FOUR_NORMS else 2)
    if layer.latent:
        return count + (
            (config.get("q_lora_rank") or 0) + config["kv_lora_rank"] if kind in _LATENT_NORMS else 0
        )
    if kind in _QK_NORMS:
        count += 2 * layer.head_dim
    if kind in _QKV_BIAS or config.get("attention_bias"):
        count += (layer.heads + layer.kv_heads) * layer.head_dim + layer.kv_heads * layer.v_dim
    return count


def _inner_parameters(
    config: Mapping[str, Any], cached: tuple[Layer, ...], dim: int, hidden: int, where: str
) -> tuple[int, int, tuple[str, ...]]:
    """Parameters of all but the embedding, how many of them one token reads, and what to warn of."""
    layers = config["num_hidden_layers"]
    each = [
        _attention_parameters(config, dim, layer) + _small_parameters(config, dim, layer) for layer in cached
    ]
    attention = sum(each) + (layers - len(each)) * max(each) + dim
    moe = config.get("moe")
    if moe is None:
        warn: tuple[str, ...] = ()
        if any("experts" in key and value for key, value in config.items()):
            warn = ("weights of one expert only: mixtures are not read from a config.json",)
        total = attention + layers * 3 * dim * hidden
        return total, total, warn
    dense, shared = moe["first_k_dense"], moe["n_shared_experts"]
    experts, active = moe["n_routed_experts"], moe["n_activated_experts"]
    for key, value, most in (("first_k_dense", dense, layers), ("n_activated_experts", active, experts)):
        if value > most:
            raise BadInput(f"{where}: moe.{key} {value} is more than the {most} there are")
    expert = 3 * dim * moe["moe_intermediate_size"]
    sparse = layers - dense
    router = dim * experts + (experts if config.get("topk_method") == "noaux_tc" else 0)
    common = attention + dense * 3 * dim * hidden + sparse * router
    return (
        common + sparse * expert * (experts + shared),
        common + sparse * expert * (active + shared),
        ("of a mixture's weights those of one token are read, in a batch too: a batch reads more",),
    )
