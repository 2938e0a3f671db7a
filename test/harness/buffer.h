// A tensor in memory as a caller might have it: any alignment to the element, any row stride, with
// a known byte pattern before, behind and between the rows.
#pragma once
#include "harness/matrix.h"

namespace fccl::test {

struct Placement {
  int64_t offset = 0;  // elements beyond a 64-byte boundary
  int64_t row_pad = 0;  // elements between the rows
};

class Buffer {
 public:
  Buffer() = default;
  // Holds `content`.
  Buffer(const Matrix& content, Placement placement);
  // Holds the byte pattern everywhere: an output.
  static Buffer output(TypeKind type, int64_t rows, int64_t columns, Placement placement);

  char* data() { return base() + offset_; }
  int64_t stride_bytes() const { return stride_; }
  int64_t stride_elements() const { return stride_ / element_bytes(type_); }
  Tensor tensor() { return {data(), stride_}; }
  Matrix content() const;
  void fill(const Matrix& content);

  // What is wrong if the rows should hold `want`, or "". Touched bytes outside the rows are wrong
  // too.
  std::string difference(const Matrix& want, const char* name) const;

 private:
  static constexpr size_t kMargin = 128;
  static constexpr unsigned char kCanary = 0xC5;

  Buffer(TypeKind type, int64_t rows, int64_t columns, Placement placement);
  char* base() { return const_cast<char*>(static_cast<const Buffer*>(this)->base()); }
  const char* base() const;

  TypeKind type_ = TypeKind::F32;
  int64_t rows_ = 0;
  int64_t columns_ = 0;
  int64_t stride_ = 0;
  size_t offset_ = 0;  // of row 0 from base()
  std::vector<char> memory_;
};

}  // namespace fccl::test
