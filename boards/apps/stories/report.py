"""The figures of a story. Transient (mpy_kv/transient.py): they are made once, when it is told."""


def of_story(teller, prompt_tokens, prompt_ms, ms, allocated, dropped):
    """A new dict. allocated: bytes, of the tokens after the first, None where nobody counts them; dropped:
    tokens of the prompt that compress() has taken out, or None."""
    llama = teller.llama
    cache = llama.cache
    each = None if allocated is None else (allocated + teller.told - 1) // max(teller.told, 1)
    return {
        "model_id": "%08x" % llama.image.model_id,
        "kernels": llama.kernels.name,
        "prompt_tokens": prompt_tokens,
        "tokens": teller.told,
        "stories": teller.stories,
        "prompt_ms": prompt_ms,
        "ms": ms,
        "alloc_bytes": allocated,
        "alloc_bytes_per_token": each,
        "window": cache.geometry.window,
        "sinks": cache.geometry.sinks,
        "codec": cache.geometry.codec,
        "cache_kernels": cache.kernels.name,
        "policy": getattr(cache, "policy", "window"),  # a ring drops the oldest
        "budget": cache.geometry.max_visible,
        "context": llama.image.seq_len,
        "compressed_tokens": dropped,
        "kv_bytes": cache.kv_bytes,
        "buffer_bytes": cache.buffer_bytes,
        "evicted_tokens": cache.evicted_tokens,
        "app_bytes": llama.ram_bytes(),
        "position": cache.length,
    }
