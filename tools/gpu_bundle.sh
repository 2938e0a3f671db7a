#!/bin/bash
# Builds what a host with GPUs needs to test and measure fccl, in gpu-bundle/: the library with its CUDA
# module, the tools, the tests of the kernels (gpu_test) and of the C ABI (gpu_abi), a script that runs
# them. The folder may be moved; nothing but a driver is needed there, and no GPU here.
#   tools/gpu_bundle.sh [architecture, default 90] [folder, default gpu-bundle]
set -euo pipefail
cd "$(dirname "$0")/.."
arch=${1:-90}
out=$(mkdir -p "${2:-gpu-bundle}" && cd "${2:-gpu-bundle}" && pwd)
build=${FCCL_BUNDLE_BUILD:-build-gpu-bundle}
jobs=${FCCL_BUNDLE_JOBS:-2}
nvcc=${NVCC:-$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)}
cuda=$(dirname "$(dirname "$(readlink -f "$nvcc")")")
level=v3
mkdir -p "$build/tests"

# ---- the product, as anybody builds it
cmake -S . -B "$build/product" $(command -v ninja > /dev/null && echo -G Ninja) -DCMAKE_BUILD_TYPE=Release \
  -DFCCL_CUDA=ON "-DFCCL_CUDA_ARCHS=$arch-real" -DFCCL_CPU_LEVELS=$level -DFCCL_TESTS=OFF > "$build/cmake.log"
cmake --build "$build/product" --parallel "$jobs" --target product
cmake --install "$build/product" --prefix "$out" --strip > "$build/install.log"
rm -rf "$out/include" "$out/lib/cmake" "$out/lib/pkgconfig"

# ---- the tests; gpu_test has the product's kernel objects inside
cxx=(g++ -std=c++20 -O2 -Wall -Wextra -ffp-contract=off -I. -Isrc -Iinclude -Itest -isystem "$cuda/include")
stale() {  # newer than all headers, or built again
  [ ! -e "$2" ] || [ "$1" -nt "$2" ] ||
    [ -n "$(find device test/gpu test/harness include src/topology -name '*.h' -newer "$2" -print -quit)" ]
}
jobs_file=$build/jobs
: > "$jobs_file"
object() { echo "$build/tests/$(echo "$1" | tr / _).o"; }
harness=(test/harness/{buffer,generator,kernel_case,kernel_world,matrix,number,ranks,reference}.cc)
for source in test/gpu/*.cc "${harness[@]}" device/entry/cuda_table.cc; do
  if stale "$source" "$(object "$source")"; then
    printf '%q ' "${cxx[@]}" -c "$source" -o "$(object "$source")" >> "$jobs_file"
    printf '2> %q\n' "$(object "$source").log" >> "$jobs_file"
  fi
done
stages=$(object test/gpu/stages.cu)  # a kernel of the tests' own
if stale test/gpu/stages.cu "$stages"; then
  printf '%q ' "$nvcc" -std=c++20 -O2 "-gencode=arch=compute_$arch,code=sm_$arch" -fmad=false -Xcompiler=-ffp-contract=off -I. -Isrc \
    -Iinclude -Itest -c test/gpu/stages.cu -o "$stages" >> "$jobs_file"
  printf '2> %q\n' "$stages.log" >> "$jobs_file"
fi
if ! xargs -P "$jobs" -d '\n' -I{} bash -c '{}' < "$jobs_file"; then
  grep -h 'error' "$build"/tests/*.log | head -20
  exit 1
fi
kernels=("$build"/product/CMakeFiles/fccl_cuda.dir/device/entry/*.cu.o
  "$build"/product/CMakeFiles/fccl_cpu_$level.dir/device/entry/*.o)
objects=("$stages")
for source in $(ls test/gpu/*.cc | grep -v /abi_) device/entry/cuda_table.cc \
  test/harness/{buffer,generator,kernel_case,kernel_world,matrix,number,reference}.cc; do
  objects+=("$(object "$source")")
done
static=(-static-libstdc++ -static-libgcc -s)
runtime=(-L"$cuda/lib64" -lcudart_static -ldl -lrt -lpthread)
g++ "${static[@]}" -o "$out/gpu_test" "${objects[@]}" "${kernels[@]}" "${runtime[@]}"
objects=()
for source in test/gpu/abi_*.cc test/harness/{buffer,generator,matrix,number,ranks,reference}.cc; do
  objects+=("$(object "$source")")
done
g++ "${static[@]}" -o "$out/gpu_abi" "${objects[@]}" -L"$out/lib" -lfccl '-Wl,-rpath,$ORIGIN/lib' "${runtime[@]}"
cp tools/gpu_run.sh "$out/run.sh"
chmod +x "$out/run.sh"
du -sh "$out"
