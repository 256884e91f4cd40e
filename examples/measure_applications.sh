#!/bin/sh
# Runs each application for 40 s, and writes its topology as measured: $1/NAME.yaml, for plan,
# predict, simulate and rehearse. Takes about 10 minutes; results are those of this machine.
set -eu
out=${1:-build/applications}
mkdir -p "$out"
printf 'timestamp,rate\n0,1\n40,1\n' > "$out/load.csv"

measure() {
    echo "measuring $1 at $3 records per second"
    SOJOURN_DATABASE="$out/$1.sqlite" sojourn run "$2" --trace "$out/load.csv" --times "$3" \
        --policy static --target-p95 2s --every 5s --batch 50s \
        --state "$out/$1.state" --fresh --history "$out/$1.history" \
        > "$out/$1.log"
    sojourn topology --measured --history "$out/$1.history" -o "$out/$1.yaml"
    rm -rf "$out/$1.state" "$out/$1.sqlite"*
}

measure vld sojourn_papers.apps.vld:app 2
measure vld-bulk sojourn_papers.apps.vld:bulk 1
measure fpd sojourn_papers.apps.fpd:app 40
measure wordcount sojourn_papers.apps.wordcount:app 20
measure logstream sojourn_papers.apps.logstream:app 30
measure urls sojourn_papers.apps.urls:app 10
measure sentiment sojourn_papers.apps.sentiment:app 20
measure traffic sojourn_papers.apps.traffic:app 40
measure micro-linear sojourn_papers.apps.micro:linear 20
measure micro-diamond sojourn_papers.apps.micro:diamond 20
measure micro-star sojourn_papers.apps.micro:star 20
