"""Running applications, and their control from other terminals over a Unix socket."""
