"""Which files a source has: found, named, cut into splits, and their versions."""
