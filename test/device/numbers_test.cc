// Conversions of every instruction-set level, seen through a kernel of one rank: with x = -0 and an
// fp32 bias b, residual_out is b rounded to the tensor's type, nothing else. All 65536 values of
// the 16-bit types; of fp32 every exponent with the mantissas where a rounding could go wrong.
#include "harness/catch.h"
#include "harness/kernel_levels.h"
#include "harness/kernel_world.h"
#include "harness/matrix.h"

namespace fccl::test {
namespace {

// residual_out of one row at one level, as bits: x + bias, rounded. Runs at one rank.
std::vector<uint32_t> rounded_by_kernel(const KernelLevel& level, Matrix x, Matrix bias) {
  KernelWorld::Options options;
  options.ranks = 1;
  options.slot_bytes = 16;
  KernelWorld world(options);
  const TypeKind type = x.type();
  const auto hidden = static_cast<int32_t>(x.columns());
  const KernelId id{OpKind::FusedNorm, AlgoKind::Oneshot, ProtocolKind::Lamport, type, false};
  Matrix weight(type, 1, hidden), h(type, 1, hidden), norm(type, 1, hidden);
  KernelArgs a{};
  a.ex = world.exchange(0, id);
  const auto stride = static_cast<int64_t>(x.row_bytes());
  a.input = {x.row(0), stride};
  a.residual_out = {h.row(0), stride};
  a.norm_out = {norm.row(0), stride};
  a.weight = weight.row(0);
  a.bias = bias.row(0);
  a.flags = kBiasF32;
  a.total_rows = a.rows = 1;
  a.hidden = a.last_hidden = hidden;
  a.packs = static_cast<int32_t>((x.row_bytes() + 15) / 16);
  a.inv_hidden = 1;
  run_kernel(level.find(id, 1), a, 1, 0);
  std::vector<uint32_t> bits;
  for (int64_t c = 0; c < hidden; ++c) bits.push_back(h.bits(0, c));
  return bits;
}

Matrix negative_zeros(TypeKind type, int64_t columns) {
  Matrix m(type, 1, columns);
  for (int64_t c = 0; c < columns; ++c) m.set(0, c, -0.0);
  return m;
}

// Every exponent and sign, with mantissas at and beside each point where 16 bits round.
std::vector<uint32_t> hard_floats() {
  std::vector<uint32_t> all;
  for (uint32_t top = 0; top < 512; ++top) {
    for (uint32_t high = 0; high < 64; ++high) {
      const uint32_t mantissa = high << 17;
      for (const uint32_t low : {0u,
                                 1u,
                                 0x0FFFu,
                                 0x1000u,
                                 0x1001u,
                                 0x1FFFFu,
                                 0x10000u,
                                 0x8000u,
                                 0x7FFFu,
                                 0x8001u,
                                 0x18000u,
                                 0x17FFFu,
                                 0x18001u,
                                 0x3000u,
                                 0x2FFFu,
                                 0x3001u})
        all.push_back(top << 23 | mantissa | low);
    }
  }
  for (uint64_t i = 0; i < 200000; ++i) all.push_back(static_cast<uint32_t>(mix(i, 0xF32)));
  // f16: the last subnormals, half of the smallest, the edge of infinity.
  for (const uint32_t edge :
       {0x33000000u, 0x38800000u, 0x477FF000u, 0x47800000u, 0x7F7FFFFFu, 0x7F7F8000u})
    for (uint32_t i = 0; i < 64; ++i) {
      all.push_back(edge - 32 + i);
      all.push_back((edge - 32 + i) | 0x80000000u);
    }
  return all;
}

}  // namespace

TEST_CASE("numbers: fp32 is rounded to each type as IEEE says, at every level") {
  const std::vector<uint32_t> hard = hard_floats();
  constexpr size_t kAtOnce = 65536;
  for (const KernelLevel& level : kernel_levels()) {
    for (const TypeKind type : {TypeKind::F32, TypeKind::F16, TypeKind::BF16}) {
      INFO(level.name << " " << type_name(type));
      int wrong = 0;
      for (size_t first = 0; first < hard.size(); first += kAtOnce) {
        const size_t count = std::min(kAtOnce, hard.size() - first);
        Matrix bias(TypeKind::F32, 1, static_cast<int64_t>(count));
        for (size_t i = 0; i < count; ++i)
          bias.set_bits(0, static_cast<int64_t>(i), hard[first + i]);
        const auto got =
            rounded_by_kernel(level, negative_zeros(type, static_cast<int64_t>(count)), bias);
        for (size_t i = 0; i < count; ++i) {
          const uint32_t want = rounded_bits(type, value_of(TypeKind::F32, hard[first + i]));
          if (got[i] == want || ++wrong > 5) continue;
          FAIL_CHECK(std::hex << hard[first + i] << " became " << got[i] << ", not " << want);
        }
      }
      CHECK(wrong == 0);
    }
  }
}

TEST_CASE("numbers: all values of the 16-bit types are widened exactly, at every level") {
  for (const KernelLevel& level : kernel_levels()) {
    for (const TypeKind type : {TypeKind::F16, TypeKind::BF16}) {
      INFO(level.name << " " << type_name(type));
      Matrix all(type, 1, 65536), nothing(TypeKind::F32, 1, 65536),
          opposite(TypeKind::F32, 1, 65536);
      for (int64_t i = 0; i < 65536; ++i) {
        all.set_bits(0, i, static_cast<uint32_t>(i));
        nothing.set(0, i, -0.0);
        opposite.set(0, i, -static_cast<double>(all.at(0, i)));
      }
      const auto kept = rounded_by_kernel(level, all, nothing);
      const auto cancelled = rounded_by_kernel(level, all, opposite);
      int wrong = 0;
      for (uint32_t i = 0; i < 65536; ++i) {
        const bool finite = std::abs(value_of(type, i)) <= 3.4e38f;
        wrong += kept[i] != (is_nan(type, i) ? 0x7FFFu : i);
        wrong += cancelled[i] != (finite ? 0u : 0x7FFFu);  // x - x; infinity and NaN give NaN
      }
      CHECK(wrong == 0);
    }
  }
}

TEST_CASE("numbers: the tests' own rounding knows the edges of each format") {
  CHECK(rounded_bits(TypeKind::F16, 65504.0) == 0x7BFF);
  CHECK(rounded_bits(TypeKind::F16, 65519.996) == 0x7BFF);
  CHECK(rounded_bits(TypeKind::F16, 65520.0) == 0x7C00);
  CHECK(rounded_bits(TypeKind::F16, 0x1p-25) == 0);  // half of the smallest: to even
  CHECK(rounded_bits(TypeKind::F16, 0x1.8p-24) == 2);
  CHECK(rounded_bits(TypeKind::F16, -0.0) == 0x8000);
  CHECK(rounded_bits(TypeKind::BF16, 1e30) == 0x714A);
  CHECK(rounded_bits(TypeKind::BF16, 1.00390625) == 0x3F80);  // halfway: to even
  CHECK(rounded_bits(TypeKind::BF16, 1.01171875) == 0x3F82);
  CHECK(rounded_bits(TypeKind::BF16, 0x1p-133) == 1);
  CHECK(rounded_bits(TypeKind::F32, 0x1p-149) == 1);
  CHECK(rounded_bits(TypeKind::F32, 3.5e38) == 0x7F800000);
  CHECK(ulps_apart(TypeKind::BF16, 1.0078125f, 1.0) == 1);
  CHECK(ulps_apart(TypeKind::F32, 1.0f, 1.0 + 0x1p-24) == 0.5);
}

}  // namespace fccl::test
