"""The store on RocksDB: the engine and its files, its options and errors, and views of its rows."""
