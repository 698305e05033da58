"""Attention of many small caches, what `kvlab bench accuracy` compares with float64.

usage: accuracy.py LIST DATA OUT KERNELS
A line of LIST: CODEC HEADS KV_HEADS HEAD_DIM TOKENS SINKS LAYERS, with a window and SINKS, or of SINKS 0 a
capacity. DATA, float32, of each line after the other: keys [TOKENS][KV_HEADS][HEAD_DIM], which all layers
have; values [LAYERS][TOKENS][KV_HEADS][HEAD_DIM]; queries [HEADS][HEAD_DIM]. OUT: results of the last token,
[LAYERS][HEADS][HEAD_DIM]. KERNELS: the name of a set, or "best".
"""

import gc
import sys
from array import array

from mpy_kv import cache_for, geometry_for, kernels


def made(codec, heads, kv_heads, head_dim, tokens, sinks, layers, kernel_set):
    """An empty cache that holds so many tokens."""
    room = {"window": tokens - sinks, "sinks": sinks} if sinks else {"capacity": tokens}
    return cache_for(geometry_for(codec, layers, heads, kv_heads, head_dim, **room), kernels=kernel_set)


def attended(cache, tokens, keys, values, queries):
    """Results of every layer, after the last of the tokens. values: of a layer each."""
    g = cache.geometry
    before = (tokens - 1) * g.width
    if before:
        for layer in range(g.layers):
            cache.prefill(layer, keys, values[layer], tokens - 1)
        cache.commit()
    found = []
    for layer in range(g.layers):
        cache.append(layer, keys[before:], values[layer][before:])
        out = array("f", bytes(4 * g.heads * g.head_dim))
        cache.attend(layer, queries, out)
        found.append(out)
    return found


def run(lines, data, out, name):
    def floats(count):
        found = array("f", bytes(4 * count))
        data.readinto(found)
        return found

    for line in lines:
        codec, *numbers = line.split()
        heads, kv_heads, head_dim, tokens, sinks, layers = [int(number) for number in numbers]
        kernel_set = None if name == "best" else kernels.of(codec).get(name)
        keys = floats(tokens * kv_heads * head_dim)
        values = [floats(tokens * kv_heads * head_dim) for _ in range(layers)]
        cache = made(codec, heads, kv_heads, head_dim, tokens, sinks, layers, kernel_set)
        for found in attended(cache, tokens, keys, values, floats(heads * head_dim)):
            out.write(found)
        cache = keys = values = None
        gc.collect()


if __name__ == "__main__":
    with open(sys.argv[1]) as the_list, open(sys.argv[2], "rb") as the_data:
        with open(sys.argv[3], "wb") as the_out:
            run(the_list, the_data, the_out, sys.argv[4])
    print("{}")
