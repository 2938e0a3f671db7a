// The cost model of the library's selection, fitted to measurements:
//   us = launches * fixed + pushed * a + local * b, all three not negative, least relative squares.
#pragma once

#include <vector>

namespace perf {

struct CostSample {
  double launches = 1;
  double pushed_mib = 0;
  double local_mib = 0;
  double us = 0;
};

struct CostFit {
  double fixed_us = 0;
  double us_per_mib_pushed = 0;
  double us_per_mib_local = 0;
  double relative_error = 0;  // root mean square
};

CostFit fit_costs(const std::vector<CostSample>& samples);

}  // namespace perf
