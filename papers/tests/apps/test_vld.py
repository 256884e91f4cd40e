import os
import random
import subprocess
import sys
from collections import Counter
from itertools import islice
from pathlib import Path

import cv2
import numpy as np
import pytest

from apps.in_memory import InMemory, expected
from sojourn.errors import BadInput
from sojourn_papers.apps.catalogue import entry
from sojourn_papers.apps.data import DATA, data_file
from sojourn_papers.apps.vld import app, bulk, bulk_application
from sojourn_papers.apps.vld.__main__ import main
from sojourn_papers.apps.vld.application import aggregate, extract, match, matcher
from sojourn_papers.apps.vld.features import Extractor, read_features
from sojourn_papers.apps.vld.frames import CLIPS, frames, placements
from sojourn_papers.apps.vld.logos import logos
from sojourn_papers.apps.vld.offline import Score, answers, score
from sojourn_papers.apps.vld.picture import draw
from sojourn_papers.apps.vld.thresholds import LEAST_INLIERS, MOST_FEATURES

_BOX = (300, 40, 200, 100)


_DATA = os.environ.get(DATA) or Path(__file__).parents[4] / "shared" / "data"


@pytest.fixture(autouse=True)
def drawn(monkeypatch):
    """Logos and clips are drawn: there is no data."""
    monkeypatch.delenv(DATA, raising=False)


@pytest.fixture
def real(monkeypatch):
    """Logos and clips are those of the data."""
    monkeypatch.setenv(DATA, str(_DATA))
    if data_file("video") is None or data_file("logos") is None:
        pytest.skip(f"{DATA} names no folder with clips and logos")


def _jpeg(image):
    return cv2.imencode(".jpg", image)[1].tobytes()


def _grey(level=128):
    return np.full((90, 160, 3), level, np.uint8)


def _detections(results):
    return [record for (sink, record), _ in results.items() if sink == "detections"]


def _score(number, seed):
    running, samples = InMemory(app), list(islice(frames(seed), number))
    detections = [d for each in samples for d in _detections(running.results("frames", each))]
    return score([frame for frame, _ in samples], detections)


def test_what_is_detected_is_what_opencv_finds_directly():
    running = InMemory(app)
    found = 0
    for record in islice(frames(1), 6):
        results = running.results("frames", record)
        assert results == expected(answers, "frames", record)
        found += len(results)
    assert found > 3


def test_single_features_give_what_frames_give():
    """And no more is kept of a frame once all its features have come."""
    running, found = InMemory(bulk), 0
    for record in islice(frames(1), 6):
        results = running.results("frames", record)
        assert results == expected(answers, "frames", record)
        found += len(results)
    assert found > 1
    assert running.states("aggregate") == {}


@pytest.mark.usefixtures("real")
def test_single_features_of_real_frames_give_what_frames_give():
    running = InMemory(bulk)
    for record in islice(frames(2), 4):
        assert running.results("frames", record) == expected(answers, "frames", record)


def test_features_of_frames_may_interleave_in_any_order():
    """Frames of the same name are told apart by the ids of their records."""
    samples = [("same", jpeg) for _, jpeg in islice(frames(1), 4)]
    matcher, judge, states = bulk_application.single_matcher(), bulk_application.judge(), {}
    open_ = [
        made
        for number, sample in enumerate(samples)
        for feature in bulk_application.extract(Extractor(), f"frames/0/{number}", *sample)
        for made in bulk_application.match(matcher, *feature)
    ]
    random.Random(7).shuffle(open_)
    found = Counter()
    for made in open_:
        state = states.setdefault(made[0], {"came": 0, "matches": b""})
        found.update(("detections", d) for d in bulk_application.aggregate(judge, state, *made))
    assert found == sum((expected(answers, "frames", s) for s in samples), Counter())
    assert found.total() > 1
    assert set(map(len, states.values())) == {0}


def test_a_frame_is_judged_when_its_last_feature_has_come_and_not_before():
    judge, state = bulk_application.judge(), {"came": 0, "matches": b""}
    of_frame = "frames/0/1", "1-0", 960, 540, 2
    assert not list(bulk_application.aggregate(judge, state, *of_frame, b""))
    assert state["came"] == 1
    assert not list(bulk_application.aggregate(judge, state, *of_frame, b""))
    assert state == {}


def test_without_features_no_records_follow_from_a_frame():
    running = InMemory(bulk)
    assert not running.results("frames", ("grey", _jpeg(_grey())))
    assert running.states("aggregate") == {}
    assert not running.dead_letters


@pytest.mark.usefixtures("real")
def test_real_frames_give_what_opencv_finds_directly():
    running = InMemory(app)
    for record in islice(frames(2), 12):
        assert running.results("frames", record) == expected(answers, "frames", record)


@pytest.mark.parametrize("number", [12, pytest.param(40, marks=pytest.mark.slow)])
def test_drawn_logos_are_found_where_they_are(number):
    reached = _score(number, seed=3)
    assert min(reached.precision, reached.recall) >= 0.95


@pytest.mark.usefixtures("real")
def test_real_logos_are_found_where_they_are():
    reached = _score(40, seed=3)
    assert min(reached.precision, reached.recall) >= 0.95


def test_a_seed_gives_the_same_frames_and_another_others():
    """A check works results out from what was sent, and runs are compared with each other."""
    first, again, other = (list(islice(frames(seed), 3)) for seed in (1, 1, 2))
    assert first == again
    assert not set(first) & set(other)


@pytest.mark.usefixtures("real")
def test_real_frames_are_the_same_for_the_same_seed():
    assert list(islice(frames(1), 10)) == list(islice(frames(1), 10))


def test_the_place_of_logos_follows_from_the_id_alone():
    images = logos()
    placed = [placements(f"1-{number}", images) for number in range(400)]
    again = [placements(f"1-{number}", images) for number in range(400)]
    assert [len(each) for each in placed] == [len(each) for each in again]
    numbers = {size: sum(len(each) == size for each in placed) for size in range(3)}
    assert numbers[0] > 60
    assert numbers[1] > 150
    assert numbers[2] > 60
    assert {each.logo for two in placed for each in two} == set(images)


def test_logos_are_inside_the_frame_and_apart():
    images = logos()
    for number in range(400):
        boxes = [each.corners for each in placements(f"1-{number}", images)]
        for corners in boxes:
            assert (corners >= 0).all()
            assert (corners <= [960, 540]).all()
        if len(boxes) == 2:
            assert boxes[0][:, 0].max() < boxes[1][:, 0].min()


@pytest.mark.parametrize("data", ["drawn", "real"])
def test_there_are_sixteen_logos_with_enough_features(data, request):
    request.getfixturevalue(data)
    sizes = [len(Extractor()(_jpeg(image)).points) for image in logos().values()]
    assert len(sizes) == 16
    assert min(sizes) >= 3 * LEAST_INLIERS


def test_features_fit_into_a_record_and_come_back():
    _, jpeg = next(iter(frames(1)))
    features = Extractor()(jpeg)
    points, descriptors = features.as_bytes()
    assert 0 < len(features.points) <= MOST_FEATURES
    assert len(points) + len(descriptors) <= 204_000
    back = read_features(features.width, features.height, points, descriptors)
    assert (back.points == features.points).all()
    assert (back.descriptors == features.descriptors).all()


def test_a_frame_without_features_has_no_logo():
    running = InMemory(app)
    assert not running.results("frames", ("grey", _jpeg(_grey())))
    assert not running.dead_letters


@pytest.mark.parametrize("jpeg", [b"", b"not a picture", None])
def test_what_is_not_a_picture_is_a_dead_letter(jpeg):
    running = InMemory(app)
    assert not running.results("frames", ("bad", jpeg))
    assert running.dead_letters == [("extract", ("bad", jpeg))]


def test_points_without_descriptors_are_refused():
    with pytest.raises(ValueError, match="1 points and 2 descriptors"):
        read_features(960, 540, bytes(8), bytes(256))


def test_a_logo_takes_eighteen_features():
    few, enough = ("few", LEAST_INLIERS - 1, _BOX), ("enough", LEAST_INLIERS, _BOX)
    assert list(aggregate("1-0", [few, enough])) == [("1-0", *enough)]


def test_matches_on_a_line_are_no_logo():
    """There is no homography then, and OpenCV returns none."""
    matches = matcher()
    (features,) = extract(Extractor(), "1-0", _jpeg(logos()["logo-a"]))
    frame, width, height, points, descriptors = features
    same = np.zeros_like(np.frombuffer(points, "<f4")).tobytes()
    ((_, found),) = match(matches, frame, width, height, same, descriptors)
    assert "logo-a" not in [logo for logo, inliers, _ in found if inliers >= LEAST_INLIERS]


def test_a_score_counts_right_wrong_and_missed():
    images = logos()
    placed = next(p for n in range(99) if len(p := placements(f"1-{n}", images)) == 2)
    frame = next(f"1-{n}" for n in range(99) if len(placements(f"1-{n}", images)) == 2)
    left, right = (cv2.boundingRect(each.corners) for each in placed)
    there, elsewhere = (frame, placed[0].logo, 40, left), (frame, placed[1].logo, 40, left)
    other = next(name for name in images if name not in {each.logo for each in placed})
    absent = (frame, other, 40, right)
    assert score([frame], [there]) == Score(right=1, wrong=0, missed=1)
    assert score([frame], [there, elsewhere, absent]) == Score(right=1, wrong=2, missed=1)
    assert score([frame], []) == Score(right=0, wrong=0, missed=2)


def test_precision_and_recall():
    reached = Score(right=3, wrong=1, missed=2)
    assert (reached.precision, reached.recall) == (0.75, 0.6)
    nothing = Score(right=0, wrong=0, missed=0)
    assert (nothing.precision, nothing.recall) == (0, 0)


def test_a_clip_that_cannot_be_read_is_named(tmp_path, monkeypatch):
    (tmp_path / "video").mkdir()
    for name in CLIPS:
        (tmp_path / "video" / name).write_bytes(b"")
    monkeypatch.setenv(DATA, str(tmp_path))
    with pytest.raises(BadInput, match=r"b\.mp4 has no pictures"):
        next(frames(1))


def test_a_detection_is_drawn_into_its_frame():
    picture = draw(_jpeg(np.zeros((300, 600, 3), np.uint8)), [("1-0", "amex", 20, _BOX)])
    assert picture.shape == (300, 600, 3)
    left, top, width, height = _BOX
    assert picture[top + height // 2, left].max() > 150
    assert picture[top + height // 2, left + width // 2].max() < 50


def test_the_command_draws_four_frames(tmp_path):
    main([str(tmp_path / "out.png")])
    assert cv2.imread(str(tmp_path / "out.png")).shape == (1080, 1920, 3)


@pytest.mark.parametrize("out", ["out.txt", "nowhere/out.png"])
def test_the_command_says_what_it_cannot_write(out, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit):
        main([out])
    assert out in capsys.readouterr().err


def test_importing_the_application_takes_no_opencv():
    """`sojourn apps` lists it where OpenCV is not installed."""
    code = "import sys, sojourn_papers.apps.vld; sys.exit('cv2' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_catalogue_has_it():
    assert entry("vld").app is app
    assert entry("vld").states is None
    assert entry("vld-bulk").app is bulk
    assert entry("vld-bulk").states([]) == {"aggregate": {}}
    assert list(app.topology({"frames": 13}).rates) == ["extract", "match", "aggregate"]
