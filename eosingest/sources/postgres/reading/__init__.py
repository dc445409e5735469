"""How a table is read: loaded only where its rows are wanted."""
