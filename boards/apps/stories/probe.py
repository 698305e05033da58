"""Where an emulator is told how full the heap is; on a board there is nobody to tell."""

try:
    from emu import mark, sample
except ImportError:

    def mark(label):
        pass

    def sample():
        pass
