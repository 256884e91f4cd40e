"""The tables of the log stream: the index, entries and their terms, and the counts.

A row of `counted` counts one. There is no row that grows, which all processors would wait for,
and which a record that is processed again would change.
"""

SCHEMA = (
    """CREATE TABLE IF NOT EXISTS entries (
        id TEXT PRIMARY KEY, time TEXT NOT NULL, level TEXT NOT NULL, component TEXT NOT NULL,
        message TEXT NOT NULL, rule TEXT NOT NULL
    )""",
    """CREATE TABLE IF NOT EXISTS terms (
        term TEXT NOT NULL, entry TEXT NOT NULL, PRIMARY KEY (term, entry)
    )""",
    """CREATE TABLE IF NOT EXISTS counted (
        id TEXT PRIMARY KEY, kind TEXT NOT NULL, value TEXT NOT NULL, hour TEXT NOT NULL
    )""",
)

ENTRY = "INSERT INTO entries VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"
TERM = "INSERT INTO terms VALUES (?, ?) ON CONFLICT DO NOTHING"
COUNT = "INSERT INTO counted VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING"

QUERIES = {
    "entries": """
        SELECT time, level, component, message, rule, count(*) FROM entries
        GROUP BY time, level, component, message, rule
    """,
    "terms": """
        SELECT term, count(*) FROM terms JOIN entries ON terms.entry = entries.id GROUP BY term
    """,
    "counts": "SELECT kind, value, hour, count(*) FROM counted GROUP BY kind, value, hour",
}
"""What the tables say, whatever the ids of the records were."""
