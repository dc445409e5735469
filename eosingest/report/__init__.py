"""Reports the results of the verbs (model.py) as plain values, which cli/ renders."""
