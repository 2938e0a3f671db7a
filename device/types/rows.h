// Rows: a view of a [rows, hidden] tensor of the caller. A Row is small and held by value, so that
// a step over its packs keeps it in registers.
#pragma once
#include "device/dialect/dialect.h"

namespace fccl::FCCL_TARGET {

// Bytes before a row. Whole rows: row and stride have 32 bits (the host sees to it).
template <bool kWhole>
FCCL_DEVICE int64_t row_offset(const Tensor& tensor, int64_t row) {
  if constexpr (kWhole && FCCL_SHORT_STRIDES)
    return static_cast<int64_t>(static_cast<uint64_t>(static_cast<uint32_t>(row)) *
                                static_cast<uint32_t>(tensor.stride));
  return row * tensor.stride;
}

// Where a row begins: a pointer that a step keeps in a register (a store to memory could change
// what an object elsewhere holds), or computed where it is used, from arguments that cost none.
#if FCCL_ROW_POINTERS
template <bool kWhole>
class RowPlace {
 public:
  FCCL_DEVICE RowPlace(const Tensor& tensor, int64_t row)
      : ptr_(tensor.ptr + row_offset<kWhole>(tensor, row)) {}
  FCCL_DEVICE char* ptr() const { return ptr_; }
  FCCL_DEVICE uint64_t place() const { return reinterpret_cast<uint64_t>(ptr_); }

 private:
  char* ptr_;
};
#else
template <bool kWhole>
class RowPlace {
 public:
  FCCL_DEVICE RowPlace(const Tensor& tensor, int64_t row) : tensor_(&tensor), row_(row) {}
  FCCL_DEVICE char* ptr() const { return tensor_->ptr + row_offset<kWhole>(*tensor_, row_); }
  FCCL_DEVICE uint64_t place() const { return 0; }

 private:
  const Tensor* tensor_;
  int64_t row_;
};
#endif

template <class T, bool kWhole>
class Row {
 public:
  FCCL_DEVICE Row(const Tensor& tensor, int64_t row, int elements)
      : place_(tensor, row), elements_(elements) {}
  FCCL_DEVICE Pack load(int pack) const {
    return load_user<T, kWhole>(place_.ptr(), pack, elements_);
  }
  FCCL_DEVICE void store(int pack, Pack p) const {
    store_user<T, kWhole>(place_.ptr(), pack, elements_, p);
  }
  FCCL_DEVICE uint64_t place() const { return place_.place(); }

 private:
  RowPlace<kWhole> place_;
  int elements_;
};

template <class T, bool kWhole>
class Rows {
 public:
  FCCL_DEVICE Rows(const Tensor& tensor, int hidden, int64_t last_row, int last_hidden)
      : tensor_(tensor), hidden_(hidden), last_row_(last_row), last_hidden_(last_hidden) {}
  FCCL_DEVICE Row<T, kWhole> row(int64_t row) const { return {tensor_, row, elements(row)}; }
  FCCL_DEVICE Pack load(int64_t row, int pack) const { return this->row(row).load(pack); }
  FCCL_DEVICE void store(int64_t row, int pack, Pack p) const { this->row(row).store(pack, p); }

 private:
  FCCL_DEVICE int elements(int64_t row) const {
    return kWhole || row != last_row_ ? hidden_ : last_hidden_;
  }

  Tensor tensor_;
  int hidden_;
  int64_t last_row_;
  int last_hidden_;
};

}  // namespace fccl::FCCL_TARGET
