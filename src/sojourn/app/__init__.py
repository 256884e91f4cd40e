"""The programming interface: applications, streams, operators, schemas and records."""
