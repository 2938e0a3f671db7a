#!/usr/bin/env bash
# Compiles every kernel for AMD's gfx942 and gfx950 with Debian's clang and nothing of ROCm, and reads
# in the objects what a machine without such a GPU can know:
#   - there are as many kernels as CUDA has (test/lint compares the entry files), and no calls in them;
#   - no vector register is spilled, and nothing lies in scratch but the packs of an unknown number of
#     ranks (an array of the largest number, as on CUDA);
#   - user rows move by 16 bytes; mailboxes are stored by 16 and polled by 8, at system scope (sc0 sc1),
#     of all ranks at once;
#   - arithmetic rounds to nearest even and keeps subnormals;
#   - no poll invalidates a cache, and only the failure record has one written back.
#     tools/hip_check.sh             all kernels for gfx942, those that carry the load for gfx950
#     FULL=1 tools/hip_check.sh      all kernels for both
# JOBS (nproc), BUILD (build-hip), SETUP (on; off installs nothing). Objects that are newer than all
# sources are kept. Three and a half minutes of processor time, six with FULL=1; no kernel is run.
set -euo pipefail
cd "$(dirname "$0")/.."
build=${BUILD:-build-hip}
jobs=${JOBS:-$(nproc)}
SETUP=${SETUP:-on} tools/setup.sh hip

version=22
for tool in clang++ ld.lld llvm-readelf llvm-objdump; do
  command -v "$tool-$version" > /dev/null && continue
  echo "hip_check: $tool-$version is missing; tools/setup.sh hip installs it" >&2
  exit 2
done

# By its own folder, where it finds its own linker, not that of an older release.
clang=$(dirname "$(readlink -f "$(command -v clang++-$version)")")/clang++
flags=(-x hip --offload-device-only --no-gpu-bundle-output -nogpuinc -nogpulib -mcode-object-version=5
  -std=c++20 -O3 -ffp-contract=off -Wall -Wextra -Wpedantic -Wshadow -Werror -I.)
sources=$build/newest_source
mkdir -p "$build"
touch -r "$(ls -t tools/hip_check.sh device/*/*.h device/entry/*.hip | head -n 1)" "$sources"

# ---- what is compiled: those that take longest first
arch_of_all=gfx942
plan() {
  for rows in k4 k2 k0 k1 collective; do
    for entry in device/entry/hip_*"${rows}"*.hip; do
      name=$(basename "$entry" .hip)
      echo "$arch_of_all $name"
      case ${FULL:-0}$name in 1* | 0*_k1 | 0hip_norm_bf16_k0 | 0hip_collective_bf16) echo "gfx950 $name" ;; esac
    done
  done
}
compile() {  # architecture, entry
  local object=$build/$1/$2.o
  [ -e "$object" ] && [ ! "$sources" -nt "$object" ] && return
  mkdir -p "$build/$1"
  "$clang" "${flags[@]}" "--offload-arch=$1" -c "device/entry/$2.hip" -o "$object.new" &&
    mv "$object.new" "$object"
}

start=$SECONDS
export -f compile
export build clang sources
export HIP_FLAGS="${flags[*]}"
plan > "$build/plan"
xargs -P "$jobs" -L 1 bash -c 'read -r -a flags <<< "$HIP_FLAGS"; compile "$0" "$1"' < "$build/plan" || {
  echo "hip_check: a kernel does not compile" >&2
  exit 1
}
echo "hip_check: $(wc -l < "$build/plan") objects in $((SECONDS - start)) s"
exec python3 tools/hip_check.py --version "$version" "$build" < "$build/plan"
