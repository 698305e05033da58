"""One module for each thumb.py that is made; its docstring is the docstring there."""
