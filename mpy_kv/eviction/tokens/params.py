"""Index of each number in `plan`, the array('i') by which a budget cache and its kernels talk.

viper.py repeats the indexes as literals, as only literals become constants there; a test holds the two
together. Ring: the slots behind the sinks, one more than the budget; an index of one is counted from 0 there,
and RING, their number, means none.
"""

RING = 0
SINKS = 1  # slots of sinks
RECENT = 2  # newest tokens that never leave
KIND = 3  # what watch() does with shares: USED, MASS, DECAYED; see plain.py
PEAK = 4  # 1: of a token's shares the largest counts, 0: their sum
BITS = 5  # a share of everything is 2^BITS in this step
FRESH = 6  # worth that a token begins with
HEADS = 7  # heads of all layers
DOWN = 8  # masses count 2^-DOWN of what a step of one row adds up

# Of the step, from its begin on.
FIRST = 9  # where its first token goes
HOLE = 10  # whose token leaves when it is committed
ROWS = 11  # its tokens
SEEN = 12  # sinks that its last token sees
COUNT = 13  # ring tokens that it sees, itself included
THRESHOLD = 14  # a sum or peak above it is a use
UP = 15  # bits that a share of one row has more
SINCE = 16  # length at which it is committed, all of it in force; 0: no step
BANK = 17  # array of worths in force, 0 or 1
NEXT_BANK = 18  # the same once the step is committed
EVICTED = 19  # tokens that ever left, mod 2^30
NEXT_EVICTED = 20

# Found by survey().
LIVE = 21  # ring tokens there
FREE = 22  # first slot without one
TOP = 23  # last slot with one
VICTIM = 24  # least worthy token that may leave

MOVING = 25  # whose token is also in a lower slot, or about to be
SHRINKING = 26  # 1: tokens marked GONE in the other bank have left

ROW_BITS = 27  # BITS of a step of one row

ACC = 28  # shares by place in what a token sees: sinks, then the ring but for HOLE; then uint16 scratch

USED, MASS, DECAYED, BLIND = range(4)

MOST_BITS = 20  # of a share
MOST_VISIBLE = 1 << 14  # tokens: weights of 15 bits sum below 2^30
NOW = 1 << 29  # worth of a token used in the last step; one less for each step since
GONE = 0x3FFFFFFF  # worth of what may not leave, and mark of what is to
