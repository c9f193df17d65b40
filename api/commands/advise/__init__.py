"""The command ``dynactor advise``: it gathers facts about a table and prints findings."""
