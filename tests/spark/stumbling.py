"""An application whose function raises, as it says nothing of what then is to happen."""

import sojourn as sj

app = sj.App("stumbling")
numbers = app.source("numbers", schema="seed long")


@app.operator(reads=numbers, emits="seed long", service_s=0.01)
def halve(seed):
    if seed % 2:
        raise ValueError(f"{seed} is odd")
    yield (seed // 2,)


app.sink(halve)
