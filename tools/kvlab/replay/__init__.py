"""What each eviction policy would have kept: the accesses of a trace, replayed on the device's own policies.

source      accesses of a trace: Mooncake, WEKA, RAGPulse, or a list of keys
keys        keys as numbers from 0 on
catalogue   the policies by name, their transitions compiled
loops       the compiled loops over them: objects of one size, or of many
optimal     the most hits there can be, computed with the future known
runs        miss ratio against capacity, for each of them
"""
