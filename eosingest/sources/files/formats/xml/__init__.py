"""Reads XML with the standard library's expat as the columns of `source.schema`: every text as it is, or not at all."""
