"""Where files are kept: listed, opened and told to have changed by one interface, with a module for each kind of storage."""
