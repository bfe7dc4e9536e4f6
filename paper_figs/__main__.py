"""All figures of this folder, or those that are named: ``python paper_figs [NAME ...] [--size quick]``."""

import sys
from pathlib import Path

from shadowprice.studies.figures.command import run_folder

if __name__ == "__main__":
    sys.exit(run_folder(Path(__file__).resolve().parent))
