"""Lists, cuts, hashes, inspects and reads files as a source, and lines of text without a JVM."""
