"""A running application, and its control from other terminals over a Unix socket."""
