"""Check the ledger of a real run: ``python -m shadowprice.proofs.execution_ledger STATE/run.db``.

The ledger is read with the standard library alone, and its log is checked against what it says of
nodes and jobs, by the rules of :mod:`shadowprice.proofs.execution_log`.
"""

from __future__ import annotations

import json
import sqlite3
import sys
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

from shadowprice.proofs.execution_log import Rejected, verify_log


def verify_ledger(path: Path, *, allowed_loss: Mapping[str, int] | None = None) -> dict[str, int]:
    """Check the log in a ledger.

    Parameters
    ----------
    allowed_loss : mapping of str to int, optional
        Most steps that one lease of a job may lose.

    Returns
    -------
    dict
        Counts, as of ``verify_log``.

    Raises
    ------
    Rejected
        Naming the first event that breaks a rule.
    sqlite3.Error, ValueError, LookupError
        If it cannot be read, or is no ledger.
    """
    with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as db:
        db.execute("BEGIN")  # all from one moment, while a driver goes on writing
        rows = db.execute("SELECT seq, time_s, kind, job, epoch, data FROM events ORDER BY seq")
        names = ("seq", "time_s", "kind", "job", "epoch", "data")
        events = [dict(zip(names, (*row[:5], json.loads(row[5])), strict=True)) for row in rows]
        facts = {key: json.loads(value) for key, value in db.execute("SELECT key, value FROM run")}
        jobs = list(db.execute("SELECT name, gpus, iterations FROM jobs"))
    return verify_log(
        events,
        facts["nodes"],
        gpus={name: gpus for name, gpus, _ in jobs},
        iterations={name: iterations for name, _, iterations in jobs},
        allowed_loss=allowed_loss,
        ended=bool(facts.get("ended")),
    )


def main() -> int:
    """Check the ledger named on the command line; exit code 0 if its log breaks no rule, else 1."""
    try:
        counts = verify_ledger(Path(sys.argv[1]))
    except (LookupError, OSError, sqlite3.Error, ValueError, Rejected) as error:
        usage = "python -m shadowprice.proofs.execution_ledger STATE/run.db"
        print(f"rejected: {error} (usage: {usage})", file=sys.stderr)
        return 1
    print("no rule is broken: " + ", ".join(f"{n} {what}" for what, n in counts.items()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
