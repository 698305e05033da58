"""What `kvlab quality` measures where nothing else is asked for."""

TOKENS = 12_000  # at least so many are predicted
BUDGETS = (128, 64, 32)  # tokens that a policy may keep
