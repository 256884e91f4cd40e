"""The real-time queries of an application."""
