"""Which layers of a config.json have a cache, and what each keeps of a token.

Model families name this in many ways; the tables below are of their keys. A key that is not understood
is refused or warned of by its name: none may change a number in silence.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from commandline.errors import BadInput
from kvlab.plan.keys import unread
from kvlab.plan.shape import Layer

# What a layer of a kind keeps of tokens: all of them, those of a window or of a chunk, or nothing.
ALL, WINDOW, CHUNK, NOTHING = "all", "window", "chunk", "nothing"
# By the names of configs: what of tokens, and whether a state of fixed size besides.
KINDS = {
    "full_attention": (ALL, False),
    "attention": (ALL, False),
    "deepseek_sparse_attention": (ALL, False),  # every token is kept, few are read
    "sliding_attention": (WINDOW, False),
    "chunked_attention": (CHUNK, False),
    "hybrid": (ALL, True),
    "hybrid_sliding": (WINDOW, True),
    "linear_attention": (NOTHING, True),
    "mamba": (NOTHING, True),
    "mamba2": (NOTHING, True),
    "recurrent": (NOTHING, True),
    "conv": (NOTHING, True),
    "mlp": (NOTHING, False),
    "moe": (NOTHING, False),
}
_CROSS, _SHARED = "cross_attention", "shared"  # found by other keys, never names of configs
_LETTERS = {"M": "mamba", "*": "attention", "-": "mlp", "E": "moe"}  # of hybrid_override_pattern
# Models whose sliding_window holds where no key says it: every so many layers sees all; 0: none does.
_PATTERNS = {
    **dict.fromkeys(("mistral", "mixtral", "phi3", "phimoe", "starcoder2"), 0),
    "gemma2": 2,
    "gemma3": 6,
    "gemma3_text": 6,
    "gemma3n_text": 5,
    "cohere2": 4,
    "gpt_oss": 2,
}
# Models that have a num_key_value_heads of their own where a config does not say one.
_OWN_KV_HEADS = {"gemma2", "gemma3_text", "gemma3n_text", "gemma4_text", "jamba", "mistral", "mixtral"}
# Models that have a sliding_window of their own where a config does not say one.
_OWN_WINDOW = {"cohere2", "gemma2", "gemma3_text", "gemma3n_text", "gpt_oss", "mistral"}
# What num_key_value_heads is called elsewhere: Falcon, Megatron and Step. Lists are of layers.
_KV_HEADS = ("num_kv_heads", "n_head_kv", "num_query_groups", "num_attention_groups")
_REFUSED = ("block_configs", "heterogeneous_layers_config_path")
# Passes of a token through the same layers, each with keys and values of its own.
_LOOPS = ("total_ut_steps", "loop_num_passes", "n_recurrent_loops", "num_loops", "mean_recurrence")
# Models whose tokens see later ones, so that nothing of a step holds in the next.
_ENCODERS = {
    "big_bird",
    "canine",
    "clip",
    "data2vec-text",
    "deberta",
    "deberta-v2",
    "dream",
    "electra",
    "ernie",
    "esm",
    "esmc",
    "flaubert",
    "fnet",
    "funnel",
    "gte",
    "jina_embeddings_v3",
    "layoutlm",
    "layoutlmv2",
    "layoutlmv3",
    "lilt",
    "llada",
    "longformer",
    "luke",
    "markuplm",
    "mpnet",
    "mra",
    "new",
    "nystromformer",
    "perceiver",
    "roberta-prelayernorm",
    "roformer",
    "siglip",
    "siglip2",
    "splinter",
    "tapas",
    "vit",
    "xlm",
    "xlm-roberta",
    "xlm-roberta-xl",
    "xmod",
    "yoso",
}
_ENCODES = re.compile(
    r"(bert|bert_text|roberta)$|^(bert|roberta|vit)[-_]|_(encoder|text_model|vision|vision_model|audio)$"
)

# Read by kvlab.plan.configs, or here without `get`.
READ = {
    "attention",
    "attention_bias",
    "hidden_size",
    "intermediate_size",
    "is_encoder_decoder",
    "kv_elements_per_token",
    "max_position_embeddings",
    "model_type",
    "moe",
    "note",
    "num_attention_heads",
    "num_hidden_layers",
    "parameters",
    "q_lora_rank",
    "qk_nope_head_dim",
    "source",
    "tie_word_embeddings",
    "tied_embeddings",
    "title",
    "tokenizer_bytes",
    "topk_method",
    "v_head_dim",
    "vocab_size",
}
_COUNTS = ("num_attention_heads", "num_key_value_heads", "head_dim", "v_head_dim")
_WINDOWS = ("sliding_window", "sliding_window_size", "attention_window_size")


def layers_of(config: Mapping[str, Any], where: str) -> tuple[tuple[Layer, ...], tuple[str, ...]]:
    """The layers that have a cache of their own, in order, and what to warn of.

    `config` keeps config.schema.json. BadInput, which starts with `where`, names the key that is wrong.
    """
    reader = _Reader(config, where)
    kinds = reader.kinds()
    cached = tuple(
        reader.layer(i, KINDS[kind][0])
        for i, kind in enumerate(kinds)
        if kind in KINDS and KINDS[kind][0] != NOTHING
    )
    if not cached:
        raise BadInput(f"{where}: none of its {len(kinds)} layers has a KV cache")
    return cached, (*reader.warnings, *reader.unread(kinds))


class _Reader:
    """A config, of which it notes what was read and what is to be warned of."""

    def __init__(self, config: Mapping[str, Any], where: str) -> None:
        self.config, self.where = config, where
        self.layers: int = config["num_hidden_layers"]
        self.warnings: list[str] = []
        self.read = set(READ)
        self.latent = bool(config.get("kv_lora_rank"))
        self._decodes()
        for key in _REFUSED:
            if config.get(key):
                raise self.refuse(f"{key}: layers that are described one by one are not read")
        for key in _LOOPS:
            if self.get(key) not in (None, 0, 1):
                raise self.refuse(f"{key} {config[key]}: models that pass their layers again are not read")
        self._mla()
        if self.latent:
            self.read |= {"head_dim", "qk_head_dim"}  # of queries and of keys that are not stored
        self.config = config = self._named_kv_heads()
        if config.get("model_type") in _OWN_KV_HEADS and not any(
            config.get(key) for key in ("num_key_value_heads", "num_key_value_heads_per_layer")
        ):
            self.warnings.append(
                f"num_key_value_heads is not said: taken as the {config['num_attention_heads']} of"
                " num_attention_heads"
            )
        if config.get("model_type") in _OWN_WINDOW and not any(key in config for key in _WINDOWS):
            self.warnings.append(
                f"sliding_window is not said: model_type {config['model_type']} has one of its own, which is"
                " not counted"
            )

    def _decodes(self) -> None:
        """BadInput where tokens see later ones."""
        config, kind = self.config, str(self.config.get("model_type") or "")
        named = kind.lower() in _ENCODERS or _ENCODES.search(kind.lower())
        for key, encodes in (
            (f"model_type {kind}", named),
            ("architectures", any(str(a).endswith("ForMaskedLM") for a in self.get("architectures") or ())),
            ("causal false", self.get("causal") == 0),
            ("is_causal false", self.get("is_causal") == 0),
        ):
            if encodes and not config.get("is_decoder") and not config.get("is_encoder_decoder"):
                raise self.refuse(f"{key}: an encoder has no KV cache")
        # Gemma 3 and 4 say "vision" where only the tokens of an image do.
        if self.get("use_bidirectional_attention") is True:
            raise self.refuse("use_bidirectional_attention true: an encoder has no KV cache")

    def _mla(self) -> None:
        used = self.get("use_mla")
        if used is not None and bool(used) != self.latent:
            raise self.refuse(
                f"use_mla {str(used).lower()} and kv_lora_rank {self.config.get('kv_lora_rank')} disagree"
            )

    def _named_kv_heads(self) -> Mapping[str, Any]:
        """The config with num_key_value_heads, where another key says it."""
        config, stated = self.config, self.config.get("num_key_value_heads")
        if config.get("num_key_value_heads_per_layer"):
            return config
        found = {key: config[key] for key in _KV_HEADS if self.get(key)}
        for key, heads in found.items():
            if isinstance(heads, list):
                self.full(key, heads)
        used, groups = self.get("multi_query_attention"), self.get("multi_query_group_num")
        if used and not groups:
            raise self.refuse("multi_query_attention: there is no multi_query_group_num")
        if groups and used is None and stated is None:  # it holds where multi_query_attention is true
            raise self.refuse(f"multi_query_group_num {groups}: there is no multi_query_attention")
        if groups and used is not False:
            found["multi_query_group_num"] = groups
        # Falcon: of a later architecture multi_query says nothing; of an earlier one num_kv_heads may
        # be written as that of queries.
        if self.get("multi_query") and not self.get("new_decoder_architecture"):
            found = {key: n for key, n in found.items() if n != config["num_attention_heads"]}
            found["multi_query"] = 1
        if stated is None and config.get("num_gqa_groups"):  # heads of K, or of Q for one of K
            raise self.refuse(
                f"num_gqa_groups {config['num_gqa_groups']}: its meaning differs; say num_key_value_heads"
            )
        said = {"num_key_value_heads": stated, **found} if stated is not None else found
        for key, heads in said.items():
            first = next(iter(said))
            if heads != said[first]:
                raise self.refuse(f"{first} {said[first]} and {key} {config[key]} disagree")
        return {**config, "num_key_value_heads": next(iter(said.values()))} if said else config

    def refuse(self, text: str) -> BadInput:
        return BadInput(f"{self.where}: {text}")

    def get(self, key: str) -> Any:
        """The value of a key, None where it is absent or null; it counts as read."""
        self.read.add(key)
        return self.config.get(key)

    # --- kinds ---------------------------------------------------------------------------------

    def kinds(self) -> list[str]:
        """The kind of every layer: one of KINDS, or that it keeps the keys of another input or layer."""
        said = [(key, kinds) for key, read in _SOURCES if (kinds := read(self)) is not None]
        if said:
            first, kinds = said[0]
            for key, others in said[1:]:
                at = next((i for i in range(self.layers) if KINDS[kinds[i]][0] != KINDS[others[i]][0]), None)
                if at is not None:
                    self.warnings.append(f"{first} and {key} disagree, on layer {at} first: {first} is taken")
        else:
            kinds = ["full_attention"] * self.layers
            for key, more in (("sliding_window", "use_sliding_window"), ("attention_chunk_size", "")):
                if self.get(key) and self.config.get(more) is not False:
                    self.warnings.append(
                        f"{key} {self.config[key]} is not counted: {self.where} does not say in which"
                        " layers it holds"
                    )
        states = Counter(kind for kind in kinds if KINDS[kind][1])
        for kind, count in states.items():
            self.warnings.append(
                f"{count} of {self.layers} layers ({kind}) have a state of fixed size: it is not counted"
            )
        if bare := sum(KINDS[kind][0] == NOTHING for kind in kinds):
            self.warnings.append(f"weights of {bare} layers without attention are counted as if they had it")
        return self._shared(self._crossed(kinds))

    def _crossed(self, kinds: list[str]) -> list[str]:
        """With the layers that attend an image's keys, not those of the text."""
        crossed = self.indices("cross_attention_layers")
        if crossed:
            values = sum(2 * self.value("num_key_value_heads", i) * self.head_dim(i, ALL) for i in crossed)
            self.warnings.append(
                f"cross_attention_layers: {len(crossed)} layers keep keys and values of the image,"
                f" {values:,} values for each of its tokens: they are not counted"
            )
        return [_CROSS if i in crossed else kind for i, kind in enumerate(kinds)]

    def _shared(self, kinds: list[str]) -> list[str]:
        """With the last layers that use the keys and values of an earlier one."""
        shared = self.get("num_kv_shared_layers") or 0
        if shared >= self.layers:
            raise self.refuse(
                f"num_kv_shared_layers {shared}: of {self.layers} num_hidden_layers none is left"
            )
        return kinds[: self.layers - shared] + [_SHARED] * shared

    def names(self, key: str) -> list[str] | None:
        """A list of kinds, one for each layer."""
        kinds: list[str] | None = self.get(key)
        return None if kinds is None else self.known(key, self.full(key, kinds))

    def known(self, key: str, kinds: list[str]) -> list[str]:
        for i, kind in enumerate(kinds):
            if kind not in KINDS:
                raise self.refuse(
                    f'{key}.{i}: layers of kind "{kind}" are not known; known: {", ".join(KINDS)}'
                )
        return kinds

    def full(self, key: str, found: Any) -> Any:
        if len(found) != self.layers:
            raise self.refuse(f"{key} has {len(found)} entries for {self.layers} num_hidden_layers")
        return found

    def flags(self, key: str, kinds: tuple[str, str]) -> list[str] | None:
        """A list of 0 and 1, one for each layer, that stand for `kinds`."""
        found = self.get(key)
        return None if found is None else [kinds[bool(flag)] for flag in self.full(key, found)]

    def indices(self, key: str) -> set[int]:
        found = self.get(key) or ()
        for i in found:
            if i >= self.layers:
                raise self.refuse(f"{key} names layer {i}; the last is {self.layers - 1}")
        return set(found)

    def every(self, key: str, kind: str, others: str) -> list[str] | None:
        """Every so many layers, the last of them first, one of a kind among others."""
        n = self.get(key)
        return None if n is None else [others if (i + 1) % n else kind for i in range(self.layers)]

    @property
    def slides(self) -> bool:
        return bool(self.get("sliding_window") or self.get("sliding_window_size")) and (
            self.get("use_sliding_window") is not False
        )

    def without_window(self, key: str) -> None:
        """Warns of a key that tells where a window holds, unless it is said that there is none."""
        if self.get("use_sliding_window") is not False:
            self.warnings.append(f"{key} is not counted: there is no sliding_window")

    # --- what a layer keeps --------------------------------------------------------------------

    def layer(self, i: int, keeps: str) -> Layer:
        """What layer i keeps, of all tokens or of a window or chunk of them."""
        heads, kv_heads = self.heads(i, keeps), self.kv_heads(i, keeps)
        window = self.window(i, keeps)
        index = self.get("index_head_dim") or 0
        if self.latent:
            latent = self.get("kv_lora_rank") + self.get("qk_rope_head_dim")
            return Layer(heads, kv_heads, 0, 0, window, latent, index)
        if heads % kv_heads:
            raise self.refuse(
                f"num_attention_heads {heads} is not a multiple of num_key_value_heads {kv_heads}"
                + (f" in layer {i}" if self.differs() else "")
            )
        head_dim = self.head_dim(i, keeps)
        v_dim = self.by_kind("v_head_dim", i, keeps) or head_dim
        return Layer(heads, kv_heads, head_dim, v_dim, window, 0, index)

    def differs(self) -> bool:
        config = self.config
        return any(isinstance(config.get(key), list) or config.get(f"{key}_per_layer") for key in _COUNTS)

    def value(self, key: str, i: int) -> Any:
        """Of layer i: from the list of all layers where there is one, else the one value of all."""
        for name in (f"{key}_per_layer", key):
            found = self.get(name)
            if isinstance(found, list):
                return self.full(name, found)[i]
        return self.get(key)

    def by_kind(self, key: str, i: int, keeps: str) -> Any:
        """As value(), where windowed layers and the others may have a key of their own."""
        own = None
        if keeps == WINDOW:
            own = self.get(f"swa_{key}")
        elif keeps == ALL and key == "head_dim":
            own = self.get("global_head_dim")
        elif keeps == ALL and key == "num_key_value_heads":
            own = self.get("num_global_key_value_heads")
            if self.get("attention_k_eq_v") is False:  # Gemma 4: only such layers have fewer
                own = None
        return own or self.value(key, i)

    def heads(self, i: int, keeps: str) -> int:
        return int(self.by_kind("num_attention_heads", i, keeps))

    def kv_heads(self, i: int, keeps: str) -> int:
        return self.by_kind("num_key_value_heads", i, keeps) or self.heads(i, keeps)

    def head_dim(self, i: int, keeps: str) -> int:
        found = self.by_kind("head_dim", i, keeps) or self.get("attention_head_dim")
        if found:
            return int(found)
        dim, heads = self.config["hidden_size"], self.config["num_attention_heads"]
        if isinstance(heads, list) or dim % heads:
            raise self.refuse(
                f"hidden_size {dim} is not divisible by num_attention_heads {heads}, and there is no head_dim"
            )
        return int(dim // heads)

    def window(self, i: int, keeps: str) -> int | None:
        if keeps == ALL or (keeps == WINDOW and self.get("use_sliding_window") is False):
            return None
        keys = ("attention_chunk_size",) if keeps == CHUNK else _WINDOWS
        for key in keys:
            if found := self.value(key, i):
                return int(found)
        kind = "chunked_attention" if keeps == CHUNK else "sliding_attention"
        raise self.refuse(f"layer {i} is of kind {kind}, and there is no {keys[0]}")

    # --- what is not read ----------------------------------------------------------------------

    def unread(self, kinds: list[str]) -> list[str]:
        """A warning of the keys that were not read and are not known as harmless, if there are any."""
        states = any(kind in KINDS and KINDS[kind][1] for kind in kinds)
        said = unread(self.config, self.read, states)
        return [said] if said else []


# --- what says of which kind the layers are; the first of these that does holds -----------------------


def _block_types(reader: _Reader) -> list[str] | None:
    """RecurrentGemma: a pattern that is repeated, whose attention has a window."""
    pattern = reader.get("block_types")
    if not pattern:
        return None
    if reader.get("attention_window_size"):
        pattern = ["sliding_attention" if kind == "attention" else kind for kind in pattern]
    reader.known("block_types", pattern)
    return [pattern[i % len(pattern)] for i in range(reader.layers)]


def _letters(reader: _Reader) -> list[str] | None:
    """Nemotron-H: a letter for each layer."""
    key = "hybrid_override_pattern"
    pattern = reader.get(key)
    if not pattern:
        return None
    for i, letter in enumerate(pattern):
        if letter not in _LETTERS:
            raise reader.refuse(f'{key}.{i}: "{letter}" is not one of {", ".join(_LETTERS)}')
    return [_LETTERS[letter] for letter in reader.full(key, pattern)]


def _period(reader: _Reader) -> list[str] | None:
    """Jamba: attention every so many layers, from the offset on."""
    period, offset = reader.get("attn_layer_period"), reader.get("attn_layer_offset")
    if period is None:
        return None
    if offset is None or offset >= period:
        raise reader.refuse(f"attn_layer_period {period} needs an attn_layer_offset below it, not {offset}")
    return ["attention" if i % period == offset else "mamba" for i in range(reader.layers)]


def _listed(key: str, kind: str, others: str) -> Callable[[_Reader], list[str] | None]:
    """A list of the layers of a kind, from 0 on."""

    def read(reader: _Reader) -> list[str] | None:
        if reader.get(key) is None:
            return None
        named = reader.indices(key)
        return [kind if i in named else others for i in range(reader.layers)]

    return read


def _linear(reader: _Reader) -> list[str] | None:
    """Kimi Linear: its lists count layers from 1 on."""
    found = reader.get("linear_attn_config")
    if found is None:
        return None
    full, linear = (set(found[key]) for key in ("full_attn_layers", "kda_layers"))
    if full & linear or full | linear != set(range(1, reader.layers + 1)):
        raise reader.refuse(
            f"linear_attn_config: full_attn_layers and kda_layers do not name layers 1 to {reader.layers}"
            " once each"
        )
    return ["full_attention" if i + 1 in full else "linear_attention" for i in range(reader.layers)]


def _slides_in(reader: _Reader) -> list[str] | None:
    found = _listed("sliding_window_layers", "sliding_attention", "full_attention")(reader)
    if found and not reader.slides and reader.get("sliding_window_layers"):
        reader.without_window("sliding_window_layers")
    return found if reader.slides else None


def _pattern(reader: _Reader) -> list[str] | None:
    """A number (every so many layers sees all) or letters that are repeated, L for local and G for global."""
    for key in ("sliding_window_pattern", "_sliding_window_pattern"):
        pattern = reader.get(key)
        if pattern is None:
            continue
        if not reader.slides:
            reader.without_window(key)
            continue
        if isinstance(pattern, int):
            return reader.every(key, "full_attention", "sliding_attention")
        kinds = {"L": "sliding_attention", "G": "full_attention"}
        if not pattern or set(pattern) - set(kinds):
            raise reader.refuse(f'{key}: "{pattern}" is not of the letters L and G')
        return [kinds[pattern[i % len(pattern)]] for i in range(reader.layers)]
    return None


def _chunks(reader: _Reader) -> list[str] | None:
    """Llama 4: layers without rotary positions see everything, the others their chunk."""
    flags, every = reader.get("no_rope_layers"), reader.get("no_rope_layer_interval")
    if not reader.get("attention_chunk_size"):
        return None
    if flags:
        return reader.flags("no_rope_layers", ("full_attention", "chunked_attention"))
    if every:
        return reader.every("no_rope_layer_interval", "full_attention", "chunked_attention")
    return None


def _upper(reader: _Reader) -> list[str] | None:
    """Qwen2: a window in the layers from max_window_layers on."""
    first = reader.get("max_window_layers")
    if first is None or not reader.slides or not reader.get("use_sliding_window"):
        return None
    return ["sliding_attention" if i >= first else "full_attention" for i in range(reader.layers)]


def _by_model(reader: _Reader) -> list[str] | None:
    if reader.config.get("model_type") == "falcon_h1":
        return ["hybrid"] * reader.layers
    every = _PATTERNS.get(reader.config.get("model_type") or "")
    stated = any(reader.config.get(key) is not None for key in _SAY_WINDOWS)
    if every is None or stated or not reader.slides:
        return None
    return [
        "full_attention" if every and (i + 1) % every == 0 else "sliding_attention"
        for i in range(reader.layers)
    ]


_SAY_WINDOWS = ("layer_types", "sliding_window_layers", "sliding_window_pattern", "_sliding_window_pattern")
_SOURCES: tuple[tuple[str, Callable[[_Reader], list[str] | None]], ...] = (
    ("layer_types", lambda reader: reader.names("layer_types")),
    ("layers_block_type", lambda reader: reader.names("layers_block_type")),
    ("block_types", _block_types),
    ("hybrid_override_pattern", _letters),
    (
        "hybrid_layer_pattern",  # MiMo-V2
        lambda reader: reader.flags("hybrid_layer_pattern", ("full_attention", "sliding_attention")),
    ),
    (
        "attn_type_list",  # MiniMax
        lambda reader: reader.flags("attn_type_list", ("linear_attention", "full_attention")),
    ),
    (
        "full_attention_interval",  # Qwen3-Next
        lambda reader: reader.every("full_attention_interval", "full_attention", "linear_attention"),
    ),
    ("attn_layer_period", _period),
    ("attn_layer_indices", _listed("attn_layer_indices", "attention", "mamba")),  # Bamba
    ("hybrid_layer_ids", _listed("hybrid_layer_ids", "hybrid", "mamba")),  # Zamba2
    ("linear_attn_config", _linear),
    ("sliding_window_layers", _slides_in),
    ("sliding_window_pattern", _pattern),
    ("no_rope_layers", _chunks),
    ("max_window_layers", _upper),
    ("model_type", _by_model),
)
