"""The JSON that commands print: fixed, because tools read it."""
