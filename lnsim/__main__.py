"""This module makes ``python -m lnsim`` the same command as ``lnsim``."""

from lnsim.cli import main

if __name__ == "__main__":
    main()
