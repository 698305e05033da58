"""Models on the host: llama2.c files in, board images out, and a float reference beside them."""
