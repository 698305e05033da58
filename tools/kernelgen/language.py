"""All that sources and fragments are written in."""

from kernelgen.flow import *
from kernelgen.kernel import Place as Place
from kernelgen.kernel import Register as Register
from kernelgen.kernel import called as called
from kernelgen.kernel import kernel as kernel
from kernelgen.moves import *
from kernelgen.operands import *
from kernelgen.thumb import *
