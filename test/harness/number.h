// Number formats of the tests, written apart from the kernels' own: decoding by the definition of
// the format, rounding by exact scaling in double. The scalar reference and all checks of results
// stand on these, so nothing here may include device/types or device/dialect.
#pragma once
#include <cstddef>
#include <cstdint>

#include "device/layout/args.h"

namespace fccl::test {

const char* type_name(TypeKind type);

// The value of the element with these bits (the low 16 for the 16-bit types).
float value_of(TypeKind type, uint32_t bits);

// Rounded to nearest, ties to even; overflow gives infinity; a NaN is 0x7FFF or 0x7FFFFFFF.
uint32_t rounded_bits(TypeKind type, double value);

bool is_nan(TypeKind type, uint32_t bits);

// The unit in the last place of a finite value in `type`.
double unit_of(TypeKind type, double value);

// |got - exact| in units of the last place that `exact` has in `type`. Two NaNs or two equal
// infinities differ by 0, any other pair that is not finite by infinity.
double ulps_apart(TypeKind type, float got, double exact);

// Deterministic random words: the same for equal arguments, whatever the order of asking.
uint64_t mix(uint64_t a, uint64_t b = 0, uint64_t c = 0, uint64_t d = 0);
// Uniform in [0, 1).
double unit_interval(uint64_t word);

}  // namespace fccl::test
