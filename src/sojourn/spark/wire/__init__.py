"""Messages between the processes of an application, and how they are sent.

| between | module | over |
|---|---|---|
| driver and host | `controller` | Unix socket, frames of MessagePack |
| driver and host, at its start | `host_settings` | standard input |
| task and host | `relay` | Unix socket, or TCP with TLS on a cluster |
| host and processor | `processor` | socket pair |
| host and agent | `agent` | TCP with TLS |
| Kafka and task | `headers`, `signed_inputs`, `dead_letter` | headers of Kafka's messages |

All of them carry `record`. `frames` divides a stream of bytes into messages, `authentication`
and `encryption` are how a connection from another machine begins.
"""
