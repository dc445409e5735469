"""For processes of tests with this folder in PYTHONPATH: they know the kind of tests/support/ledger.py from their start on."""

from tests.support.ledger import register

register()
