"""An application whose function needs a file beside it."""

import json
from pathlib import Path

import sojourn as sj

app = sj.App("prices")
orders = app.source("orders", schema="item string")


def price_list():
    """Return the prices in the file of the working folder."""
    return json.loads(Path("prices.json").read_text())


@app.operator(reads=orders, emits="item string, price int", set_up=price_list, service_s=0.001)
def price(prices, item):
    """Yield what an item costs."""
    yield item, prices[item]


app.sink(price)
