from sojourn.spark.launch import windows
from spark.shop import app


def test_it_is_said_how_far_back_a_sink_remembers():
    """A batch that has more records than that may write some of them twice."""
    said = (
        "sink taxed-once is deduplicated against its last 100,000 records: "
        "a batch of 50 s at 2,000 records per second"
    )
    assert [line for line in windows(app, 50.0) if line.startswith(said)]
