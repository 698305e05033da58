"""Train a small Llama from text on this machine. Only `llama`, `loop` and `teacher` need jax."""
