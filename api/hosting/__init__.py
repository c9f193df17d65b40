"""Opens the stores and the databases of a server, and reopens them."""
