"""Cuts the power in every operation of the flash log, and checks what is left."""
