"""A model from the keys of a Hugging Face config.json, as files state them and as facts/models.json does."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kvlab import facts
from kvlab.errors import BadInput
from kvlab.models import llama2c
from kvlab.plan.llama import image_bytes, layer_parameters, of_llama
from kvlab.plan.shape import Model, attention_name

SCHEMA = Path(__file__).with_name("config.schema.json")


def from_config(config: Any, name: str, where: str) -> Model:
    """A model from a config.json. BadInput, which starts with `where`, names the key that cannot be."""
    if isinstance(config, Mapping) and config.get("text_config") is not None:
        config, where = config["text_config"], f"{where}: text_config"
    facts.check(config, SCHEMA, where)
    layers, heads = config["num_hidden_layers"], config["num_attention_heads"]
    dim, hidden = config["hidden_size"], config["intermediate_size"]
    kv_heads = config.get("num_key_value_heads") or heads
    latent, head_dim, attention = 0, 0, "MLA"
    if config.get("kv_lora_rank"):
        latent = config["kv_lora_rank"] + config["qk_rope_head_dim"]
    else:
        head_dim = config.get("head_dim")
        if head_dim is None and dim % heads:
            raise BadInput(
                f"{where}: hidden_size {dim} is not divisible by num_attention_heads {heads},"
                " and there is no head_dim"
            )
        head_dim = head_dim or dim // heads
        attention = attention_name(heads, kv_heads)
        if heads % kv_heads:
            raise BadInput(
                f"{where}: num_attention_heads {heads} is not a multiple of num_key_value_heads {kv_heads}"
            )
    windows, warnings = _windows(config, layers, where)
    vocab = config.get("vocab_size")
    per_layer = _attention_parameters(config, dim, heads, kv_heads, head_dim)
    inner, read, more = _inner_parameters(config, layers, per_layer, dim, hidden, where)
    tied = config.get("tied_embeddings", config.get("tie_word_embeddings"))
    warnings += more
    if vocab is None:
        warnings += ("weights without the embedding: its vocabulary is not known",)
    elif tied is None:
        warnings += ("the embedding is counted twice: whether the classifier shares it is not known",)
    table = (vocab or 0) * dim
    model = Model(
        *(name, config.get("title", name), layers, heads, kv_heads, head_dim, windows),
        config.get("max_position_embeddings"),
        *(dim, hidden, vocab, attention, latent),
        parameters=inner + table * (1 if tied else 2),
        read_parameters=read + table,
        sources=tuple(config.get("source", (where,))),
        note=config.get("note", ""),
        warnings=warnings,
    )
    stated = config.get("kv_elements_per_token")
    if stated is not None and stated != model.values_per_token:
        raise BadInput(
            f"{where}: kv_elements_per_token {stated} is not the {model.values_per_token} of its shape"
        )
    if config.get("tokenizer_bytes") is None or vocab is None:
        return model
    shape = llama2c.Config(
        *(dim, hidden, layers, heads, kv_heads, vocab), seq_len=model.seq_len or 1, shared=bool(tied)
    )
    size = image_bytes(shape, config["tokenizer_bytes"])
    named = of_llama(shape, name, model.title, size)
    return Model(**{**vars(named), "sources": model.sources, "note": model.note})


def _windows(
    config: Mapping[str, Any], layers: int, where: str
) -> tuple[tuple[int | None, ...], tuple[str, ...]]:
    """The window of each layer, and what to warn of."""
    window = config.get("sliding_window")
    if window is None or config.get("use_sliding_window") is False:
        return (None,) * layers, ()
    windowed = config.get("sliding_window_layers")
    kinds = config.get("layer_types")
    if windowed is None and kinds is None:
        return (None,) * layers, (
            f"sliding_window {window} is not counted: {where} does not say in which layers it holds",
        )
    if windowed is None:
        assert kinds is not None
        if len(kinds) != layers:
            raise BadInput(f"{where}: layer_types has {len(kinds)} entries for {layers} num_hidden_layers")
        windowed = [i for i, kind in enumerate(kinds) if kind == "sliding_attention"]
    if windowed and max(windowed) >= layers:
        raise BadInput(
            f"{where}: sliding_window_layers names layer {max(windowed)}; the last is {layers - 1}"
        )
    chosen = set(windowed)
    return tuple(window if i in chosen else None for i in range(layers)), ()


def _attention_parameters(
    config: Mapping[str, Any], dim: int, heads: int, kv_heads: int, head_dim: int
) -> int:
    """Of the attention matrices of one layer."""
    if not config.get("kv_lora_rank"):
        return layer_parameters(dim, 0, heads, kv_heads, head_dim)
    q, kv, rope = config.get("q_lora_rank"), config["kv_lora_rank"], config["qk_rope_head_dim"]
    nope, v = config["qk_nope_head_dim"], config["v_head_dim"]
    queries = heads * (nope + rope)
    count: int = dim * q + q * queries if q else dim * queries
    count += dim * (kv + rope) + kv * heads * (nope + v) + heads * v * dim
    return count


def _inner_parameters(
    config: Mapping[str, Any], layers: int, attention: int, dim: int, hidden: int, where: str
) -> tuple[int, int, tuple[str, ...]]:
    """Parameters of all layers' matrices, how many of them one token reads, and what to warn of."""
    moe = config.get("moe")
    if moe is None:
        warn: tuple[str, ...] = ()
        if any("experts" in key for key in config):
            warn = ("weights of one expert only: mixtures are not read from a config.json",)
        total = layers * (attention + 3 * dim * hidden)
        return total, total, warn
    dense, shared = moe["first_k_dense"], moe["n_shared_experts"]
    experts, active = moe["n_routed_experts"], moe["n_activated_experts"]
    for key, value, most in (("first_k_dense", dense, layers), ("n_activated_experts", active, experts)):
        if value > most:
            raise BadInput(f"{where}: moe.{key} {value} is more than the {most} there are")
    expert = 3 * dim * moe["moe_intermediate_size"]
    sparse = layers - dense
    common = layers * attention + dense * 3 * dim * hidden + sparse * dim * experts
    return (
        common + sparse * expert * (experts + shared),
        common + sparse * expert * (active + shared),
        ("of a mixture's weights those of one token are read, in a batch too: a batch reads more",),
    )
