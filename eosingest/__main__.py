"""Runs the command `eosingest`, and `python -m eosingest`."""

from eosingest.host.garbage import collect_rarely
from eosingest.host.library_warnings import keep_off_the_terminal


def main() -> None:
    """Run this process's command line and exit with its exit code."""
    keep_off_the_terminal()
    collect_rarely()
    from eosingest.cli.main import main as command_line  # imports libraries

    command_line()


if __name__ == "__main__":
    main()
