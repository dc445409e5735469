"""Sources: what is to be sent, named and cut so that the same split is the same rows in the same order, run after run.

`base` says what every source promises; `files` is the one for files; `fingerprint` tells a changed file from one that
was merely copied. Nothing here needs a JVM: a run with nothing to do is decided from a listing.
"""
