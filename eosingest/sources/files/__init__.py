"""Files as a source: listing, cutting, fingerprints, inspection, and reading lines of text without a JVM."""
