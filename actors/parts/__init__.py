"""The base of the control plane's parts: handlers of messages, phases, and pieces of long work.

A part is one file above this folder, such as ``actors/phases/contributor_insights.py``, and one
line in ``actors/database/parts.py``.
"""
