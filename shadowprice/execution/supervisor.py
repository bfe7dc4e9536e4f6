"""Runs one rank of a lease on its node: starts, renews and stops its command, confirms its end.

::

    python -I -S STATE/supervisor.py LEASE_DIRECTORY

A copy of this file lies in the state directory, beside one of what it imports
(:mod:`shadowprice.execution.real.state_directory`), so that a node needs nothing but Python. A
supervisor outlives whoever started it and talks through files of the lease's directory alone:
``order.json`` and ``lease.json`` come in, ``supervisor.json``, ``output.log`` and ``exit.json`` go
out.
"""

import os
import sys

if __name__ == "__main__":
    sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "library"))
    from shadowprice.execution.supervision.rank import main

    os._exit(main(os.path.abspath(sys.argv[1])))
