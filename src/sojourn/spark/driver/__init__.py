"""The driver: it starts an application's queries and hosts, observes and changes them."""
