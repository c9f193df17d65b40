"""Tables: definitions, and the rules of everything that clients may change in them."""
