"""What is in the tables of tables.py: numbers of 16 bits, little-endian, in base 64.

Transient (mpy_kv/transient.py), as a module keeps its constants as long as it is there. Made by
tools/kernel_tables.py, which defines them.
"""

# values: python tools/kernel_tables.py --write
SINE = (
    b"AADJAJIBWwIkA+0DtgR/BUgGEQfZB6IIawkzCvsKxAuMDFQNHA7kDqsPcxA6EQESyBKPE1UUHBXiFagWbhczGPkYvhmDGkcb"
    b"DBzQHJMdVx4aH90fnyBiISQi5SKnI2ckKCXoJagmaCcnKOUopCliKh8r3CuZLFUtES7MLocvQjD8MLUxbjInM98zlzRONQQ2"
    b"ujZwNyU42TiNOUA68zqlO1c8CD24PWg+Fz/GP3RAIUHOQXpCJkPRQ3tEJEXNRXVGHUfER2pID0m0SVhK+0qeS0BM4UyBTSFO"
    b"wE5eT/tPmFA0Uc9RaVIDU5tTM1TKVGBV9lWKVh5XsVdDWNRYZFn0WYJaEFudWylctFw+XchdUF7XXl5f5F9oYOxgb2HxYXJi"
    b"8mJxY+9jbGTpZGRl3mVXZtBmR2e9ZzJop2gaaYxp/Wluat1qS2u4ayRsj2z5bGJtym0xbpdu+25fb8JvI3CDcONwQXGecfpx"
    b"VXKvcghzX3O2cwt0YHSzdAV1VnWmdfR1QnaOdtl2I3dsd7R3+3dAeIV4yHgKeUp5innJeQZ6Qnp9erd673one117knvGe/l7"
    b"KnxafIl8t3zkfA99On1jfYp9sX3Wfft9Hn4/fmB+f36dfrp+1n7wfgp/In84f05/Yn91f4d/mH+nf7V/wn/Of9l/4n/qf/F/"
    b"9n/6f/5//38AgACA"
)
SIGMOID = (
    b"AEAAQv9D/EX1R+tJ3EvITa1PilFgUyxV71aoWFda+1uTXSBfoWAWYn9j22QrZm9npmjSafFqBWwNbQlu+27ib75wkHFYchZz"
    b"zHN4dBt1t3VKdtZ2W3fYd094wHgqeY957nlIep167Xo5e4B7xHsDfD98eHytfOB8D308fWZ9jX2zfdZ9930WfjN+T35pfoF+"
    b"mH6ufsJ+1X7nfvh+CH8XfyV/Mn8+f0p/VX9ff2l/cn97f4N/in+Rf5h/nn+kf6p/r3+0f7h/vX/Bf8V/yH/Mf89/0n/Vf9d/"
    b"2n/cf95/4H/if+R/5n/nf+l/6n/rf+1/7n/vf/B/8X/yf/N/9H/0f/V/9n/2f/d/93/4f/h/+X/5f/p/+n/6f/t/+3/7f/x/"
    b"/H/8f/x//X/9f/1//X/9f/5//n/+f/5//n/+f/5//n//f/9//3//f/9//3//f/9//3//f/9//3//f/9//3//f/9//38AgACA"
    b"AIAAgACAAIAAgACAAIAAgACAAIAAgACAAIAAgACAAIAAgACAAIAAgACAAIAAgACAAIAAgACAAIAAgACAAIAAgACAAIAAgACA"
    b"AIAAgACAAIAAgACAAIAAgACAAIAAgACAAIAAgACAAIAAgACAAIAAgACAAIAAgACAAIAAgACAAIAAgACAAIAAgACAAIAAgACA"
    b"AIAAgACAAIAAgACA"
)
EXP2 = (
    b"AICffkJ96HuTekF58neodmB1HXTdcqBxZnAwb/5tz2yia3pqVGkyaBJn9mXdZMdjtGKjYZZgjF+EXoBdflx/W4JaiVmSWJ5X"
    b"rFa9VdFU51P/UhtSOFFYUHtPn07HTfBMHExKS3pKrUniSBlIUkeNRstFCkVMRJBD1UIdQmdBskAAQABA"
)
# end of values
