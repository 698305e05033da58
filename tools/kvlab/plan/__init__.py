"""What fits where: sizes of a model's cache, weights and program against a board or a profile."""
