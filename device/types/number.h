// Element types of tensors. Storage only: arithmetic is fp32, see Floats in the dialect.
#pragma once
#include "device/layout/args.h"

namespace fccl {

struct F32 {
  static constexpr TypeKind kind = TypeKind::F32;
  static constexpr int bytes = 4;
};
struct F16 {
  static constexpr TypeKind kind = TypeKind::F16;
  static constexpr int bytes = 2;
};
struct BF16 {
  static constexpr TypeKind kind = TypeKind::BF16;
  static constexpr int bytes = 2;
};

constexpr int kPackBytes = 16;
template <class T>
constexpr int kElements = kPackBytes / T::bytes;  // of a pack

constexpr uint32_t kSentinel = 0xFFFFFFFFu;  // a NaN in every type; armed memory holds nothing else
constexpr uint32_t kLargestSent = 0xFFFFFFFEu;

}  // namespace fccl
