// Rows: a view of a [rows, hidden] tensor of the caller, one pack at a time.
#pragma once
#include "device/dialect/dialect.h"

namespace fccl::FCCL_TARGET {

template <class T, bool kWhole>
class Rows {
 public:
  FCCL_DEVICE Rows(const Tensor& tensor, int hidden, int64_t last_row, int last_hidden)
      : ptr_(tensor.ptr), stride_(tensor.stride), hidden_(hidden), last_row_(last_row),
        last_hidden_(last_hidden) {}
  FCCL_DEVICE bool present() const { return ptr_ != nullptr; }
  FCCL_DEVICE char* base() const { return ptr_; }
  FCCL_DEVICE Pack load(int64_t row, int pack) const {
    return load_user<T, kWhole>(ptr_ + row * stride_, pack, elements(row));
  }
  FCCL_DEVICE void store(int64_t row, int pack, Pack p) const {
    store_user<T, kWhole>(ptr_ + row * stride_, pack, elements(row), p);
  }

 private:
  FCCL_DEVICE int elements(int64_t row) const { return kWhole || row != last_row_ ? hidden_ : last_hidden_; }

  char* ptr_;
  int64_t stride_;
  int hidden_;
  int64_t last_row_;
  int last_hidden_;
};

}  // namespace fccl::FCCL_TARGET
