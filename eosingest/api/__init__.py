"""The Python API: verbs as functions, each in a process of its own (docs/python.md). `import eosingest` has its names."""
