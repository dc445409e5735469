"""Sources: what is to be sent, named and cut so that the same split is the same rows in the same order, run after run.

protocol/source.py has the interface of every source; `registry` has the kinds of sources, and `files` is the one for files.
Listing and cutting need no JVM, so that a run with nothing to send starts none.
"""
