"""Tables: definitions, and the rules of everything that a client may change about them."""
