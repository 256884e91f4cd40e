"""The hosts of an application, as the driver starts and reaches them."""
