// A dense [rows, columns] matrix of one element type, in plain memory: what the reference computes
// on and what results are compared with.
#pragma once
#include <cstring>
#include <string>
#include <vector>

#include "harness/number.h"

namespace fccl::test {

class Matrix {
 public:
  Matrix() = default;
  Matrix(TypeKind type, int64_t rows, int64_t columns)
      : type_(type),
        rows_(rows),
        columns_(columns),
        bytes_(static_cast<size_t>(rows * columns * element_bytes(type))) {}

  TypeKind type() const { return type_; }
  int64_t rows() const { return rows_; }
  int64_t columns() const { return columns_; }
  size_t row_bytes() const { return static_cast<size_t>(columns_ * element_bytes(type_)); }
  const char* row(int64_t r) const { return bytes_.data() + static_cast<size_t>(r) * row_bytes(); }
  char* row(int64_t r) { return bytes_.data() + static_cast<size_t>(r) * row_bytes(); }
  bool empty() const { return bytes_.empty(); }

  uint32_t bits(int64_t r, int64_t c) const {
    if (type_ == TypeKind::F32) {
      uint32_t word = 0;
      std::memcpy(&word, row(r) + c * 4, 4);
      return word;
    }
    uint16_t half = 0;
    std::memcpy(&half, row(r) + c * 2, 2);
    return half;
  }
  void set_bits(int64_t r, int64_t c, uint32_t bits) {
    const auto half = static_cast<uint16_t>(bits);
    if (type_ == TypeKind::F32) {
      std::memcpy(row(r) + c * 4, &bits, 4);
    } else {
      std::memcpy(row(r) + c * 2, &half, 2);
    }
  }
  float at(int64_t r, int64_t c) const { return value_of(type_, bits(r, c)); }
  void set(int64_t r, int64_t c, double value) { set_bits(r, c, rounded_bits(type_, value)); }

  // Rows [first, first + count).
  Matrix slice(int64_t first, int64_t count) const {
    Matrix part(type_, count, columns_);
    if (count > 0) std::memcpy(part.row(0), row(first), static_cast<size_t>(count) * row_bytes());
    return part;
  }

 private:
  TypeKind type_ = TypeKind::F32;
  int64_t rows_ = 0;
  int64_t columns_ = 0;
  std::vector<char> bytes_;
};

// Where two matrices of equal shape differ first, or "".
std::string first_difference(const Matrix& got, const Matrix& want, const char* name);

}  // namespace fccl::test
