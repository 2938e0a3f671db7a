// The parts of the GPU test program: each returns how many things were wrong.
#pragma once
#include <cstdint>

namespace fccl::test {

int check_exact(int devices, int groups, uint64_t seed, int most_ranks);
int check_collectives(int devices, int groups, uint64_t seed);
int check_failures(int devices);
// Many launches of random shapes with random delays, eager and in graphs, for about `seconds`.
// `graphs_first`: ranks that share a GPU make their graphs before anything of a round runs.
int check_chaos(int devices, double seconds, uint64_t seed, bool graphs_first = true);
// Prints and writes the table of latencies. `quick`: a few shapes.
int run_bench(int devices, bool quick, const char* csv_path);
// The same with stages of the kernel left out: what bounds a shape.
int run_stages(int devices);
// When the warps of the kernel get how far.
int run_timeline(int devices);

}  // namespace fccl::test
