"""XML, read by the standard library's expat as the columns of `source.schema`: with every text as it is, or not at all."""
