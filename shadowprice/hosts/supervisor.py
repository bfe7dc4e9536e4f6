"""Runs one rank of a lease on its node: starts, renews and stops its command, confirms its end.

::

    python -I -S -B STATE/supervisor.py LEASE_DIRECTORY

A copy of this file lies in the state directory, beside one of what it imports
(:func:`shadowprice.hosts.lease_files.copy_supervisor`), so that a node needs nothing but
Python. A supervisor outlives whoever started it and talks through files of the lease's directory
alone: ``order.json`` and ``lease.json`` come in, ``supervisor.json``, ``output.log`` and
``exit.json`` go out. As ``serve DESCRIPTOR`` it is the launcher of a machine's supervisors
(:mod:`shadowprice.hosts.supervision.launcher`).
"""

import os
import sys

if __name__ == "__main__":
    os.umask(0o077)
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path.insert(0, os.path.join(here, "library"))
    if len(sys.argv) == 2:
        from shadowprice.hosts.supervision.rank import main

        os._exit(main(os.path.abspath(sys.argv[1])))
    if len(sys.argv) == 3 and sys.argv[1] == "serve":
        from shadowprice.hosts.supervision.launcher import main as serve

        sys.exit(serve(int(sys.argv[2])))
    sys.exit("usage: supervisor.py LEASE_DIRECTORY | serve DESCRIPTOR")
