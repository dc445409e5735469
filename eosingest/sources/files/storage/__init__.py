"""Opens files and detects their changes through one interface, with a module for each kind of storage."""
