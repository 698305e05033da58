"""Streamed weights whose fetching the core does: for tests, and for counting."""
