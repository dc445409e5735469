"""For processes of tests with this folder in PYTHONPATH: "text" is the kind of tests/support/ledger.py, from their start on."""

from tests.support.ledger import instead_of_text

instead_of_text()
