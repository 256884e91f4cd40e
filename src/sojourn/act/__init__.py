"""Actions: policies and the steps from their wishes to changes of an application."""
