"""Models as the planner sees them: published facts, the shipped image, any image, checkpoint, config.json."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from kvlab import facts, paths
from kvlab.errors import BadInput, did_you_mean
from kvlab.models import image as images
from kvlab.models import llama2c
from kvlab.models.load import is_image
from kvlab.models.tokenizer import find_tokenizer

MOST_LAYERS = 1024  # what a Geometry takes
SHIPPED = paths.BOARDS / "models" / "stories.mkvm"
ENTRY_BYTES = 24  # of the tensor table
TOKEN_BYTES = 12  # a token in an image's tokenizer section, where there is none to measure: 8 and its text


@dataclass(frozen=True)
class Model:
    """Shape of a model. `windows`: of each layer, None where it sees everything."""

    id: str
    title: str
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    windows: tuple[int | None, ...]
    seq_len: int | None  # tokens it was trained for
    dim: int
    hidden: int
    vocab: int | None
    attention: str  # MHA, GQA, MQA or MLA
    latent: int = 0  # MLA: values that a layer keeps of a token instead of keys and values
    parameters: int | None = None
    read_parameters: int | None = None  # read for one token: of the embedding only the classifier
    image_bytes: int | None = None  # as a board image
    image_read_bytes: int | None = None  # of it read for one token
    sources: tuple[str, ...] = ()
    note: str = ""
    warnings: tuple[str, ...] = ()

    @property
    def values_per_token(self) -> int:
        """Keys and values that all layers keep of one token while nothing is evicted."""
        return self.layers * (self.latent or 2 * self.kv_heads * self.head_dim)


def attention_name(heads: int, kv_heads: int) -> str:
    return "MHA" if kv_heads == heads else "MQA" if kv_heads == 1 else "GQA"


@cache
def published() -> dict[str, Model]:
    """The models of facts/models.json by id."""
    data = json.loads(facts.MODELS.read_text(encoding="utf-8"))
    return {name: from_config(config, name, f"{facts.MODELS.name}: {name}") for name, config in data.items()}


def catalogue() -> dict[str, Model]:
    """Every model that has a name: the shipped one, if it is here, and the published ones."""
    known = published()
    if SHIPPED.is_file():
        where = SHIPPED.relative_to(paths.ROOT).as_posix()
        shipped = replace(
            from_file(SHIPPED, "stories"), title=f"the shipped model ({where})", sources=(where,)
        )
        known = {"stories": shipped, **known}
    return known


def find(text: str) -> Model:
    """A model by its name, or the file of that path. BadInput lists what there is."""
    known = catalogue()
    if text.lower() in known:
        return known[text.lower()]
    path = Path(text)
    if path.is_file():
        return from_file(path)
    hint = did_you_mean(text.lower(), known)
    raise BadInput(f"--model {text}: no such model and no such file{hint}; `kvlab models` lists the models")


def from_file(path: Path, name: str | None = None) -> Model:
    """A model from a board image, a llama2.c checkpoint or a config.json."""
    if path.suffix == ".json":
        try:
            config = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise BadInput(f"--model {path}: not readable as JSON: {error}") from error
        if not isinstance(config, dict):
            raise BadInput(f"--model {path}: not an object, as a config.json is")
        return from_config(config, name or path.stem, f"--model {path.name}")
    if is_image(path):
        image = images.Image.read(path)
        c, size = image.config, len(image.data)
        tokenizer = image.header.tokenizer_bytes
        warnings: tuple[str, ...] = ()
    else:
        try:
            with path.open("rb") as f:
                c = llama2c.parse_header(f.read(llama2c.VERSIONED_BYTES), f"--model {path.name}")[1]
        except OSError as error:
            raise BadInput(f"--model {path}: cannot be read: {error.strerror or error}") from error
        try:
            tokenizer, warnings = len(images.pack_tokenizer(find_tokenizer(path, c.vocab))), ()
        except BadInput:
            tokenizer = TOKEN_BYTES * c.vocab
            warnings = (f"no tokenizer beside {path.name}: taken as {TOKEN_BYTES} bytes a token",)
        size = image_bytes(c, tokenizer)
    return _from_llama(c, name or path.stem.lower(), str(path.name), size, warnings)


def _from_llama(
    c: llama2c.Config, name: str, source: str, size: int, warnings: tuple[str, ...] = ()
) -> Model:
    table = c.vocab * c.dim
    inner = _layer_parameters(c.dim, c.hidden, c.heads, c.kv_heads, c.head_dim) * c.layers
    return Model(
        *(name, source, c.layers, c.heads, c.kv_heads, c.head_dim, (None,) * c.layers, c.seq_len),
        *(c.dim, c.hidden, c.vocab, attention_name(c.heads, c.kv_heads)),
        parameters=inner + table * (1 if c.shared else 2) + (2 * c.layers + 1) * c.dim,
        read_parameters=inner + table,
        image_bytes=size,
        image_read_bytes=_image_read_bytes(c),
        sources=(source,),
        warnings=warnings,
    )


def from_config(config: Mapping[str, Any], name: str, where: str) -> Model:
    """A model from the keys of a Hugging Face config.json. BadInput says what is missing or cannot be."""
    config = config.get("text_config", config)
    if not isinstance(config, Mapping):
        raise BadInput(f"{where}: text_config is not an object")

    def number(key: str, default: int | None = None, most: int = 1 << 40) -> int:
        value = config.get(key)
        value = default if value is None else value
        if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= most:
            raise BadInput(f"{where}: {key} must be a whole number from 1 to {most:,}, got {value!r}")
        return value

    layers, heads = number("num_hidden_layers", most=MOST_LAYERS), number("num_attention_heads")
    dim, hidden = number("hidden_size"), number("intermediate_size")
    kv_heads = number("num_key_value_heads", heads)
    latent, head_dim, attention = 0, 0, "MLA"
    if config.get("kv_lora_rank"):
        latent = number("kv_lora_rank") + number("qk_rope_head_dim")
    else:
        if config.get("head_dim") is None and dim % heads:
            raise BadInput(
                f"{where}: hidden_size {dim} is not divisible by num_attention_heads {heads},"
                " and there is no head_dim"
            )
        head_dim = number("head_dim", dim // heads)
        attention = attention_name(heads, kv_heads)
        if heads % kv_heads:
            raise BadInput(
                f"{where}: num_attention_heads {heads} is not a multiple of num_key_value_heads {kv_heads}"
            )
    windows, warnings = _windows(config, layers, number, where)
    vocab = number("vocab_size") if config.get("vocab_size") is not None else None
    inner, read, more = _inner_parameters(config, dim, hidden, heads, kv_heads, head_dim, layers, number)
    tied = config.get("tied_embeddings", config.get("tie_word_embeddings"))
    warnings += more
    if vocab is None:
        warnings += ("weights without the embedding: its vocabulary is not known",)
    elif tied is None:
        warnings += ("the embedding is counted twice: whether the classifier shares it is not known",)
    table = (vocab or 0) * dim
    model = Model(
        *(name, str(config.get("title", name)), layers, heads, kv_heads, head_dim, windows),
        number("max_position_embeddings") if config.get("max_position_embeddings") is not None else None,
        *(dim, hidden, vocab, attention, latent),
        parameters=inner + table * (1 if tied else 2),
        read_parameters=read + table,
        sources=tuple(config.get("source", (where,))),
        note=str(config.get("note", "")),
        warnings=warnings,
    )
    stated = config.get("kv_elements_per_token")
    if stated is not None and stated != model.values_per_token:
        raise BadInput(
            f"{where}: kv_elements_per_token {stated} is not the {model.values_per_token} of its shape"
        )
    if "tokenizer_bytes" not in config or vocab is None:
        return model
    shape = llama2c.Config(
        *(dim, hidden, layers, heads, kv_heads, vocab), seq_len=model.seq_len or 1, shared=bool(tied)
    )
    size = image_bytes(shape, number("tokenizer_bytes"))
    named = _from_llama(shape, name, model.title, size)
    return Model(**{**vars(named), "sources": model.sources, "note": model.note})


def _windows(
    config: Mapping[str, Any], layers: int, number: Any, where: str
) -> tuple[tuple[int | None, ...], tuple[str, ...]]:
    """The window of each layer, and what to warn of."""
    if config.get("sliding_window") is None or config.get("use_sliding_window") is False:
        return (None,) * layers, ()
    window = number("sliding_window")
    windowed = config.get("sliding_window_layers")
    if windowed is None and isinstance(config.get("layer_types"), list):
        windowed = [i for i, kind in enumerate(config["layer_types"]) if kind == "sliding_attention"]
    if windowed is None:
        return (None,) * layers, (
            f"sliding_window {window} is not counted: {where} does not say in which layers it holds",
        )
    return tuple(window if i in set(windowed) else None for i in range(layers)), ()


def _layer_parameters(dim: int, hidden: int, heads: int, kv_heads: int, head_dim: int) -> int:
    """Of the matrices of one Llama layer."""
    return 2 * dim * heads * head_dim + 2 * dim * kv_heads * head_dim + 3 * dim * hidden


def _inner_parameters(
    config: Mapping[str, Any],
    dim: int,
    hidden: int,
    heads: int,
    kv_heads: int,
    head_dim: int,
    layers: int,
    number: Any,
) -> tuple[int, int, tuple[str, ...]]:
    """Parameters of all layers' matrices, how many of them one token reads, and what to warn of."""
    attention = _layer_parameters(dim, 0, heads, kv_heads, head_dim)
    if config.get("kv_lora_rank"):
        q, kv, rope = number("q_lora_rank"), number("kv_lora_rank"), number("qk_rope_head_dim")
        nope, v = number("qk_nope_head_dim"), number("v_head_dim")
        attention = dim * q + q * heads * (nope + rope) + dim * (kv + rope)
        attention += kv * heads * (nope + v) + heads * v * dim
    moe = config.get("moe")
    if not moe:
        warn: tuple[str, ...] = ()
        if any("experts" in key for key in config):
            warn = ("weights of one expert only: mixtures are not read from a config.json",)
        total = layers * (attention + 3 * dim * hidden)
        return total, total, warn
    dense = moe["first_k_dense"]
    expert = 3 * dim * moe["moe_intermediate_size"]
    sparse = layers - dense
    common = layers * attention + dense * 3 * dim * hidden + sparse * dim * moe["n_routed_experts"]
    total = common + sparse * expert * (moe["n_routed_experts"] + moe["n_shared_experts"])
    read = common + sparse * expert * (moe["n_activated_experts"] + moe["n_shared_experts"])
    return (
        total,
        read,
        ("of a mixture's weights those of one token are read, in a batch too: a batch reads more",),
    )


def image_bytes(c: llama2c.Config, tokenizer_bytes: int) -> int:
    """Length of the board image of a Llama (SPEC.md, "The board image")."""

    def up(n: int) -> int:
        return -(-n // images.ALIGN) * images.ALIGN

    names = list(images.tensor_names(c))
    at = up(images.HEADER_BYTES)
    for section in (ENTRY_BYTES * len(names), 2 * c.head_dim, 4 * c.layers, tokenizer_bytes):
        at = up(at + section)
    for field, layer in names:
        at = up(at) + _tensor_bytes(c, field, layer)
    return up(at)


def _tensor_bytes(c: llama2c.Config, field: str, layer: int | None) -> int:
    shape = llama2c.shapes(c)[field]
    shape = shape if layer is None else shape[1:]
    if len(shape) == 1:
        return 2 * int(shape[0])
    return int(shape[0]) * images.row_bytes(int(shape[1]))


def _image_read_bytes(c: llama2c.Config) -> int:
    """Bytes of the tensors that every token reads: all, of the embedding only the classifier."""
    names = [name for name in images.tensor_names(c) if name[0] not in ("embed", "classifier")]
    return sum(_tensor_bytes(c, *name) for name in names) + _tensor_bytes(c, "embed", None)
