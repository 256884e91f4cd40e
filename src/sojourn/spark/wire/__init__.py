"""Messages between the processes of an application, and how they are sent.

| from | to | module | over |
|---|---|---|---|
| driver | host, at its start | `host_settings` | JSON on standard input, secrets in variables |
| driver | host, and back | `controller` | Unix socket |
| driver | task of a part's query | `host_address` | the query that Spark runs |
| task | host, and back | `relay` | Unix socket; on a cluster TCP, encrypted with TLS |
| host | processor, and back | `processor` | socket pair |
| host | agent, and back | `agent` | TCP, encrypted with TLS |
| agent | processor, and back | `processor` | socket pair |
| task | Kafka, and back | `headers`, `signed_inputs` | headers of messages |
| task | Kafka, then driver | `dead_letter` | headers of messages |
| driver | Kafka, then task: retries and samples | `headers` | headers of messages |

All connections carry `frames` of MessagePack; TLS can be turned off. Two kinds of messages are
beside the code that reads them: those of templates in `sojourn.spark.processor.template`, and
the settings of agents in `sojourn.spark.agent.agent`.

Several messages share these records:

| module | part of |
|---|---|
| `record` | `relay`, `processor` |
| `repetitions` | `relay`; hosts, and tasks before a sink, drop duplicates by it |
| `reminder` | the payload of the record by which a host reminds a processor |
| `counters` | `controller`: the report of a host |
| `node_state`, `tracing` | `counters` |

The others are no messages: `message_size` is the limit that tasks, processors and queries of
Spark observe, `authentication` and `encryption` are the handshake with another machine, and
`frame_connection` and `background` belong to the event loop of hosts and agents.
"""
