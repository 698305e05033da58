"""Refuses MicroPython code that the native emitters of released firmware get wrong.

Reads the source of functions decorated with @micropython.viper, @micropython.native or
@micropython.asm_thumb; runs none of it. Every rule of `RULES` names one way in which a function that
works on the unix port (64-bit words, the newest emitter) fails on a board with firmware 1.24 or newer.
Faults that were mended before 1.24 are no rules here, nor is what mpy-cross refuses for every
instruction set: a test compiles the tree for all of them.

A finding is allowed where it stands, with the reason:

    x = a // b  # viper: allow divide because b is a power of two, made by 1 << k

An allowance that allows nothing, names no rule or gives no reason is a finding itself.
"""

from __future__ import annotations

from viper_lint.check import Finding, lint_paths, lint_text
from viper_lint.rules import RULES, Rule

__all__ = ["RULES", "Finding", "Rule", "lint_paths", "lint_text"]
