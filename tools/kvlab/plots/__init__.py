"""Pictures: each module draws one kind from plain figures and saves it; none computes a figure itself."""
