"""How an application is written: streams, operators, schemas, and what records look like."""
