#!/bin/bash
# Builds what a host with GPUs needs to test and measure the CUDA kernels and nothing else: one program
# (static CUDA runtime, static libstdc++) and a script, in gpu-bundle/. No GPU is needed here.
#   tools/gpu_bundle.sh [architecture, default 90] [folder, default gpu-bundle]
set -euo pipefail
cd "$(dirname "$0")/.."
arch=${1:-90}
out=${2:-gpu-bundle}
build=${FCCL_BUNDLE_BUILD:-build-gpu-bundle}
nvcc=${NVCC:-$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)}
cuda=$(dirname "$(dirname "$(readlink -f "$nvcc")")")
mkdir -p "$build" "$out"

cxx=(g++ -std=c++20 -O2 -g1 -Wall -Wextra -ffp-contract=off -I. -Isrc -Iinclude -Itest -isystem "$cuda/include")
v3=(-O3 -march=x86-64-v3 -maes -mpclmul -DFCCL_CPU_LEVEL=v3)
device=("$nvcc" -std=c++20 -O3 -lineinfo -gencode "arch=compute_$arch,code=sm_$arch" -fmad=false -I. -Xptxas -v)

# One line per object: newer than all headers, or built again.
stale() {
  [ ! -e "$2" ] || [ "$1" -nt "$2" ] || [ -n "$(find device test/gpu test/harness src/topology -name '*.h' -newer "$2" -print -quit)" ]
}
objects=()
jobs_file=$build/jobs
: > "$jobs_file"
add() {
  local source=$1 object=$build/$(echo "$1" | tr / _).o
  shift
  objects+=("$object")
  if stale "$source" "$object"; then
    printf '%q ' "$@" -c "$source" -o "$object" >> "$jobs_file"
    printf '2> %q\n' "$object.log" >> "$jobs_file"
  fi
}
for source in device/entry/cuda_*.cu; do add "$source" "${device[@]}"; done
for source in device/entry/cpu_*.cc; do add "$source" "${cxx[@]}" "${v3[@]}"; done
for source in device/entry/cuda_table.cc test/gpu/*.cc \
  test/harness/{buffer,generator,kernel_case,kernel_world,matrix,number,reference}.cc; do
  add "$source" "${cxx[@]}"
done
if ! xargs -P "${FCCL_BUNDLE_JOBS:-2}" -d '\n' -I{} bash -c '{}' < "$jobs_file"; then
  grep -h 'error' "$build"/*.log | head -20
  exit 1
fi
g++ -static-libstdc++ -static-libgcc -o "$out/gpu_test" "${objects[@]}" -L"$cuda/lib64" -lcudart_static -ldl -lrt -lpthread
cp tools/gpu_run.sh "$out/run.sh"
chmod +x "$out/run.sh"
du -sh "$out"
