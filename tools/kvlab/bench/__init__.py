"""Measurements: each module runs one kind and returns plain figures; `kvlab bench` prints them."""
