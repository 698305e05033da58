"""Requests in one arena: bits of a KVCache, sharing, copy on write, prefixes, isolation (ISO-2, 5..9)."""

from __future__ import annotations

import random
from array import array

import pytest
from paged_cases import (
    CODECS,
    HEAD_DIM,
    HEADS,
    LAYERS,
    SHAPE,
    WIDTH,
    alone,
    prefill,
    requests_of,
    ring_like,
    run,
    step,
    stored,
)

from field_tables import tables
from mpy_kv import kernels
from mpy_kv.arena import Arena
from mpy_kv.errors import BadArgument, BadHandle, CacheFull, Locked, NoRoom, OutOfRange, StepError
from mpy_kv.kernels import params
from mpy_kv.paged import PagedGeometry, Requests
from mpy_kv.paged.recovery import mend, prune
from mpy_kv.pools.buddy import BuddyPool
from mpy_kv.pools.fixed import FixedPool
from mpy_kv.pools.region import RegionPool
from mpy_kv.pools.slab import SlabPool
from mpy_kv.pools.slab_region import SlabRegionPool

META, STATE = tables.of("blocks"), tables.of("requests")

# The same bits as a ring


@pytest.mark.parametrize(
    ("block_tokens", "codec"),
    [*((size, "int8") for size in (1, 3, 4, 16)), *((3, codec) for codec in CODECS if codec != "int8")],
)
@pytest.mark.parametrize(
    "shape",
    [
        {"capacity": 40},
        {"capacity": None, "window": 9, "sinks": 3},
        {"capacity": None, "window": 16, "sinks": 0},
        {"capacity": None, "window": 1, "sinks": 5},
    ],
)
def test_results_have_the_bits_of_a_ring(shape: dict, block_tokens: int, codec: str) -> None:
    """Single steps, prefills of any length, rollbacks and aborts, whatever the size of a block."""
    draw = random.Random(block_tokens)
    requests = requests_of(60, block_tokens=block_tokens, codec=codec, **shape)
    ring, paged = ring_like(requests), requests.open()
    for _ in range(14):
        n = draw.choice([1, 1, 1, 2, 5, 20])
        if shape["capacity"] and ring.length + n > shape["capacity"]:
            break
        tokens = [draw.randrange(50) for _ in range(n)]
        if n == 1:
            assert step(paged, tokens[0]) == step(ring, tokens[0])
        else:
            assert prefill(paged, tokens) == prefill(ring, tokens)
        back = draw.choice([0, 0, 1, 3])
        for sequence in (ring, paged):
            sequence.rollback(min(back, sequence.length))
            sequence.append(0, array("f", [1.0] * WIDTH), array("f", [2.0] * WIDTH))
            sequence.abort()
        assert paged.visible() == ring.visible()
        assert stored(paged) == stored(ring)
        assert paged.evicted_tokens == ring.evicted_tokens
        assert requests.check() == paged.check() == 0


def test_a_cut_prefill_longer_than_the_window_keeps_the_same_survivors_in_all_layers() -> None:
    requests = requests_of(12, None, window=6, sinks=2)
    paged = requests.open()
    run(paged, list(range(20)))
    k = array("f", [0.5] * (WIDTH * 30))
    k[WIDTH * 29] = float("nan")
    q = array("f", bytes(4 * HEADS * HEAD_DIM * 30))
    paged.prefill(0, k, k, 30)
    with pytest.raises(Exception, match="not finite"):
        paged.attend(0, q, array("f", q), None, 30)
    paged.abort()
    assert paged.visible() == [0, 1]
    assert requests.check() == paged.check() == 0
    step(paged, 1)
    assert paged.visible() == [0, 1, 20]


def test_a_cut_prefill_loses_the_pages_that_it_wrote_over() -> None:
    """Tokens 20 .. 25 lie where 8 .. 15 did: of what was visible, 13 .. 15 are gone in all layers."""
    requests = requests_of(12, None, window=8, sinks=2)
    paged = requests.open()
    run(paged, list(range(20)), ids=False)
    assert paged.visible() == [0, 1, *range(12, 20)]
    k = array("f", [0.5] * (WIDTH * 6))
    k[WIDTH * 5] = float("nan")
    q = array("f", bytes(4 * HEADS * HEAD_DIM * 6))
    paged.prefill(0, k, k, 6)
    with pytest.raises(Exception, match="not finite"):
        paged.attend(0, q, array("f", q), None, 6)
    paged.abort()
    assert paged.visible() == [0, 1, *range(16, 20)]
    assert requests.check() == paged.check() == 0


def test_a_pending_prefill_leaves_what_is_committed_to_be_read() -> None:
    requests = Requests(PagedGeometry(1, 1, 1, 4, window=5, sinks=0, block_tokens=1), 40)
    one = requests.open()
    for token in range(6):
        x = array("f", [token + 1.0] * 4)
        one.append(0, x, x)
        one.commit(token)
    x = array("f", [9.0] * 20)
    one.prefill(0, x, x, 5)
    assert one.visible() == [1, 2, 3, 4, 5]
    assert [round(one.read(0, "k", p)[0], 1) for p in one.visible()] == [2.0, 3.0, 4.0, 5.0, 6.0]
    assert one.check() == requests.check() == 0


@pytest.mark.parametrize("held", ["alone", "found", "shared", "shared, no room for both"])
@pytest.mark.parametrize("block_tokens", [1, 2, 3, 4])
@pytest.mark.parametrize(("start", "n", "cut"), [(6, 5, 0), (7, 2, 1), (8, 5, 4), (9, 9, 3), (12, 8, 0)])
def test_what_is_committed_is_read_as_in_a_ring_until_it_is_overwritten(
    start: int, n: int, cut: int, block_tokens: int, held: str
) -> None:
    """A prefill staged, attended, cut at a row of the last layer, aborted: what is visible reads as before;
    all of it while no row is stored, and never less than a ring shows."""
    g = PagedGeometry(**SHAPE, window=5, sinks=1, block_tokens=block_tokens)
    full = held.endswith("both")
    requests = Requests(g, 2 * g.pages if full else 40, kernels=kernels.get("plain"))
    ring, one = ring_like(requests), requests.open(reserve_tokens=40 if full else 0)
    run(ring, list(range(start)))
    run(one, list(range(start)), ids=held != "alone")
    if held.startswith("shared"):
        one.fork()
    places = [(layer, which, p) for layer in range(LAYERS) for which in "kv" for p in ring.visible()]
    was = {place: ring.read(*place) for place in places}
    x = array("f", [0.5] * (WIDTH * n))
    spoiled = array("f", x)
    spoiled[WIDTH * cut] = float("nan")
    q = array("f", bytes(4 * HEADS * HEAD_DIM * n))

    def compare(whole: bool) -> None:
        seen = one.visible()
        assert set(ring.visible()) <= set(seen)
        assert all(one.read(*place) == was[place] for place in places if place[2] in seen)
        assert len(seen) * 2 * LAYERS == len(places) or not whole
        assert one.check() == requests.check() == 0

    for sequence in (ring, one):
        sequence.prefill(0, x, x, n)
        sequence.prefill(1, x, x, n)
    compare(True)
    for sequence in (ring, one):
        sequence.abort()
    compare(True)
    for sequence in (ring, one):
        sequence.prefill(0, x, x, n)
        sequence.attend(0, q, array("f", q), None, n)
        sequence.prefill(1, spoiled, x, n)
    compare(False)
    for sequence in (ring, one):
        with pytest.raises(OutOfRange, match="not finite"):
            sequence.attend(1, q, array("f", q), None, n)
    compare(False)
    for sequence in (ring, one):
        sequence.abort()
    compare(False)


def test_a_window_holds_no_more_blocks_than_it_needs() -> None:
    requests = requests_of(40, None, window=10, sinks=2, block_tokens=4)
    paged = requests.open()
    for token in range(200):
        step(paged, token % 50)
        assert requests.header(paged)["references"] <= 1 + 4
    assert paged.visible() == [0, 1, *range(190, 200)]


def test_a_full_window_goes_on_whatever_others_take() -> None:
    """It keeps the block of a page that has left it until the next page needs one: nobody comes between."""
    # 3 pages of 4 tokens for a window of 5.
    requests = requests_of(6, None, window=5, sinks=0, block_tokens=4)
    paged, other = requests.open(), requests.open()
    run(paged, list(range(12)), ids=False)
    run(other, list(range(12)), ids=False)
    for token in range(40):
        step(paged, token % 50, ids=token % 3 > 0)
        assert requests.header(paged)["references"] == 3
    assert requests.check() == 0


# Sharing


def test_a_fork_shares_everything_and_copies_the_tail_it_writes_to() -> None:
    requests = requests_of(16)
    one = requests.open()
    run(one, list(range(10)))
    two = one.fork()
    assert requests.stats()["shared_blocks"] == 3
    assert requests.stats()["referenced_blocks"] == 3
    assert step(two, 30) == alone([*range(10), 30], requests)[-1]
    assert requests.stats()["shared_blocks"] == 2
    assert step(one, 31) == alone([*range(10), 31], requests)[-1]
    assert requests.stats()["referenced_blocks"] == 4
    one.close()
    assert step(two, 32) == alone([*range(10), 30, 32], requests)[-1]
    two.close()
    assert requests.check() == 0
    assert requests.stats()["referenced_blocks"] == 0


def test_a_prefix_is_found_again_in_whole_blocks() -> None:
    requests = requests_of(16)
    tokens = [5, 6, 7, 8, 9, 10, 11, 12, 13, 14]
    one = requests.open(tokens=tokens)
    assert one.length == 0
    expected = run(one, tokens)
    two = requests.open(tokens=tokens)
    assert two.length == 8
    assert run(two, tokens) == expected[8:]
    one.close()
    three = requests.open(tokens=[*tokens[:6], 99, 98, 97])
    assert three.length == 4
    other = requests.open(tokens=tokens, salt=b"another")
    assert other.length == 0


@pytest.mark.parametrize(("n", "reusable"), [(3, 0), (4, 0), (5, 4), (7, 4), (8, 4), (9, 8), (12, 8)])
def test_one_token_is_always_computed(n: int, reusable: int) -> None:
    """ISO-8."""
    requests = requests_of(16)
    tokens = [*range(8), 20, 21, 22, 23][:n]
    one = requests.open()
    run(one, list(range(8)))
    one.close()
    two = requests.open(tokens=tokens)
    assert two.length == reusable
    assert run(two, tokens) == alone(tokens, requests)[reusable:]
    assert two.length == n
    assert two.visible() == list(range(n))


def test_equal_blocks_computed_at_the_same_time_become_one() -> None:
    requests = requests_of(16)
    one, two = requests.open(), requests.open()
    for token in range(6):
        assert step(one, token) == step(two, token)
    assert requests.stats()["referenced_blocks"] == 3
    assert requests.stats()["shared_blocks"] == 1
    assert run(two, [*range(6), 40]) == alone([*range(6), 40], requests)[6:]


def test_ids_left_out_end_what_can_be_found() -> None:
    requests = requests_of(16)
    one = requests.open()
    run(one, [1, 2, 3, 4])
    step(one, 5, ids=False)
    run(one, [0, 0, 0, 0, 0, 6, 7, 8, 9])
    one.close()
    assert requests.lookup([1, 2, 3, 4, 5, 6, 7, 8, 9]) == 4


def test_a_rollback_into_a_found_block_leaves_it_as_it_is() -> None:
    requests = requests_of(16)
    one = requests.open()
    run(one, list(range(8)))
    one.rollback(2)
    assert step(one, 50) == alone([*range(6), 50], requests)[-1]
    assert requests.lookup([*range(8), 0]) == 8
    step(one, 51)
    assert requests.lookup([*range(6), 50, 51, 0]) == 8
    assert requests.check() == 0


@pytest.mark.parametrize("tokens", [3, 4, 6])
def test_after_a_rollback_beyond_its_window_a_request_adds_to_no_chain(tokens: int) -> None:
    """The block of the token before is another's: what is stored then is not what follows the old chain."""
    requests = requests_of(12, None, 1, window=1, sinks=0)
    one = requests.open()
    run(one, list(range(tokens)))
    one.rollback(tokens - 1)
    assert (one.length, one.visible()) == (1, [])
    step(one, 77)
    assert requests.lookup([*range(tokens), 77, 0]) == tokens
    assert requests.lookup([0, 77, 0]) == 1
    assert requests.check() == one.check() == 0


BACK = [[40], [20, 20], [1] * 40, [39, 1], [31, 1, 8], [3] * 13 + [1]]


@pytest.mark.parametrize("ids", [False, True], ids=["no ids", "ids"])
@pytest.mark.parametrize("back", BACK, ids=lambda back: "-".join(map(str, back[:3])))
def test_a_rollback_to_the_start_gives_back_all_blocks(back: list[int], ids: bool) -> None:
    """Sinks and window, in one step or in many; what has ids may be found until another needs the room."""
    g = PagedGeometry(**SHAPE, window=4, sinks=8, block_tokens=4)
    requests = Requests(g, 4, kernels=kernels.get("plain"))
    one = requests.open()
    run(one, list(range(40)), ids)
    assert requests.header(one)["references"] == 4
    for n in back:
        one.rollback(n)
    assert (one.length, requests.header(one)["references"]) == (0, 0)
    stats = requests.stats()
    assert (stats["free_blocks"], stats["evictable_blocks"]) == ((0, 4) if ids else (4, 0))
    assert requests.available_blocks() == 4
    other = requests.open(reserve_tokens=40)
    assert run(other, list(range(50, 70))) == alone(list(range(50, 70)), requests)
    other.close()
    assert run(one, list(range(30))) == alone(list(range(30)), requests)
    assert requests.lookup([*range(12), 0]) == 8, "its sinks can be found again"
    assert requests.check() == one.check() == 0


@pytest.mark.parametrize("left", [0, 1, 4, 6, 8, 9, 12])
@pytest.mark.parametrize("between", [12, 13, 22])
def test_a_rollback_in_two_steps_finds_what_one_finds(between: int, left: int) -> None:
    """The chain is lost behind the window in the first step; in the sinks it is there."""
    found = []
    for back in ([24 - left], [24 - between, between - left]):
        requests = requests_of(40, None, window=4, sinks=8)
        one = requests.open()
        run(one, list(range(24)))
        for n in back:
            one.rollback(n)
        tokens = [*range(one.length), *range(60, 69)]
        run(one, tokens)
        found.append((requests.lookup(tokens), requests.lookup([*range(24), 0])))
        assert requests.check() == one.check() == 0
        assert run(requests.open(tokens=tokens), tokens) == alone(tokens, requests)[found[-1][0] :]
    assert found[0] == found[1]


# ISO-2, 5, 6, 7


def test_a_request_is_closed_once() -> None:
    """ISO-2."""
    requests = requests_of(4)
    one = requests.open()
    run(one, list(range(5)))
    one.close()
    before = requests.stats()
    for act in (one.close, one.abort, one.lock, one.fork, lambda: one.rollback(1), lambda: step(one, 1)):
        with pytest.raises(BadHandle, match="closed"):
            act()
    with pytest.raises(BadHandle, match="closed"):
        requests.pin(one)
    assert requests.stats() == before
    again = requests.open()  # the same row
    with pytest.raises(BadHandle):
        step(one, 1)
    assert again.length == 0
    assert requests.check() == 0


def test_every_method_of_a_closed_request_refuses() -> None:
    requests = requests_of(4)
    one = requests.open()
    run(one, list(range(5)))
    one.close()
    requests.open()  # the same row
    x, q = array("f", [1.0] * WIDTH), array("f", [1.0] * HEADS * HEAD_DIM)
    acts = {
        "append": lambda: one.append(0, x, x), "attend": lambda: one.attend(0, q, array("f", q)),
        "prefill": lambda: one.prefill(0, x, x, 1), "commit": lambda: one.commit(1), "abort": one.abort,
        "rollback": lambda: one.rollback(1), "place": lambda: one.place(0, "k", 0), "fork": one.fork,
        "reserve": lambda: one.reserve(4), "lock": one.lock, "unlock": one.unlock, "close": one.close,
        "visible": one.visible,
    }  # fmt: skip
    said = {}
    for name, act in acts.items():
        try:
            act()
        except BadHandle:
            continue
        except Exception as error:
            said[name] = repr(error)
        else:
            said[name] = "nothing"
    assert said == {}
    assert requests.check() == 0


def test_no_key_outlives_its_block() -> None:
    """ISO-5."""
    requests = requests_of(2)
    p, q = [1, 2, 3, 4], [11, 12, 13, 14, 15, 16, 17, 18]
    one = requests.open()
    run(one, p)
    kept = stored(one)
    one.close()
    assert requests.lookup([*p, 0]) == 4
    two = requests.open()
    run(two, q)
    assert requests.lookup([*p, 0]) == 0
    assert requests.lookup([*q, 0]) == 8
    assert requests.stats()["cached_blocks"] == 2
    two.close()
    three = requests.open()
    run(three, p)
    assert requests.lookup([*p, 0]) == 4
    assert stored(three) == kept
    assert requests.check() == 0


def test_a_half_filled_block_is_no_key() -> None:
    """ISO-5: two of four tokens are not found, nor do they return the block once it is full."""
    requests = requests_of(4)
    one = requests.open()
    run(one, [1, 2])
    assert requests.stats()["cached_blocks"] == 0
    run(one, [1, 2, 3, 4])
    assert requests.lookup([1, 2]) == requests.lookup([1, 2, 9, 9, 9]) == 0
    assert requests.lookup([1, 2, 3, 4, 9]) == 4


def test_a_chain_goes_from_its_tail() -> None:
    """ISO-6: chain 1 -> 2 -> 3 in a pool of 3."""
    for _ in range(20):
        requests = requests_of(3)
        tokens = list(range(12))
        one = requests.open(pin_tokens=12)
        run(one, tokens)
        requests._ledger.pin_blocks = 3
        pin = requests.pin(one)
        kept = bytes(requests.buffer)
        one.close()
        two = requests.open()
        with pytest.raises(NoRoom) as refused:
            step(two, 99)
        assert (refused.value.needed, refused.value.free, refused.value.pinned) == (1, 0, 3)
        assert bytes(requests.buffer) == kept
        requests.unpin(pin)
        step(two, 99)
        assert requests.lookup([*tokens, 0]) == 8
        run(two, [99, 98, 97, 96, 95])
        assert requests.lookup([*tokens, 0]) == 4
        assert requests.check() == 0


def test_what_cannot_be_found_again_goes_first() -> None:
    """ISO-6 c: a free block is taken before any the index finds."""
    requests = requests_of(3)
    one = requests.open()
    run(one, list(range(6)))  # a full block and a half-filled one
    one.close()
    two = requests.open()
    run(two, [50, 51, 52, 53, 54])
    assert requests.lookup([*range(4), 0]) == 4
    assert requests.stats()["evictable_blocks"] == 1


def test_the_counts_after_a_split() -> None:
    """ISO-7, in blocks of 4: a "node" is an entry of the index."""
    requests = requests_of(8)
    a, b = list(range(1, 9)), [1, 2, 3, 4, 9, 10, 11, 12]
    one = requests.open(pin_tokens=8)
    run(one, a)
    pin = requests.pin(one)
    one.close()
    two = requests.open(tokens=b)
    run(two, b)
    two.close()
    s = requests.stats()
    assert (s["cached_blocks"], s["protected_blocks"], s["evictable_blocks"]) == (3, 2, 1)
    requests.unpin(pin)
    s = requests.stats()
    assert (s["cached_blocks"], s["protected_blocks"], s["evictable_blocks"]) == (3, 0, 3)
    for _ in range(1000):
        one = requests.open(tokens=a)
        assert one.length == 4
        one.close()
    assert requests.stats()["cached_blocks"] == 3
    assert requests.lookup([1, 2, 3]) == 0
    assert requests.stats()["cached_blocks"] == 3
    big = requests.open()
    run(big, list(range(100, 132)))
    big.rollback(32)
    big.close()
    s = requests.stats()
    assert s["free_blocks"] + s["evictable_blocks"] == 8
    assert requests.check() == 0


# Isolation


def test_a_share_is_kept_whatever_others_do() -> None:
    requests = requests_of(8)
    kept = requests.open(reserve_tokens=16)
    greedy = requests.open()
    with pytest.raises(NoRoom, match="others hold or have reserved the rest"):
        run(greedy, list(range(40)))
    assert greedy.length == 16
    with pytest.raises(NoRoom, match="a share of 5 blocks"):
        requests.open(reserve_tokens=20)
    assert run(kept, list(range(50, 66))) == alone(list(range(50, 66)), requests)
    assert requests.check() == 0


def test_a_share_is_kept_when_others_share_the_blocks() -> None:
    """A fork that outlives its origin's blocks may not take what the origin has reserved."""
    requests = requests_of(6)
    kept = requests.open(reserve_tokens=16)
    run(kept, list(range(12)))
    with pytest.raises(NoRoom, match="no room for a fork"):
        kept.fork()
    roomy = requests_of(8)
    kept = roomy.open(reserve_tokens=16)
    run(kept, list(range(12)))
    child = kept.fork()
    kept.rollback(12)
    run(kept, list(range(60, 76)))
    assert stored(kept)
    assert run(child, [*range(12), 1]) == alone([*range(12), 1], roomy)[-1:]
    assert roomy.check() == 0


def test_a_limit_is_refused_before_anything_is_forgotten() -> None:
    requests = requests_of(8)
    cached = requests.open()
    run(cached, list(range(30, 46)))
    cached.close()
    one = requests.open(limit_tokens=8)
    run(one, list(range(8)))
    with pytest.raises(NoRoom, match="limit_tokens allows this request 2 blocks"):
        step(one, 1)
    assert one.length == 8
    assert requests.lookup([*range(30, 46), 0]) == 16
    assert requests.check() == 0


def test_pins_have_a_cap_of_their_own_and_one_of_all() -> None:
    requests = requests_of(8, pin_blocks=2, max_pins=4)
    one = requests.open(pin_tokens=12)
    run(one, list(range(12)))
    first = requests.pin(one, 4)
    with pytest.raises(NoRoom, match="pin_blocks allows 2 in all"):
        requests.pin(one, 8)
    requests.pin(one, 4)
    with pytest.raises(NoRoom, match="pin_blocks"):
        requests.pin(one, 4)
    none = requests.open()
    run(none, list(range(12)))
    with pytest.raises(NoRoom, match="pin_tokens allows 0 blocks"):
        requests.pin(none, 4)
    requests.unpin(first)
    for gone in (first, -1, 0, 1 << 29, True, None, "1", 3.0):
        with pytest.raises(BadHandle):
            requests.unpin(gone)
    assert requests.stats()["pinned_blocks"] == 1
    assert requests.header(one)["pinned"] == 1
    assert requests.check() == 0


def test_the_header_of_a_region() -> None:
    requests = requests_of(8)
    one = requests.open(task=7, reserve_tokens=8, limit_tokens=20, priority=3)
    run(one, list(range(5)))
    one.lock()
    assert requests.header(one) == {
        "size": 5,
        "references": 2,
        "locked": True,
        "length": 5,
        "valid": True,
        "owner": 7,
        "share": 2,
        "priority": 3,
        "pinned": 0,
    }
    with pytest.raises(Locked):
        one.close()
    one.unlock()
    one.close()
    assert requests.header(one)["valid"] is False
    assert requests.header(one)["owner"] is None


def test_no_byte_of_a_request_changes_through_another() -> None:
    draw = random.Random(4)
    requests = requests_of(24, max_requests=6)
    open_ones: list = []
    for turn in range(150):
        act = draw.random()
        if (act < 0.2 and len(open_ones) < 6) or not open_ones:
            tokens = [draw.randrange(2) for _ in range(draw.randrange(1, 10))]
            one = requests.open(tokens=tokens, task=turn)
            open_ones.append([one, tokens[: one.length]])
        one = draw.choice(open_ones)
        others = [(o[0], stored(o[0])) for o in open_ones if o is not one][:2]
        try:
            if act < 0.7:
                for _ in range(draw.randrange(1, 6)):
                    token = draw.randrange(2)
                    assert step(one[0], token) == alone([*one[1], token], requests)[-1]
                    one[1].append(token)
            elif act < 0.8 and len(open_ones) < 6:
                open_ones.append([one[0].fork(), list(one[1])])
            elif act < 0.9:
                back = draw.randrange(len(one[1]) + 1)
                one[0].rollback(back)
                one[1] = one[1][: len(one[1]) - back]
            else:
                one[0].close()
                open_ones.remove(one)
        except (NoRoom, CacheFull):
            one[0].abort()
            one[0].close()
            open_ones.remove(one)
        assert all(stored(other) == before for other, before in others)
        assert requests.check() == 0


# Other pools, bad input


POOLS = {
    "fixed": lambda arena, size: FixedPool(arena, 8, size),
    "slab": lambda arena, size: SlabPool(arena, 2 * size, 4, (32, size)),
    "buddy": lambda arena, size: BuddyPool(arena, 8 * 256),
    "region": lambda arena, size: RegionPool(arena, 8 * size, 16),
    "slab+region": lambda arena, size: SlabRegionPool(arena, 2 * size, 4, (32, size)),
}


@pytest.mark.parametrize("name", POOLS)
def test_blocks_from_a_pool_that_others_use(name: str) -> None:
    """A block is taken when it is needed and given back when it is free; what the pool lacks is refused."""
    g = PagedGeometry(**SHAPE, capacity=64, block_tokens=4)
    arena = Arena(g.scratch_bytes + 16 * g.block_bytes)
    pool = POOLS[name](arena, g.block_bytes)
    requests = Requests(g, 12, arena=arena, pool=pool, kernels=kernels.get("plain"))
    theirs = pool.alloc(32)
    one = requests.open()
    tokens = list(range(64))
    with pytest.raises(NoRoom, match="the pool has no room for blocks"):
        run(one, tokens, ids=False)
    held = one.length
    assert held >= 4
    assert requests.check() == pool.check() == 0
    assert pool.stats()["used_blocks"] == 1 + held // 4
    pool.free(theirs)
    if hasattr(pool, "compact"):
        pool.compact()
        requests.moved()
    assert step(one, tokens[held]) == alone(tokens[: held + 1], requests)[-1]
    one.close()
    assert pool.stats()["used_blocks"] == 0
    two = requests.open()
    run(two, tokens[:20])
    two.close()
    assert pool.stats()["used_blocks"] == 5  # the index finds them
    assert requests.open(tokens=tokens).length == 20
    assert requests.check() == pool.check() == 0


def test_a_step_goes_on_after_a_refusal() -> None:
    requests = requests_of(2)
    one, two = requests.open(), requests.open()
    run(one, list(range(4)))
    run(two, list(range(10, 14)))
    with pytest.raises(NoRoom):
        step(one, 9)
    two.close()
    assert step(one, 9) == alone([*range(4), 9], requests)[-1]
    assert requests.check() == 0


@pytest.mark.parametrize("shape", [{}, {"capacity": None, "window": 8}], ids=["capacity", "window"])
def test_place_refuses_what_no_block_is_there_for(shape: dict) -> None:
    one = requests_of(16, **shape).open()
    run(one, list(range(5)))
    one.place(0, "k", 7)
    for position in (8, 64, 1000) if not shape else (8, 11):
        with pytest.raises(BadArgument, match=f"^position {position} is in no block of the request$"):
            one.place(0, "k", position)


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"task": -1}, "task"), ({"task": 1.5}, "task"), ({"reserve_tokens": -1}, "reserve_tokens"),
        ({"reserve_tokens": 65}, "reserve_tokens"), ({"tokens": 5}, "tokens"), ({"tokens": [1, -2]}, "ids"),
        ({"tokens": [1, 65536]}, "wide_ids"), ({"tokens": [1.0]}, "ids"), ({"tokens": "ab"}, "ids"),
        ({"limit_tokens": 0}, "limit_tokens"), ({"reserve_tokens": 9, "limit_tokens": 8}, "reserve_tokens"),
        ({"priority": 256}, "priority"), ({"priority": True}, "priority"), ({"salt": "x"}, "salt"),
        ({"pin_tokens": -1}, "pin_tokens"),
    ],
)  # fmt: skip
def test_open_refuses(options: dict, named: str) -> None:
    requests = requests_of(8)
    before = requests.stats()
    with pytest.raises(BadArgument, match=named):
        requests.open(**options)
    assert requests.stats() == before
    assert requests.check() == 0


@pytest.mark.parametrize("ids", [-1, 65536, 1.0, "a", [1, 2], [], [1.5]])
def test_commit_refuses_ids(ids: object) -> None:
    requests = requests_of(8)
    one = requests.open()
    x, q = array("f", [1.0] * WIDTH), array("f", [1.0] * HEADS * HEAD_DIM)
    for layer in range(LAYERS):
        one.append(layer, x, x)
        one.attend(layer, q, array("f", q))
    with pytest.raises(BadArgument, match="ids"):
        one.commit(ids)
    one.commit(3)
    assert one.length == 1


@pytest.mark.parametrize(
    ("about", "named"),
    [((0, "k", "0"), "position"), ((0, "k", -1), "position"), ((0, "q", 0), "which"), ((9, "k", 0), "layer")],
)
def test_place_refuses(about: tuple, named: str) -> None:
    with pytest.raises(BadArgument, match=named):
        requests_of(8).open().place(*about)


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"blocks": 0}, "blocks"), ({"blocks": True}, "blocks"), ({"max_requests": 0}, "max_requests"),
        ({"max_pins": -1}, "max_pins"), ({"pin_blocks": 9}, "pin_blocks"), ({"identity": "x"}, "identity"),
        ({"arena": 1}, "arena and pool"), ({"buffer": bytearray(8)}, "buffer"), ({"geometry": 3}, "geometry"),
        ({"kernels": 3}, "kernels"), ({"kv_shift": 40}, "kv_shift"),
    ],
)  # fmt: skip
def test_requests_refuse(options: dict, named: str) -> None:
    arguments = {"geometry": PagedGeometry(**SHAPE, capacity=16), "blocks": 8} | options
    with pytest.raises(BadArgument, match=named):
        Requests(**arguments)


def test_all_rows_taken() -> None:
    requests = requests_of(8, max_requests=2)
    one = requests.open()
    requests.open()
    with pytest.raises(NoRoom, match="all 2 of max_requests are taken"):
        requests.open()
    step(one, 1)
    with pytest.raises(NoRoom, match="all 2 of max_requests are taken"):
        one.fork()
    x = array("f", [1.0] * WIDTH)
    one.append(0, x, x)
    with pytest.raises(StepError, match="within a step"):
        one.fork()


def test_what_follows_a_block_that_is_written_to_is_freed() -> None:
    """With all else reserved a block is written in place: what came after it is found no more, and free when
    the next request opens."""
    requests = requests_of(3)
    one, other = requests.open(reserve_tokens=8), requests.open(reserve_tokens=4)
    run(one, list(range(8)))
    one.rollback(5)
    assert requests.stats()["evictable_blocks"] == 1
    prefill(one, [50, 51])
    assert requests.check() == 0
    assert requests.lookup([*range(8), 0]) == 0
    other.close()
    requests.open()
    assert requests.stats()["free_blocks"] == 1
    assert requests.stats()["evictable_blocks"] == 0
    assert requests.check() == 0


def test_a_window_longer_than_the_memory_leaves_nothing_dead() -> None:
    """Its chain loses its head first, as the tail is held: the rest is free when the next request opens."""
    requests = requests_of(12, None, window=8, sinks=0)
    one = requests.open()
    for token in range(120):
        step(one, token % 50)
    one.close()
    assert requests.stats()["evictable_blocks"] > 6
    requests.open()
    assert requests.stats()["free_blocks"] == 12
    assert requests.check() == 0


# What goes first, and the counts


def families(requests: Requests, *chains: list[int]) -> None:
    """Chains whose blocks all stay reusable, in the order of these."""
    opened = []
    for tokens in chains:
        one = requests.open(tokens=tokens)
        run(one, tokens)
        opened.append(one)
    for one in opened:
        one.close()


HEAD, LEFT, RIGHT = [1, 2, 3, 4], [5, 6, 7, 8], [9, 10, 11, 12]


def test_the_head_of_two_chains_outlives_both_tails() -> None:
    """Its first tail gone, the head is no tail yet."""
    requests = requests_of(4)
    families(requests, HEAD + LEFT, HEAD + RIGHT)
    other = requests.open()
    run(other, [50, 51, 52, 53, 54])  # the free block, then a tail
    assert requests.check() == 0
    assert [requests.lookup([*HEAD, *tail, 0]) for tail in (LEFT, RIGHT)] == [4, 8]
    run(other, [50, 51, 52, 53, 54, 55, 56, 57, 58])
    assert [requests.lookup([*HEAD, *tail, 0]) for tail in (LEFT, RIGHT)] == [4, 4]
    assert requests.check() == 0


def test_the_high_water_mark_of_blocks() -> None:
    """Of free ones, of ones found again, of ones that were forgotten for it."""
    requests = requests_of(4)
    one = requests.open()
    run(one, list(range(12)))
    assert requests.stats()["peak_blocks"] == 3
    one.close()
    assert requests.stats()["peak_blocks"] == 3
    two = requests.open(tokens=[*range(12), 0])
    assert requests.stats()["peak_blocks"] == 3
    run(two, list(range(13)))
    assert requests.stats()["peak_blocks"] == 4
    found = requests_of(3)
    one, two = found.open(), found.open()
    run(one, HEAD)
    one.close()
    run(two, [50])
    assert found.stats()["peak_blocks"] == 1
    found.open(tokens=[*HEAD, 0])
    assert found.stats()["peak_blocks"] == 2
    forgotten = requests_of(2)
    families(forgotten, HEAD, LEFT)
    assert forgotten.stats()["peak_blocks"] == 2
    fewer = requests_of(2)
    for tokens in (HEAD, LEFT):  # one at a time
        families(fewer, tokens)
    assert fewer.stats()["peak_blocks"] == 1
    run(fewer.open(), list(range(30, 38)))
    assert fewer.stats()["peak_blocks"] == 2


def test_a_window_finds_a_prefix_longer_than_itself() -> None:
    requests = requests_of(12, None, window=8, sinks=0)  # 3 pages at a time
    tokens = list(range(24))
    families(requests, tokens)
    one = requests.open(tokens=[*tokens, 0])
    assert one.length == 24
    assert requests.header(one)["references"] == 2
    one.close()
    assert requests.open(tokens=[*tokens, 0], limit_tokens=12).length == 24
    assert requests.open(tokens=[*tokens, 0], limit_tokens=8).length == 8
    assert requests.check() == 0


@pytest.mark.parametrize(("before", "after"), [(0, 8), (8, 0)])
def test_a_share_changed_within_a_step_that_begins_a_page(before: int, after: int) -> None:
    requests = requests_of(4)
    one = requests.open(reserve_tokens=before)
    run(one, HEAD)
    x = array("f", [1.0] * WIDTH)
    one.append(0, x, x)
    assert requests.header(one)["references"] == 2
    one.reserve(after)
    assert requests.check() == 0
    assert requests.header(one)["share"] == after // 4
    assert requests.available_blocks() == 2
    one.abort()
    assert requests.check() == 0
    assert requests.available_blocks() == (2 if after else 3)


def test_what_is_mended_counts_no_pin_of_a_closed_request_for_the_next_in_its_row() -> None:
    requests = requests_of(6)
    one = requests.open(pin_tokens=8)
    run(one, list(range(9)))
    pin = requests.pin(one)
    one.close()
    two = requests.open(pin_tokens=8)
    assert two.row == one.row
    requests._ledger.state[0] = 1  # as a call cut short leaves it
    assert requests.check() == 0
    assert requests.header(two)["pinned"] == 0
    assert requests.stats()["pinned_blocks"] == 2
    requests.unpin(pin)
    assert requests.check() == 0


def test_mending_leaves_the_index_as_it_was() -> None:
    """Every entry is found, each in its bucket, and what goes first is the same."""
    requests = requests_of(7, block_tokens=2)
    families(requests, [*HEAD, *LEFT], [*HEAD, *RIGHT[:2]], RIGHT[:2])
    before = requests.stats()
    goes = [requests._ledger.blocks.nxt[7], requests._ledger.blocks.nxt[8]]
    requests._ledger.state[0] = 1
    assert [requests.lookup([*t, 0]) for t in ([*HEAD, *LEFT], [*HEAD, *RIGHT], RIGHT)] == [8, 6, 2]
    assert requests.stats() == before
    assert [requests._ledger.blocks.nxt[7], requests._ledger.blocks.nxt[8]] == goes
    assert requests.check() == 0


def test_only_the_first_child_moves_its_parent() -> None:
    """A reusable block waits behind all that have no children from the first of them on; the next ones leave
    its turn as it is."""
    requests = requests_of(6)
    families(requests, HEAD, LEFT)
    blocks, n = requests._ledger.blocks, requests._ledger.n
    head, left = blocks.nxt[n], blocks.prv[n]
    assert (blocks.ref[head], blocks.ref[left]) == (0, 0)

    def enter(under: int, tokens: list[int]) -> None:
        i = blocks.take()
        for k, token in enumerate(tokens):
            blocks.ids[4 * i + k] = token
        h = blocks.hash_of(blocks.hash[under], blocks.ids, 4 * i)
        blocks.enter(under, blocks.serial[under], h, i)

    enter(head, RIGHT)
    assert [blocks.nxt[n], blocks.nxt[n + 1]] == [left, head]
    enter(left, RIGHT)
    assert [blocks.nxt[n], blocks.nxt[n + 1], blocks.prv[n + 1]] == [n, head, left]
    enter(head, [50, 51, 52, 53])
    assert [blocks.nxt[n + 1], blocks.prv[n + 1]] == [head, left]


def lived() -> Requests:
    """Blocks of every kind: shared, of a share, pinned, reusable with and without children, free."""
    requests = requests_of(12, max_requests=3, max_pins=1)
    families(requests, HEAD + LEFT, HEAD + RIGHT)
    one = requests.open(reserve_tokens=16, pin_tokens=8)
    run(one, list(range(20, 29)))
    requests.pin(one, 8)
    two = one.fork()
    step(two, 50)
    step(two, 51)
    families(requests, [90, 91])
    assert requests.check() == 0
    return requests


def test_a_request_has_room_for_the_runs_of_its_pages_and_two_more() -> None:
    """One where the sinks end within a page, one where a window begins within one."""
    requests = requests_of(4)
    assert len(requests._ledger.attention.a) == params.RUN + 4 * (requests.geometry.pages + 2)


def test_counts_of_a_life() -> None:
    """Of 12 blocks 4 are the share's, 3 the fork's and the pin's; a head and its two tails can be found."""
    requests = lived()
    stats = requests.stats()
    assert stats["available_blocks"] == requests.available_blocks() == 12 - 4 - 3
    assert (stats["free_blocks"], stats["referenced_blocks"], stats["evictable_blocks"]) == (5, 4, 3)
    assert (stats["shared_blocks"], stats["pinned_blocks"], stats["cached_blocks"]) == (2, 2, 5)
    assert (stats["protected_blocks"], stats["private_blocks"]) == (2, 2)
    assert (stats["requests"], stats["pins"], stats["opened"]) == (2, 1, 5)
    assert (stats["reused_tokens"], stats["block_tokens"], stats["total_blocks"]) == (4, 4, 12)


def arrays_of(requests: Requests) -> dict[str, list[int]]:
    """All state that is kept in arrays."""
    found = {}
    for one in (requests._ledger, requests._ledger.blocks):
        for name, value in vars(one).items():
            if isinstance(value, (array, bytearray)):
                found[name] = list(value)
    return found


DERIVED = ("ref", "chain", "bucket", "children", "common", "held", "pinned")


def test_all_that_is_derived_is_made_anew() -> None:
    """References, counts, buckets, children: whatever they were before, mending makes the same of them. What
    has been mended is left as it is; of lists that cannot be read the order alone is lost."""
    requests = lived()
    blocks, counts = requests._ledger.blocks, requests.stats()
    mend(requests._ledger)
    sound = arrays_of(requests)
    assert requests.stats() == counts
    for damaged in (0, 1, requests._ledger.n - 1):
        for name in DERIVED:
            values = getattr(requests._ledger if hasattr(requests._ledger, name) else blocks, name)
            for i in range(len(values)):
                if name != "chain" or blocks.serial[i]:  # of others nobody reads it
                    values[i] = damaged
        for at in (META.FREE, META.REUSABLE, META.USED, META.ENTRIES, META.SERIAL, META.ORPHANS):
            blocks.meta[at] = damaged if at != META.SERIAL else 0
        for at in (STATE.BOUND, STATE.COMMON, STATE.PINNED):
            requests._ledger.state[at] = damaged
        mend(requests._ledger)
        assert arrays_of(requests) == sound
    for anchor in (blocks.n, blocks.n + 1):
        blocks.nxt[anchor] = blocks.prv[anchor] = anchor
    mend(requests._ledger)
    assert requests.check() == 0
    assert requests.stats() == counts
    assert [requests.lookup([*HEAD, *tail, 0]) for tail in (LEFT, RIGHT)] == [8, 8]


def test_orphans_are_looked_for_until_there_are_none() -> None:
    """A block that no chain leads to any more, but a request holds, is let go of when the request does."""
    requests = requests_of(8)
    families(requests, HEAD)
    one = requests.open()
    run(one, [*HEAD, *LEFT, 7])
    blocks = requests._ledger.blocks
    prune(requests._ledger)
    assert (blocks.meta[META.ORPHANS], blocks.meta[META.ENTRIES]) == (0, 2)
    blocks.pserial[next(i for i in range(8) if blocks.serial[i] and blocks.parent[i] < 0)] += 1
    prune(requests._ledger)
    assert (blocks.meta[META.ORPHANS], blocks.meta[META.ENTRIES]) == (1, 2)
    one.close()
    prune(requests._ledger)
    assert (blocks.meta[META.ORPHANS], blocks.meta[META.ENTRIES], blocks.meta[META.FREE]) == (0, 0, 8)
    assert requests.check() == 0


@pytest.mark.parametrize(("back", "seen"), [(3, [0, 1, *range(22, 27)]), (12, [0, 1])], ids=["3", "12"])
def test_a_fork_has_lost_what_its_origin_has(back: int, seen: list[int]) -> None:
    """What a rollback left of a window that has moved on: the same tokens seen, the same number evicted."""
    requests = requests_of(20, None, window=8, sinks=2)
    one = requests.open()
    run(one, list(range(30)))
    one.rollback(back)
    assert (one.visible(), one.evicted_tokens) == (seen, 20)
    two = one.fork()
    assert (two.visible(), two.evicted_tokens) == (one.visible(), one.evicted_tokens)
    for token in range(12):
        assert step(two, token) == step(one, token)
        assert (two.visible(), two.evicted_tokens) == (one.visible(), one.evicted_tokens)
    assert requests.check() == one.check() == two.check() == 0


def test_check_sees_damage() -> None:
    """Every word that decides who holds what: changed by one, up or down, it is seen."""
    requests = lived()
    blocks, rows = requests._ledger.blocks, range(requests._ledger.rows)
    used = [row for row in rows if requests._ledger.open_rows[row]]
    entries = [i for i in range(requests._ledger.n) if blocks.serial[i]]
    listed = [i for i in range(requests._ledger.n) if not blocks.ref[i]]
    places = {
        "ref": (blocks.ref, range(requests._ledger.n)),
        "common": (requests._ledger.common, range(requests._ledger.n)),
        "held": (requests._ledger.held, rows),
        "share": (requests._ledger.share, rows),
        "pinned": (requests._ledger.pinned, [row for row in used if row < requests.max_requests]),
        "open_rows": (requests._ledger.open_rows, used),
        "nxt": (blocks.nxt, listed),
        "prv": (blocks.prv, [i for i in listed if blocks.serial[i]]),
        "chain": (blocks.chain, entries),
        "bucket": (blocks.bucket, range(len(blocks.bucket))),
        "hash": (blocks.hash, entries),
        "children": (blocks.children, entries),
        "meta": (blocks.meta, [META.TOP, META.FREE, META.REUSABLE, META.USED, META.ENTRIES]),
        "state": (requests._ledger.state, [STATE.BOUND, STATE.COMMON, STATE.PINNED]),
    }
    unseen = []
    for name, (words, at) in places.items():
        for i in at:
            old = words[i]
            for new in (old + 1, old - 1):
                if new < 0:
                    continue
                words[i] = 0 if name == "open_rows" else new
                try:
                    if requests.check() == 0:
                        unseen.append((name, i, old, new))
                except IndexError:
                    pass
                words[i] = old
    assert unseen == []
    assert requests.check() == 0


def test_check_sees_an_entry_that_cannot_be_found() -> None:
    """Its parent was entered anew, and nobody knows."""
    requests = lived()
    blocks = requests._ledger.blocks
    child = next(i for i in range(requests._ledger.n) if blocks.serial[i] and blocks.parent[i] >= 0)
    blocks.pserial[child] += 100
    blocks.children[blocks.parent[child]] -= 1
    found = requests.check()
    assert found > 0
    blocks.meta[META.ORPHANS] = 1
    assert requests.check() == found - 1


def test_check_sees_a_closed_row_that_holds() -> None:
    requests = requests_of(4)
    one = requests.open()
    run(one, HEAD)
    row = one.row
    requests._ledger.open_rows[row] = 0
    assert requests.check() >= 2
    requests = requests_of(4)
    one = requests.open(limit_tokens=8)
    run(one, HEAD + LEFT)
    requests._ledger.limit[one.row] = 1
    assert requests.check() == 1
