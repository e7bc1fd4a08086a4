"""Topics of another Kafka cluster, with the offsets of their groups: the connectors of MirrorMaker 2."""
