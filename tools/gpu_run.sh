#!/bin/bash
# Runs the tests on a host with GPUs; every part has a time limit of its own. Logs go to $OUT or here.
#   run.sh [first] [abi] [bench] [stages] [soak] [all]: what to run; default: first. all: a rank on every GPU of
#   the host, conformance by threads and processes, then every algorithm and NCCL, with JSON; 10 minutes.
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
    stages) part 120 stages stages && part 60 timeline timeline ;;
    soak)
      part 200 exact exact 60 7
      part 120 collectives collectives 60 7
      part 200 chaos chaos 120 7
      part 200 abi_soak gpu_abi soak
      ;;
    all)
      gpus=$(nvidia-smi -L | grep -c '^GPU')
      export FCCL_TEST_GPUS=$gpus
      nccl=$(find / -name libnccl.so.2 -not -path '/proc/*' 2> /dev/null | head -1)
      [ -z "$nccl" ] || export LD_LIBRARY_PATH=$(dirname "$nccl")${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
      part 90 exact exact 15 1
      for name in all_exact all_algorithms all_processes; do part 40 "abi_$name" gpu_abi "$name"; done
      small="--tokens 1,4,16,64 -n 200 -G 20" large="--tokens 128,512,1024,2048 -n 40 -G 10"
      for size in small large; do
        common="--backend cuda --np $gpus --op fused --hidden 4096,8192 -d bf16 --in-place no --rotate 1 ${!size}"
        LINES_SHOWN=20 part 60 "perf_$size" bin/fccl_perf $common --vs nccl --rounds 5 --json "$out/$size.json"
        for algo in oneshot_lamport twoshot_rows_lamport twoshot_cols_lamport oneshot_flags twoshot_rows; do
          LINES_SHOWN=14 part 30 "perf_${size}_$algo" bin/fccl_perf $common --algo "$algo" --json "$out/${size}_$algo.json"
        done
      done
      part 150 tune bin/fccl_perf --backend cuda --np "$gpus" --hidden 4096 --tokens 1,16,64,256,1024 -d bf16 \
        -G 10 -n 40 --tune "$out/tuner.txt"
      ;;
    *) part 300 "$(echo "$what" | tr ' ' _)" $what ;;
  esac
done
exit $bad
