// See buffer.h.
#include "harness/buffer.h"

#include <algorithm>
#include <cstdint>

namespace fccl::test {

Buffer::Buffer(TypeKind type, int64_t rows, int64_t columns, Placement placement)
    : type_(type),
      rows_(rows),
      columns_(columns),
      stride_((columns + placement.row_pad) * element_bytes(type)),
      offset_(kMargin + static_cast<size_t>(placement.offset * element_bytes(type))),
      memory_(offset_ + static_cast<size_t>(rows * stride_) + kMargin + 64,
              static_cast<char>(kCanary)) {}

Buffer::Buffer(const Matrix& content, Placement placement)
    : Buffer(content.type(), content.rows(), content.columns(), placement) {
  fill(content);
}

Buffer Buffer::output(TypeKind type, int64_t rows, int64_t columns, Placement placement) {
  return Buffer(type, rows, columns, placement);
}

const char* Buffer::base() const {
  const auto address = reinterpret_cast<uintptr_t>(memory_.data());
  return memory_.data() + (64 - address % 64) % 64;
}

void Buffer::fill(const Matrix& content) {
  if (content.row_bytes() == 0) return;  // an absent tensor
  for (int64_t row = 0; row < rows_; ++row)
    std::memcpy(data() + row * stride_, content.row(row), content.row_bytes());
}

Matrix Buffer::content() const {
  Matrix content(type_, rows_, columns_);
  if (content.row_bytes() == 0) return content;
  for (int64_t row = 0; row < rows_; ++row)
    std::memcpy(content.row(row), base() + offset_ + row * stride_, content.row_bytes());
  return content;
}

std::string Buffer::difference(const Matrix& want, const char* name) const {
  const auto untouched = [](const char* from, const char* to) {
    return std::all_of(from, to, [](char byte) { return byte == static_cast<char>(kCanary); });
  };
  const char* first = base() + offset_;
  const size_t used = want.row_bytes();
  for (int64_t row = 0; row < rows_; ++row) {
    const char* at = first + row * stride_;
    if (used != 0 && std::memcmp(at, want.row(row), used) != 0)
      return first_difference(content(), want, name);
    if (!untouched(at + used, at + stride_))
      return std::string(name) + ": bytes between rows were written";
  }
  const char* end = memory_.data() + memory_.size();
  if (!untouched(memory_.data(), first))
    return std::string(name) + ": bytes before the tensor were written";
  if (!untouched(first + rows_ * stride_, end))
    return std::string(name) + ": bytes behind the tensor were written";
  return "";
}

}  // namespace fccl::test
