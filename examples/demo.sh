#!/bin/sh
# What `make demo` runs, in less than three minutes. $1 is where pictures go.
set -eu
out=${1:-build/demo}
mkdir -p "$out"

show() {
    printf '\n\033[1m$ %s\033[0m\n' "$*"
    "$@"
}

echo "Video logo detection, three operators in a chain: the fewest processors that keep a mean"
echo "of 1.3 s, at 13 frames per second."
show sojourn plan examples/vld.yaml --target-mean 1.3s

echo
echo "Now on Spark: a broker and Spark are started, the operators wait as long as theirs would"
echo "work. The load doubles after 30 s and falls back 45 s later. The loop looks every 2 s: it"
echo "adds processors to the running application, and gives them up again once fewer have been"
echo "enough for 10 s; without --set confirm_s that takes 30 s, which is long for a demonstration."
rm -f "$out/vld.history"
show sojourn run examples/vld.yaml --trace examples/doubling.csv --faster 20 \
    --target-mean 1.3s --every 2s --set confirm_s=10s --start extract=5 --start match=5 --batch 130s \
    --state "$out/state" --fresh --history "$out/vld.history"

show sojourn history "$out/vld.history" --plot "$out/vld.png" --html "$out/vld.html"

echo
echo "What it looked like: $out/vld.png, and as a page $out/vld.html"
echo "More without Spark: make tour"
