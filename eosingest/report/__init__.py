"""What a run reports (model.py): plain values, which cli/ renders."""
