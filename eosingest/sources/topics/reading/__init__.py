"""How a topic is read: loaded only where its records are wanted."""
