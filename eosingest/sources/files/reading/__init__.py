"""How files are read, by Spark or by the tasks: loaded only where rows are asked for."""
