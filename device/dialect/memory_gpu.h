// Memory on a GPU, the part that is the same everywhere: the caller's tensors. Included by
// memory_cuda.h and memory_hip.h behind their words for memory of this rank: load_own, store_own (a
// pack), load_own_word, store_own_word (an element).
#pragma once
#include "device/layout/control.h"

namespace fccl::FCCL_TARGET {

// Any alignment of an element; the last pack of a row may be partial. kWhole: every row is whole
// packs, aligned to 16 bytes.
FCCL_DEVICE bool is_aligned(const char* p) {
  return (reinterpret_cast<uintptr_t>(p) & 15) == 0;
}

template <class T>
FCCL_DEVICE Pack load_elements(const char* from, int count) {
  Pack p = zero_pack();
  FCCL_UNROLL for (int i = 0; i < kElements<T>; ++i) {
    if (i >= count) continue;
    if constexpr (T::bytes == 4) {
      p.w[i] = load_own_word(reinterpret_cast<const uint32_t*>(from) + i);
    } else {
      p.w[i / 2] |=
          static_cast<uint32_t>(load_own_word(reinterpret_cast<const uint16_t*>(from) + i))
          << (i % 2 * 16);
    }
  }
  return p;
}
template <class T>
FCCL_DEVICE void store_elements(char* to, int count, const Pack& p) {
  FCCL_UNROLL for (int i = 0; i < kElements<T>; ++i) {
    if (i >= count) continue;
    if constexpr (T::bytes == 4) {
      store_own_word(reinterpret_cast<uint32_t*>(to) + i, p.w[i]);
    } else {
      store_own_word(reinterpret_cast<uint16_t*>(to) + i,
                     static_cast<uint16_t>(p.w[i / 2] >> (i % 2 * 16)));
    }
  }
}
template <class T, bool kWhole>
FCCL_DEVICE Pack load_user(const char* row, int pack, int elements) {
  const char* from = row + static_cast<int64_t>(pack) * kPackBytes;
  if constexpr (kWhole) {
    return load_own(from);
  } else {
    const int left = elements - pack * kElements<T>;
    return left >= kElements<T> && is_aligned(from) ? load_own(from) : load_elements<T>(from, left);
  }
}
template <class T, bool kWhole>
FCCL_DEVICE void store_user(char* row, int pack, int elements, const Pack& p) {
  char* to = row + static_cast<int64_t>(pack) * kPackBytes;
  [[maybe_unused]] const int left = elements - pack * kElements<T>;
  if constexpr (kWhole) {
    store_own(to, p);
  } else if (left >= kElements<T> && is_aligned(to)) {
    store_own(to, p);
  } else {
    store_elements<T>(to, left, p);
  }
}
// Elements of an fp32 vector (weight, bias) that belong to a pack of kElements<T>.
template <class T, bool kWhole>
FCCL_DEVICE Floats<kElements<T>> load_user_f32(const char* vector, int pack, int elements) {
  constexpr int N = kElements<T>;
  const float* from = reinterpret_cast<const float*>(vector) + static_cast<int64_t>(pack) * N;
  Floats<N> r;
  FCCL_UNROLL for (int i = 0; i < N; ++i) r.v[i] =
      pack * N + i < elements ? load_own_word(from + i) : 0.0f;
  return r;
}

}  // namespace fccl::FCCL_TARGET
