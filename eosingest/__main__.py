"""`python -m eosingest`: the same as the command `eosingest`."""

from eosingest.cli.main import main

if __name__ == "__main__":
    main()
