"""Compilation of the loops for index policies, as a step of an installation.

``python -m shadowprice.execution.kernel``: without it the first run of a rule compiles its loop, for some ten seconds.
What was compiled is of use to every installation of this version on the machine.
"""

from __future__ import annotations

import os

from shadowprice.execution.kernel.run import compile_all, has_compiler

if __name__ == "__main__" and has_compiler():
    compile_all(os.cpu_count() or 1)
