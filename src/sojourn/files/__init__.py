"""Files that survive crashes, are private, or grow for ever: how state and logs are written."""
