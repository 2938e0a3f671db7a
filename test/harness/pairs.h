// All pairs: a small set of rows in which every two values of two factors meet at least once, as
// far as `allowed` lets any row hold both. Greedy and deterministic.
#pragma once
#include <cstdint>
#include <functional>
#include <vector>

namespace fccl::test {

using FactorRow = std::vector<int>;  // one value index per factor

std::vector<FactorRow> all_pairs(const std::vector<int>& sizes, uint64_t seed,
                                 const std::function<bool(const FactorRow&)>& allowed);

}  // namespace fccl::test
