"""Load generation: records that are sent to the topics of sources."""
