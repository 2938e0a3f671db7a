#!/bin/bash
# Runs the tests on a host with GPUs; every part has a time limit of its own. Logs go to $OUT or here.
#   run.sh [first] [abi] [perf] [bench] [soak]: what to run; default: first
set -u
here=$(cd "$(dirname "$0")" && pwd)
out=${OUT:-$here}
mkdir -p "$out"
bad=0
part() {
  local limit=$1 log=$2 program=gpu_test
  shift 2
  case $1 in gpu_abi | bin/*) program=$1 && shift ;; esac
  echo "== $program $*"
  timeout -k 5 "$limit" "$here/$program" "$@" > "$out/$log.log" 2>&1
  local code=$?
  tail -n "${LINES_SHOWN:-40}" "$out/$log.log" | cut -c1-700
  [ $code -eq 0 ] || { echo "exit $code"; bad=1; }
}
for what in "${@:-first}"; do
  case $what in
    first)
      nvidia-smi -L
      part 60 failures failures
      part 90 exact exact 15 1
      part 60 collectives collectives 15 1
      part 60 chaos chaos 10 1
      LINES_SHOWN=60 part 120 quick quick "$out/quick.csv"
      ;;
    abi) for name in $("$here/gpu_abi" list); do part 25 "abi_$name" gpu_abi "$name"; done ;;
    bench) LINES_SHOWN=60 part 400 bench bench "$out/bench.csv" ;;
    soak)
      part 200 exact exact 60 7
      part 120 collectives collectives 60 7
      part 200 chaos chaos 120 7
      part 200 abi_soak gpu_abi soak
      ;;
    *) part 300 "$(echo "$what" | tr ' ' _)" $what ;;
  esac
done
exit $bad
