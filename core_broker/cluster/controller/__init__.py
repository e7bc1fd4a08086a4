"""The controller: decides about brokers, partitions, topics and configs, and writes its decisions to the metadata log.

Every module but `controller.py` is pure: it gets an image and a request, and returns records or raises BrokerError.
"""
