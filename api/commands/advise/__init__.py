"""The command ``dynactor advise``: facts gathered, findings, and their texts."""
