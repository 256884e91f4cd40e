#!/bin/sh
# What `make tour` runs: each command is shown before what it prints. $1 is where plots go.
set -eu
out=${1:-build/tour}
mkdir -p "$out"

show() {
    printf '\n\033[1m$ %s\033[0m\n' "$*"
    "$@"
}

echo "Video logo detection, a chain of three operators: the best use of 22 processors."
show sojourn plan examples/vld.yaml --processors 22

echo
echo "Does it come out so? The simulator shares nothing with the models but the topology."
echo "(It compiles itself when it is first used, which takes some seconds.)"
show sojourn simulate examples/vld.yaml --allocation extract=10,match=11,aggregate=1 \
    --records 1000000 --plot "$out/vld-simulated.png"

echo
echo "The fewest that keep the 95th percentile below 3 s, in whole nodes of 5 with 3 reserved."
show sojourn plan examples/vld.yaml --target-p95 3s --slots-per-node 5 --reserved 3

echo
echo "Why those, what lies around them, and how far the load may grow."
show sojourn explain examples/vld.yaml --processors 22 --plot "$out/vld.png"

echo
echo "Frequent pattern detection, with a loop and fan-out: parallel branches make completion"
echo "much shorter than the work added up."
show sojourn explain examples/fpd.yaml --processors 22 --plot "$out/fpd.png"

echo
echo "Bursts change the best plan: M/M/k prefers 3:3:1, GI/G/k 2:4:1."
show sojourn plan examples/vld-bursty.yaml --processors 7 --model mmk
show sojourn plan examples/vld-bursty.yaml --processors 7 --model gigk

echo
echo "What the loop would do: 40 minutes in which the load doubles and falls back, in 20 seconds."
echo "On a terminal it is drawn as it goes: operators with their processors, how busy they are"
echo "and what waits; load, latency (red above the target) and processors over time; and the"
echo "last changes, each with its reason. It adds processors at the next look, and takes them"
echo "away when several looks agree."
rm -f "$out/vld.history"
show sojourn rehearse examples/vld.yaml --trace examples/doubling.csv --target-p95 3s \
    --speed 120 --history "$out/vld.history" --plot "$out/vld-rehearsed.png"

echo
echo "The same from its history: turns that change nothing are one line, with what was measured,"
echo "what had been expected, and why nothing was done."
show sojourn history "$out/vld.history" --last 10

echo
echo "plots: $out/vld.png $out/vld-simulated.png $out/fpd.png $out/vld-rehearsed.png"
