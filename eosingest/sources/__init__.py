"""Lists and cuts sources, so that the same split has the same rows in the same order in every run.

protocol/source.py defines the interface of every source; `registry` has the kinds of sources, and `files` is the one for files.
Listing and cutting need no JVM, so a run with nothing to send starts none.
"""
