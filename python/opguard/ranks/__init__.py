"""What ranks say to one another: collectives, data parallelism, shards."""
