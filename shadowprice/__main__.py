"""``python -m shadowprice`` is the command line."""

from shadowprice.cli.app import main

main()
