"""The table of words and their counts."""

SCHEMA = ("CREATE TABLE IF NOT EXISTS words (word TEXT PRIMARY KEY, n BIGINT NOT NULL)",)

LARGER_WINS = """
    INSERT INTO words (word, n) VALUES (?, ?)
    ON CONFLICT (word) DO UPDATE SET n = excluded.n WHERE excluded.n > words.n
"""

COUNTS = "SELECT word, n FROM words"
