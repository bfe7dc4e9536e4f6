"""``python -m shadowprice`` is the command line."""

from shadowprice.cli import main

main()
