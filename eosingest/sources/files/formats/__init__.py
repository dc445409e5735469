"""The file formats: an entry each, registered in registry.py, and the inspection of files before anything is sent."""
