"""How files are read, by Spark or by the tasks: loaded only when rows are needed."""
