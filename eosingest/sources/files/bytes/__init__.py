"""The bytes of files: codecs, blocks and lines."""
