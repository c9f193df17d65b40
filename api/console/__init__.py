"""The console: web pages on the admin port that show the tables and what happens inside.

``routes.py`` answers the requests of the pages. ``app/`` has the pages' sources, which a browser
runs as they are, and ``vendor/`` the modules of others.
"""
