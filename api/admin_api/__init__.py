"""The admin port as its server, its clients and its options share it: messages, proofs, times."""
