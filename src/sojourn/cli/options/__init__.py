"""The options that several commands share: their declarations and parsers."""
