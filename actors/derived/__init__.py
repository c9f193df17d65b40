"""Time to live and Kafka: work in the background that follows the changes of tables."""
