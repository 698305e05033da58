"""Arrays of state: of pools, of blocks and requests, of eviction policies."""

from __future__ import annotations

from field_tables.table import Table, rows

_META = ("meta", "*._meta")

MARK = Table(
    "mark",
    "What a layer holds in a step, in `_mark` of a Sequence.",
    {},
    rows("""
    NOTHING | mark | commit, abort | of this step
    STORED | mark | append, prefill | its tokens
    STAGED | mark | prefill | arrays of tokens, to be stored when it is attended
    CUT | mark | attend | a part of them stored: its window may be lost, so it must be staged again
    """),
)

TURN = Table(
    "turn",
    "`_turn` of a Sequence: where its step is.",
    dict.fromkeys(
        ("*.py", *(f"{name}/*.py" for name in ("token_eviction", "int4_blocks", "paged", "snapshot"))),
        ("turn", "*._turn"),
    ),
    rows("""
    NEXT | layer | append | expected: one after the last it got
    LAST | layer | append, prefill | stored or staged last
    HIGH | position | append, rollback | at least 1 + the highest whose slot may have been written since
    STEP | tokens | append, commit, abort | of this step; 0: none is begun, and the marks mean nothing
    GONE_THEN | tokens | rollback, seek | what _gone is once the length is THEN: one move changes both
    THEN | position | rollback, seek | that length; -1: _gone is as it is
    ROW_VALUES | values | setup | of a token's q and of its result
    """),
    names_end="TURN_PLACES",
)

REQUEST = Table(
    "request",
    "`_own` of a Request.",
    {"paged/*.py": ("own", "*._own"), "snapshot/*.py": ("*._own",)},
    rows("""
    KNOWN | tokens | commit, rollback | in the index; fewer than the length where one lacks id, sight or chain
    CHAIN | block | commit | of the last full one of these, or -1 - root
    CHAIN_SERIAL | serial | commit | of that block
    CHAIN_HASH | hash | commit | of the chain
    TOUCHED | entries | append | of the table that the step has changed
    AIMED | offset | append | of the block that encode() writes to
    SINCE | position | append | length at which the step that TOUCHED counts for has begun
    IDS_AT | element | append | where the ids of that block begin
    ID_BITS | bits | setup | of an id
    """),
    names_end="PLACES",
)

POLICY = Table(
    "policy",
    "`meta` of an eviction policy; counts wrap at 2^30, the end of a 32-bit board's small ints.",
    {"eviction/*.py": _META},
    rows("""
    HELD | entries | insert, evict, remove | in the policy
    PROTECTED | entries | protect, unprotect | that are no victims
    INSERTED | entries | insert | ever
    EVICTED | entries | evict | ever
    REMOVED | entries | remove | ever
    """),
    names_end="OWN",
)
_OWN = len(POLICY.fields)

LFU = Table(
    "lfu",
    "What LFU and Hybrid add to a policy's `meta`.",
    {"eviction/*.py": _META},
    rows("""
    LEAST | anchor | every call | no list below it holds anything
    LAST | anchor | made with it | of the count at which counting stops
    """),
    first=_OWN,
)

HYBRID = Table(
    "hybrid",
    "What Hybrid adds to LFU's `meta`.",
    {"eviction/hybrid.py": _META, "eviction/inspect.py": _META},
    rows("""
    WINDOW | entries | made with it | newest, that evict passes
    FRESH | entries | insert, remove | in the window
    OLDEST | entry | insert, remove | of the window; n: none
    MIXED | flag | unprotect | 1: the list of count 1 may not be in order of insertion
    """),
    first=_OWN + len(LFU.fields),
)

SIEVE = Table(
    "sieve",
    "What Sieve adds to a policy's `meta`.",
    {"eviction/sieve.py": _META, "eviction/inspect.py": _META},
    rows("""
    HAND | entry | evict, remove | that the hand is at; n for the oldest
    """),
    first=_OWN,
)

S3FIFO = Table(
    "s3fifo",
    "What S3-FIFO adds to a policy's `meta`.",
    {"eviction/s3fifo.py": _META, "eviction/inspect.py": _META},
    rows("""
    TRIAL | entries | made with it | from which on the small queue is evicted from
    SMALL | entries | insert, evict, remove | in the small queue
    GHOSTS | keys | made with it | that are remembered
    BUCKETS | mask | made with it | one less than there are
    GHOST | place | evict | of the oldest that is remembered
    """),
    first=_OWN,
)

BLOCKS = Table(
    "blocks",
    "`meta` of the blocks of pages.",
    {"paged/*.py": ("meta", "*.meta")},
    rows("""
    N | blocks | setup | there are; as an index none
    TOP | block | take, give | first free one
    FREE | blocks | take, give | that hold nothing
    REUSABLE | blocks | take, give | that nobody holds and a prefix may find
    USED | blocks | take, give | that somebody holds
    PEAK | blocks | take | most ever in use
    SERIAL | entries | enter | of the index, ever made
    ENTRIES | entries | enter, forget | of the index
    BLOCK_TOKENS | tokens | setup | of a block
    ORPHANS | flag | forget, prune | 1: an entry with children has left: what came after it is found no more
    """),
)

ADMISSION = Table(
    "admission",
    "`meta` of Admission; those from SUBMITTED on only grow, and wrap at 2^30.",
    {"admission/*.py": _META},
    rows("""
    RESERVED | blocks | step, growth, finish, cancel | of running tickets
    HIGH | blocks | step, growth | most ever reserved
    WAITING | tickets | every change | that wait
    RUNNING | tickets | every change | that run
    ARRIVAL | number | submit | of the next ticket; wraps at 2^30
    SUBMITTED | tickets | submit | ever
    REFUSED | requests | submit | ever
    ADMITTED | tickets | step | ever
    PREEMPTED | tickets | step, growth | ever
    FINISHED | tickets | finish | ever
    CANCELLED | tickets | cancel | ever
    """),
    names_end="PLACES",
)

REQUESTS = Table(
    "requests",
    "`state` of all requests.",
    {"paged/*.py": ("state", "*.state"), "snapshot/*.py": ("*.state",)},
    rows("""
    BUSY | flag | every change | 1: within one; what finds it set mends first
    BOUND | blocks | every change | promised to or held by requests alone
    COMMON | blocks | every change | held by several, or by one beyond its share
    PINNED | blocks | pin, unpin | held by pins
    OPENED | requests | open | ever, mod 2^29
    REUSED | tokens | open | found instead of computed
    """),
)

FIXED = Table(
    "fixed",
    "`meta` of a fixed pool.",
    {
        "pools/fixed.py": _META,
        "pools/batch.py": _META,
        "pools/inspect.py": _META,
        "pools/raise_errors.py": _META,
    },
    rows("""
    TOP | place | alloc, free | where the stack of free blocks ends
    MASK | mask | setup | bits of a handle that are an index
    STEP | handle | setup | from one generation to the next
    BLOCKS | blocks | setup | there are
    WASTE | bytes | alloc, free, grow | handed out and not asked for
    LOCKS | blocks | lock, unlock | that are locked
    WRAPS | blocks | free | whose generation came round, ever; wraps at 2^30; below 0: a batch was cut short
    FIRST | bytes | alloc, free, grow | of the first block not asked for; then those of the others
    """),
)

UNITS = Table(
    "units",
    "`meta` of a pool that hands out units (buddy, region, slab); ALLOCS and FREES wrap at 2^30.",
    {"pools/*.py": (*_META, "doors", "*._doors")},
    rows("""
    N | entries | setup | in `word`
    MASK | mask | setup | bits of a handle that are an index
    STEP | handle | setup | from one generation to the next
    WRAP | mask | setup | all bits of a handle
    ALLOCS | blocks | alloc | ever handed out; a slab pool keeps none
    FREES | blocks | free | ever given back
    USED | blocks | alloc, free | in use
    HIGH | blocks | alloc | most ever in use
    HIGH_UNITS | units | alloc | most ever in use; of a slab pool see LEAST
    FREE | units | alloc, free | that nobody has
    WASTE | bytes | alloc, free, grow | handed out and not asked for
    LOCKS | blocks | lock, unlock | that are locked
    LOCKED | units | lock, unlock | that are locked
    UNITS | units | setup | there are
    SHIFT | bits | setup | a unit has 1 << SHIFT bytes
    """),
    names_end="OWN",
)
_UNITS_OWN = len(UNITS.fields)

BUDDY = Table(
    "buddy",
    "What a buddy pool adds to `meta`.",
    {"pools/buddy.py": _META, "pools/units_inspect.py": _META, "pools/units_make.py": _META},
    rows("""
    ORDER | order | setup | largest that there is
    HEADS | block | alloc, free | first free one of order 0, -1: none; then those of the others
    """),
    first=_UNITS_OWN,
)

REGION = Table(
    "region",
    "What a region pool adds to `meta`: of its list, of real memory, of a place found, of compact().",
    {"pools/region.py": _META, "pools/units_inspect.py": _META, "pools/units_make.py": _META},
    rows("""
    BITS | bits | setup | of an index in a link
    HEAD | region | alloc, free | first by address
    SPARE | entry | alloc, free | first unused one
    SKEW | units | setup | by which the pool's start exceeds a multiple of the largest alignment
    BEFORE | region | seek | predecessor of the place found
    START | unit | seek | the place found
    COME | region | compact | come to
    GAP | units | compact | largest behind that
    LEFT | units | compact | that it may still move
    LIMIT | units | compact | that it may move at once
    """),
    first=_UNITS_OWN,
    names_end="REGION_END",
)

LEAST = Table(
    "slab_least",
    "In a slab pool's `meta` in place of HIGH_UNITS.",
    {"pools/slab*.py": _META},
    rows("""
    LEAST | bytes | alloc | fewest that were free
    """),
    first=[name for name, _, _ in UNITS.indexes()].index("HIGH_UNITS"),
)

SLAB_POOL = Table(
    "slab_pool",
    "What a slab pool adds to `meta`.",
    {"pools/slab*.py": _META, "pools/regions_inspect.py": _META},
    rows("""
    PER | objects | setup | of the smallest class in a slab
    KINDS | classes | setup | there are
    STOCK | slab | alloc, free | first that nobody has
    SPARE | slabs | alloc, free | that nobody has
    UNFILLED | slabs | every change | guaranteed to regions and not yet held
    SLAB | bytes | setup | of one
    RECORDS | place | setup | of the first region's record in `table`
    RECORD | places | setup | of one record
    """),
    first=_UNITS_OWN,
    names_end="SLAB_POOL_END",
)

DOORS = Table(
    "doors",
    "What the words of a slab pool's regions add to `meta`.",
    {"pools/slab_region.py": ("doors", "*._doors"), "pools/regions_inspect.py": ("doors",)},
    rows("""
    CLOSED | region | open_region, close_region | first that is not open; NO_REGION: none
    """),
    first=_UNITS_OWN,
    names_end="DOORS_END",
)

SLAB = Table(
    "slab",
    "A slab's six numbers of 16 bits in `slab`.",
    {"pools/slab*.py": ("slab", "*._slab"), "pools/regions_inspect.py": ("slab",)},
    rows("""
    SLAB_NEXT | slab | alloc, free | next in its list
    SLAB_PREVIOUS | slab | alloc, free | previous in its list
    SLAB_WHOSE | mark | alloc, free | region << 5, and the class
    SLAB_USED | objects | alloc, free | in use
    SLAB_FREED | object | free | first freed one
    SLAB_EVER | objects | alloc | ever in use since it was given to its class; those behind are free too
    """),
    names_end="SLAB_WORDS",
)

CLASS = Table(
    "class",
    "A size class, from the start of `table` on.",
    {"pools/slab*.py": ("table", "*._table"), "pools/regions_inspect.py": ("table",)},
    rows("""
    CLASS_BYTES | bytes | setup | of an object
    CLASS_OBJECTS | objects | setup | of a slab
    CLASS_ALIGN | bytes | setup | of an object's place
    """),
    names_end="CLASS_WORDS",
)

RECORD = Table(
    "record",
    "A region's numbers in `table`, behind the heads of its lists: of partly used slabs, and of full ones.",
    {"pools/slab*.py": ("table", "*._table"), "pools/regions_inspect.py": ("table",)},
    rows("""
    HELD | slabs | alloc, free | of the region
    GUARANTEED | slabs | open_region | of the region
    ALLOWED | slabs | open_region | of the region
    MARK | mark | open_region | region << 5
    HOLDERS | holders | retain, close_region | of the region
    OWNER | owner | set_owner | of the region
    """),
)

NODE = Table(
    "node",
    "Rows of 16 bits in a region pool's `node`, one number a region each.",
    {"pools/region.py": ("node", "*._node"), "pools/units_inspect.py": ("node",)},
    rows("""
    AT | units | alloc, compact | where the region starts
    LENGTH | units | alloc, grow | of the region
    REST | bytes | alloc, grow | not asked for; from bit SHIFT on the alignment as a power of two of units
    LINK | region | alloc, free | next by address; from bit BITS on the holders
    LAYER | layer | set_owner | that owns it
    BATCH | batch | set_owner | that owns it
    """),
    names_end="NODE_ROWS",
)

SCAN = Table(
    "scan",
    "What a start of the flash log reads: `out` of foot(), take() and enter().",
    {"flash_log/*.py": ("out", "*.out", "scan")},
    rows("""
    FOOT_KIND | byte | foot | of the sector
    FOOT_SLOT | slot | foot | of the sector
    FOOT_NUMBER | number | foot | of the closing
    FOOT_WEAR | erases | foot | of the sector
    FOOT_SESSION | session | foot | of the start that closed it
    FOOT_GENERATION | generation | foot | of the sequence
    FOOT_IDENTITY | identity | foot | of the sequence
    FOOT_END | bytes | foot | of the fragments
    FOOT_NEXT | sector | foot | in which the last record goes on, or 0
    AT_SECTOR | sector | scan | that is looked at
    ALL_SECTORS | sectors | scan | of the region
    FLOOR | erases | scan | that all sectors have had
    NEWEST | number | take | of the newest closing or opening
    NEWEST_IN | sector | take | that it closed, 0: an opening
    MOST_WORN | erases | take | above the floor
    ALL_SLOTS | slots | scan | of the log
    SINCE | number | scan | at which a start had last mended all
    ANY_GENERATION | flag | scan | whether closed sequences count (tests)
    ENTRIES | records | enter | in the index
    OWNED | sectors | take | that a sequence has
    CRC_TABLE*16 | word | new_scan | of four bits each
    CAPACITY | records | scan | that the index has room for
    """),
    names_end="SLOTS_AT",
)

SCAN_SLOT = Table(
    "scan slot",
    "Of each slot ten numbers behind those of the scan.",
    {"flash_log/*.py": ("out", "*.out", "ptr32(q)")},
    rows("""
    GENERATION | generation | scan | of the slot's sequence
    IDENTITY | identity | take | of the sequence
    FIRST | place | enter | in the index, of its first record
    BASE | record | enter | its first
    COUNT | records | enter | one more than its last
    TAIL | sector | take | closed last
    TAIL_NUMBER | number | take | of that closing
    BEFORE | sector | take | closed before that
    BEFORE_NUMBER | number | take | of that closing
    USED | flag | take | whether there is a sequence
    """),
    names_end="SLOT_WORDS",
)

TABLES = (
    *(SCAN, SCAN_SLOT),
    *(MARK, TURN, REQUEST, POLICY, LFU, HYBRID, SIEVE, S3FIFO, BLOCKS, ADMISSION, REQUESTS),
    *(FIXED, UNITS, BUDDY, REGION, LEAST, SLAB_POOL, DOORS, SLAB, CLASS, RECORD, NODE),
)
