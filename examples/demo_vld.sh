#!/bin/sh
# What `make demo-vld` runs, in about three minutes. $1 is where pictures go.
set -eu
out=${1:-build/demo-vld}
mkdir -p "$out"

show() {
    printf '\n\033[1m$ %s\033[0m\n' "$*"
    "$@"
}

echo "Logos in video, found by their SIFT features: the application of the DRS papers on Spark."
echo "Real clips and logos if SOJOURN_DATA names a folder that has them, otherwise drawn ones."
echo "The frame rate doubles after 30 s, from 3 to 6 per second, and falls back 45 s later."
echo "A frame takes some 150 ms of CPU. The loop adds a processor where one would make frames wait,"
echo "unless the cores are busy with something else: then it says that more would not help."
rm -f "$out/vld.history"
show sojourn run sojourn_papers.apps.vld:app --trace examples/doubling.csv --times 0.46 --faster 20 \
    --target-p95 600ms --every 3s --start extract=1 --start match=1 --batch 130s \
    --state "$out/state" --fresh --history "$out/vld.history"

show sojourn history "$out/vld.history" --plot "$out/vld.png" --html "$out/vld.html"
show python -m sojourn_papers.apps.vld "$out/detections.png"

echo
echo "What it looked like: $out/vld.png, and as a page $out/vld.html"
echo "What it detects: $out/detections.png"
