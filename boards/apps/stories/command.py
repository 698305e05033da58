"""The command line of the program. Transient (mpy_kv/transient.py): read once, and most boards have none."""

from mpy_kv.errors import BadArgument

from .errors import ImageError

USAGE = """\
usage: stories [options]
  --model IMAGE      board image (kvlab convert makes one) [default: the board's own]
  --prompt TEXT      how the story starts; --prompt=TEXT does too
  --requests N       so many stories at once, from one arena; seed, seed + 1, ...; --prompt once or for each
  --shared-prefix TEXT   how all of them start, before --prompt: computed and kept once
  --block-tokens N   tokens of a block of the arena (16)
  --tokens N         tokens to tell (200); goes on past the context for ever
  --window N         recent tokens kept (up to 256)      --sinks N  first tokens kept (4)
  --temperature X    0.8; 0 is greedy                    --top-p X  0.9
  --seed N           1                                   --greedy   always the likeliest token
  --stop             end with the first story instead of starting another
  --group N          values of the cache that share a scale (32)
  --codec NAME       what the cache stores: int8, int8-int4 (keys int8, values int4), int4, sparse, float16,
                     float32 (plain kernels, which allocate) [default: what the image names, or int8]
  --policy NAME      which tokens stay: window (the newest), or by the attention they get lru-attention,
                     lru-peak, window-lru, lfu, lfu-decay, heavy-hitters; all of mpy_kv/eviction/tokens
  --budget N         tokens that --policy keeps, sinks included (what --window would be)
  --compress X       with --policy: what part of the prompt stays once it is read, such as 0.5
  --kernels NAME     thumb, viper or plain (the fastest that works)
  --check            run the kernels' self-check, though it passed at an earlier start
  --verdicts FILE    where that is remembered [default: kernels.checked on a board]
  --row-buffer-bytes N   read at a time where flash is not memory-mapped (4096)
  --stream BYTES     of RAM, such as 16384, through which a Pico streams the weights while it computes (0)
  --freq HZ          clock of the core, no faster than its maker certifies; an RP2040's voltage is set first
  --lock             hold the heap lock while telling
  --json FILE        write the figures there
  --save FILE        write the story there when its tokens are told, to go on with later
  --resume FILE      go on with it: the same text as if told at once; what the cache is, the file says
  --log FOLDER       where it has the files of `kvlab deploy --kv-flash`: a flash log, from which a story that
                     was cut off goes on
  --dump IDS OUT     no story: read int32 token ids, write the logits of each position (see files.py)
"""

_NUMBERS = ("tokens", "window", "sinks", "group", "seed", "row_buffer_bytes", "requests", "block_tokens")
_NUMBERS += ("budget", "freq", "stream")
_FLAGS = ("greedy", "stop", "lock", "check")
_TEXTS = ("model", "prompt", "temperature", "top_p", "codec", "kernels", "json", "shared_prefix")
_TEXTS += ("policy", "compress", "verdicts", "save", "resume", "log")
_OF_REQUESTS = ("block_tokens", "shared_prefix")
_OF_ONE = ("policy", "budget", "compress", "save", "resume", "log")


def parse(argv):
    """Options of a command line as keyword arguments of main(), None where it asks for help.

    `--name value` or `--name=value`; the word after an option that takes one is its value, whatever it
    begins with. Of several --prompt the list is handed on. BadArgument names what is wrong.
    """
    options = {}
    prompts = []
    i = 0
    while i < len(argv):
        word, equals, value = argv[i].partition("=")
        if argv[i] in ("--help", "-h"):
            return None
        name = word[2:].replace("-", "_") if word.startswith("--") else None
        if name not in _FLAGS + _NUMBERS + _TEXTS + ("dump",):
            raise BadArgument("unknown option %s; stories --help lists all" % word)
        count = 0 if name in _FLAGS else 2 if name == "dump" else 1
        values = [value] if equals else []
        i += 1
        while len(values) < count and i < len(argv):
            values.append(argv[i])
            i += 1
        if len(values) != count:
            raise BadArgument("%s needs %d values" % (word, count))
        if count == 0:
            options[name] = True
        elif name in _NUMBERS:
            try:
                options[name] = int(values[0])
            except ValueError:
                raise BadArgument("%s needs a whole number, got %r" % (word, values[0]))
        else:
            options[name] = values[0] if count == 1 else tuple(values)
            if name == "prompt":
                prompts.append(values[0])
    if len(prompts) > 1:
        options["prompt"] = prompts
    if "requests" not in options:
        for name in _OF_REQUESTS:
            if name in options:
                raise BadArgument("--%s needs --requests" % name.replace("_", "-"))
        if len(prompts) > 1:
            raise BadArgument("--prompt given %d times needs --requests" % len(prompts))
    else:
        for name in _OF_ONE:
            if name in options:
                raise BadArgument("--%s is for one story: leave it or --requests out" % name)
    return options


def as_typed(error):
    """What an error says, the option it is about named as on a command line."""
    text = str(error)
    if isinstance(error, ImageError):
        return "--model: " + text
    name = text.split(" ", 1)[0]
    if name in _NUMBERS + _TEXTS:
        text = "--" + name.replace("_", "-") + text[len(name) :]
    for name in ("window", "sinks"):  # what Geometry and make_cache tell to change
        text = text.replace("lower " + name, "lower --" + name)
    return text
