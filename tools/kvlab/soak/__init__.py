"""Long random runs of pools and requests, with every promise checked after every operation."""
