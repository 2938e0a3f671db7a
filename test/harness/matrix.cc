// See matrix.h.
#include "harness/matrix.h"

#include <cstdio>

namespace fccl::test {

std::string first_difference(const Matrix& got, const Matrix& want, const char* name) {
  if (got.rows() != want.rows() || got.columns() != want.columns())
    return std::string(name) + ": shape";
  for (int64_t row = 0; row < got.rows(); ++row) {
    if (got.row_bytes() == 0 || std::memcmp(got.row(row), want.row(row), got.row_bytes()) == 0)
      continue;
    for (int64_t c = 0; c < got.columns(); ++c) {
      if (got.bits(row, c) == want.bits(row, c)) continue;
      char text[160];
      std::snprintf(text,
                    sizeof text,
                    "%s[%lld, %lld] has bits %08x (%.9g), expected %08x (%.9g)",
                    name,
                    static_cast<long long>(row),
                    static_cast<long long>(c),
                    got.bits(row, c),
                    static_cast<double>(got.at(row, c)),
                    want.bits(row, c),
                    static_cast<double>(want.at(row, c)));
      return text;
    }
  }
  return "";
}

}  // namespace fccl::test
