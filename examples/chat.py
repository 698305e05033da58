"""A chat of several turns on the cache that is kept: each turn runs its own words and nothing anew.

    kvlab deploy --board rp2040 --mpy      then paste this, or mpremote run examples/chat.py
    kvlab emulate examples/chat.py --board rp2040 --compiled --flash boards/models/stories.mkvm@0

The model knows stories and nothing else: it takes up what it is told. After the text it prints, for each
turn, the words' tokens and how many there are in all.
"""

import sys

from stories.sampler import Sampler
from stories.telling import Teller, open_model, stdout

from mpy_kv.transient import unload_all

TURNS = ("Once upon a time there was a small dragon.", "Then a girl came.", "The dragon was happy because")
ANSWER = 24  # tokens

llama = open_model(sys.argv[1] if len(sys.argv) > 1 else None)  # None: the board's own
teller = Teller(llama, Sampler(llama, "0"), stdout())  # temperature 0
seen = []
for turn, words in enumerate(TURNS):
    ids = teller.tokenizer.encode(words, bos=turn == 0)
    unload_all()  # what encodes is needed again at the next turn
    teller.feed(ids)
    teller.tell(ANSWER)
    print()
    seen.append((len(ids), llama.cache.length))

for turn, (ran, length) in enumerate(seen):
    print("turn %d: %d tokens and %d of the answer, %d in all" % (turn + 1, ran, ANSWER, length))
