"""One file per figure or table: what was claimed, and the experiment that tests it."""
