"""Messages between the processes of an application, and how they are sent.

The architecture lists who sends which messages to whom. All connections carry `frames` of
MessagePack. Between machines they are encrypted with TLS, which can be turned off, and
authenticated (`handshake`). The settings of a host are JSON on its standard input; what tasks
write for other tasks are headers of messages in Kafka.
"""
