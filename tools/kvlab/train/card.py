"""The model card: what a stranger must know about a model that was trained here."""

from __future__ import annotations

from typing import Any


def card(f: dict[str, Any]) -> str:
    """Markdown from the figures of `kvlab train`."""
    c = f["config"]
    lines = [
        f"# {f['name']}",
        "",
        f"A Llama of {f['parameters']:,} parameters trained by `kvlab train`: {c['layers']} layers, "
        f"dim {c['dim']}, hidden {c['hidden']}, {c['heads']} heads on {c['kv_heads']} KV heads, "
        f"vocabulary {c['vocab']}, context {c['seq_len']} tokens.",
        "",
        "| file | what |",
        "|---|---|",
        f"| `{f['name']}.mkvm` | the board image, {f['image_bytes']:,} bytes |",
        f"| `{f['name']}.bin` | the float32 llama2.c checkpoint, {f['checkpoint_bytes']:,} bytes |",
        f"| `tok{c['vocab']}.bin` | its tokenizer, byte-fallback BPE in llama2.c's format |",
        "",
        "## How it was made",
        "",
        f"    {f['command']}",
        "",
        f"Seed {f['seed']}, {f['steps']:,} steps of {f['batch_tokens']:,} tokens, "
        f"{f['minutes']:.0f} minutes of training on {f['cores']} cores "
        f"(jax {f['jax']}, numpy {f['numpy']}).",
        "",
        f"- Text given: {f['text_stories']:,} passages, {f['text_tokens']:,} tokens, "
        f"{100 * f['text_share']:.0f} % of what it saw.",
    ]
    if f["teacher"]:
        lines.append(
            f"- Text sampled from {f['teacher']} at temperature 1: {f['teacher_stories']:,} "
            f"passages, {f['teacher_stream_tokens']:,} tokens."
        )
    lines += ["", "## Loss on held-out text", ""]
    if f["heldout"]:
        h = f["heldout"]
        lines += [
            "Float32, whole passages, BOS before each; beyond the context a window that moves by half of it.",
            "",
            f"{h['nats_per_token']:.4f} nats/token, {h['nats_per_byte']:.4f} nats/byte over "
            f"{h['tokens']:,} tokens, {h['bytes']:,} bytes of {f['heldout_passages']:,} passages.",
        ]
    else:
        lines.append("Not measured: no text was held out.")
    if f["against_teacher"]:
        a = f["against_teacher"]
        lines += [
            "",
            f"Over the beginnings of these passages that fit {f['teacher']}'s context "
            f"({a['bytes']:,} bytes): {a['nats']:,.0f} nats, the teacher {a['teacher_nats']:,.0f}: "
            f"{a['ratio']:.3f} times as many.",
        ]
    lines += ["", "## What it tells", "", "Greedily, float32, from BOS:", ""]
    lines += [f"> {line}".rstrip() for line in f["sample"].splitlines()]
    return "\n".join(lines) + "\n"
