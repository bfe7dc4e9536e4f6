"""The command line without a process of its own: half a second less for each command."""

from __future__ import annotations

import subprocess
import sys

import pytest

from shadowprice.cli.app import main


class CommandLine:
    """Commands as ``python -m shadowprice`` carries them out, in this process.

    What C code writes to the two streams is captured too.
    """

    def __init__(self, capfd: pytest.CaptureFixture[str], columns: int = 80) -> None:
        self.capfd, self.columns = capfd, columns

    def __call__(self, *words: object) -> subprocess.CompletedProcess[str]:
        argv = ["shadowprice", *map(str, words)]
        status: object = 0
        self.capfd.readouterr()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sys, "argv", argv)
            patch.setenv("COLUMNS", str(self.columns))
            try:
                main()
            except SystemExit as end:
                status = end.code or 0
        out, err = self.capfd.readouterr()
        assert isinstance(status, int)
        return subprocess.CompletedProcess(argv, status, out, err)
