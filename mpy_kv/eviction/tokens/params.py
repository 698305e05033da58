"""Names of the numbers in `plan`, and numbers that go with them."""

# all fields: plan, kind
# `plan`, the array('i') by which a budget cache and its kernels talk. Ring: the slots behind the sinks, one
# more than the budget; an index of one is counted from 0 there, and RING, their number, means none.
RING = 0  # slots, by setup: of the ring
SINKS = 1  # slots, by setup: of sinks
RECENT = 2  # tokens, by setup: newest, that never leave
KIND = 3  # kind, by setup: USED, MASS, DECAYED or BLIND
PEAK = 4  # flag, by setup: 1: of a token's shares the largest counts, 0: their sum
BITS = 5  # bits, by step: a share of everything is 2^BITS in this step
FRESH = 6  # worth, by step: that a token begins with
ALL_HEADS = 7  # heads, by setup: of all layers
DOWN = 8  # bits, by step: masses count 2^-DOWN of what a step of one row adds up
FIRST = 9  # slot, by step: where its first token goes
HOLE = 10  # slot, by step: whose token leaves when it is committed
ROWS = 11  # tokens, by step: of it
SEEN = 12  # sinks, by step: that its last token sees
COUNT = 13  # tokens, by step: of the ring that it sees, itself included
THRESHOLD = 14  # share, by step: a sum or peak above it is a use
UP = 15  # bits, by step: that a share of one row has more
SINCE = 16  # tokens, by step: length at which it is committed, all of it in force; 0: no step
BANK = 17  # bank, by commit: array of worths in force, 0 or 1
NEXT_BANK = 18  # bank, by step: the same once the step is committed
EVICTED = 19  # tokens, by commit: that ever left, mod 2^30
NEXT_EVICTED = 20  # tokens, by step: the same once the step is committed
LIVE = 21  # tokens, by survey(): of the ring, there
FREE = 22  # slot, by survey(): first without one
TOP = 23  # slot, by survey(): last with one
VICTIM = 24  # slot, by survey(): of the least worthy token that may leave
MOVING = 25  # slot, by step: whose token is also in a lower one, or about to be
SHRINKING = 26  # flag, by compress: 1: tokens marked GONE in the other bank have left
ROW_BITS = 27  # bits, by setup: BITS of a step of one row
ACC = 28  # share, by watch(): by place in what a token sees: sinks, then the ring but for HOLE; then scratch
# KIND in `plan`: what watch() does with shares, see plain.py.
USED = 0  # kind, by setup: a use counts
MASS = 1  # kind, by setup: shares are summed up
DECAYED = 2  # kind, by setup: and the older ones count less and less
BLIND = 3  # kind, by setup: nothing
# end of fields

MOST_BITS = 20  # of a share
MOST_VISIBLE = 1 << 14  # tokens: weights of 15 bits sum below 2^30
NOW = 1 << 29  # worth of a token used in the last step; one less for each step since
GONE = 0x3FFFFFFF  # worth of what may not leave, and mark of what is to
