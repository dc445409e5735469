"""Files as a source: found, cut, told apart by content, inspected, and lines of text read without a JVM."""
