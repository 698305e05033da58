"""Eviction: which of the things kept is forgotten first.

Orders live in link arrays of whole numbers, made by whoever keeps the things; a touch moves no memory.
"""
