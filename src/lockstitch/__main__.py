"""``python -m lockstitch``: the command line without its console script."""

from .cli.main import main

main()
