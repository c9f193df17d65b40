"""The command ``dynactor advise``: facts, findings and their texts."""
