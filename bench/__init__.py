"""Measurements: eosingest beside what a user could pick instead, on one machine, in turns.

works.py ─▶ records to send, and how each contender is told      topics.py ─▶ what the broker says of a topic
contenders.py ─▶ processes that send a work to a topic           __main__.py ─▶ rounds, table, JSON, plot
"""
