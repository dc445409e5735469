"""What the verbs report (model.py): plain values, which cli/ renders."""
