"""The options that several commands share: how each is declared, and how its text is read."""
