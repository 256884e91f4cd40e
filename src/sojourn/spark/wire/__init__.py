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
| `record` | `relay`, `processor`; also the payload of a reminder, and the size in Kafka |
| `repetitions` | `relay`; hosts, and tasks before a sink, drop duplicates by it |
| `counters` | `controller`: the report of a host |

The others are no messages: `handshake` is how the ends of a connection between machines
authenticate, and `event_loop` what hosts and agents have in common.
"""
