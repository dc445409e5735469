"""Offers the verbs as functions, each in a separate process (docs/python.md). `import eosingest` has their names."""
