"""The JSON that commands print; its fields are stable."""
