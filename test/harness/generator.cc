// See generator.h.
#include "harness/generator.h"

#include <cmath>

namespace fccl::test {
namespace {

double ordinary(uint64_t word) {
  return 4 * unit_interval(word) - 2;
}

double wide_range(uint64_t word) {
  const int exponent = static_cast<int>(word % 20) - 10;
  const double value = std::ldexp(1 + unit_interval(mix(word)), exponent);
  return (word >> 40 & 1) != 0 ? -value : value;
}

uint32_t subnormal_bits(TypeKind type, uint64_t word) {
  const uint32_t sign = (word >> 40 & 1) != 0 ? 1u : 0u;
  if (type == TypeKind::F32) return (sign << 31) | static_cast<uint32_t>(word & 0x7FFFFFu);
  const uint32_t fraction = type == TypeKind::F16 ? 0x3FFu : 0x7Fu;
  return (sign << 15) | (static_cast<uint32_t>(word) & fraction);
}

double largest(TypeKind type) {
  return type == TypeKind::F16 ? 65504.0 : 3.38e38;
}

void set_not_finite(Matrix& m, int64_t row, int64_t column, uint64_t word) {
  const bool wide = m.type() == TypeKind::F32;
  switch (word % 211) {
    case 0:  // a whole word of ones: two elements of a 16-bit type
    case 1:
      m.set_bits(row, column, 0xFFFFFFFFu);
      if (!wide && column % 2 != 0) m.set_bits(row, column - 1, 0xFFFFFFFFu);
      break;
    case 2:
      m.set_bits(row, column, wide ? 0xFFFFFFFEu : 0xFFFEu);
      break;
    case 3:  // signalling
      m.set_bits(row,
                 column,
                 m.type() == TypeKind::F32   ? 0x7F800001u
                 : m.type() == TypeKind::F16 ? 0x7C01u
                                             : 0x7F81u);
      break;
    case 4:
      m.set(row, column, INFINITY);
      break;
    case 5:
      m.set(row, column, -INFINITY);
      break;
    default:
      m.set(row, column, ordinary(word));
  }
}

void set_element(Matrix& m, Nature nature, int64_t row, int64_t column, uint64_t word) {
  switch (nature) {
    case Nature::Ordinary:
      return m.set(row, column, ordinary(word));
    case Nature::WideRange:
      return m.set(row, column, wide_range(word));
    case Nature::NegativeZero:  // on all ranks in most lanes; in some lanes ranks differ in sign
      return m.set(row,
                   column,
                   column % 8 == 3   ? (word & 1 ? 0.0 : -0.0)
                   : column % 8 == 5 ? ordinary(word)
                                     : -0.0);
    case Nature::Subnormal:
      return m.set_bits(row, column, subnormal_bits(m.type(), word));
    case Nature::NotFinite:
      return set_not_finite(m, row, column, word);
    case Nature::Huge:
      return m.set(row, column, (word % 5 == 0 ? largest(m.type()) : 1.0) * ordinary(word) / 2);
  }
}

}  // namespace

Nature nature_of(uint64_t launch, int64_t row) {
  return static_cast<Nature>((static_cast<uint64_t>(row) + launch % kInputPeriod) % kNatures);
}

Matrix make_input(TypeKind type, int64_t rows, int64_t columns, uint64_t launch, int rank) {
  Matrix m(type, rows, columns);
  const uint64_t seed = mix(launch % kInputPeriod, static_cast<uint64_t>(rank + 1));
  for (int64_t row = 0; row < rows; ++row) {
    const Nature nature = nature_of(launch, row);
    for (int64_t c = 0; c < columns; ++c)
      set_element(
          m, nature, row, c, mix(seed, static_cast<uint64_t>(row), static_cast<uint64_t>(c)));
  }
  return m;
}

Matrix make_weight(TypeKind type, int64_t columns, uint64_t launch) {
  Matrix m(type, 1, columns);
  for (int64_t c = 0; c < columns; ++c) {
    const uint64_t word = mix(launch % kInputPeriod, 0x77u, static_cast<uint64_t>(c));
    const uint64_t kind = word % 16;
    m.set(0,
          c,
          kind == 0   ? 0.0
          : kind == 1 ? -0.0
          : kind == 2 ? -1.25
                      : 0.5 + unit_interval(mix(word)));
  }
  return m;
}

Matrix make_bias(TypeKind type, int64_t columns, uint64_t launch) {
  Matrix m(type, 1, columns);
  for (int64_t c = 0; c < columns; ++c)
    m.set(0, c, ordinary(mix(launch % kInputPeriod, 0xB1A5u, static_cast<uint64_t>(c))) / 4);
  return m;
}

}  // namespace fccl::test
