"""What Prometheus reads of the server: a module for each kind of metric, and their exposition."""
