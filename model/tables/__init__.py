"""Rules for the definitions of tables and their indexes, and for changes of them."""
