// ByteWriter and ByteReader: little-endian fields of messages, bounds checked. A reader that runs
// past its bytes, or meets a length above the caller's bound, turns `ok` off for good and yields
// zeros.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace fccl {

class ByteWriter {
 public:
  void u8(uint8_t value) { bytes_.push_back(value); }
  void u16(uint16_t value) { put(value, 2); }
  void u32(uint32_t value) { put(value, 4); }
  void i32(int32_t value) { put(static_cast<uint32_t>(value), 4); }
  void u64(uint64_t value) { put(value, 8); }
  void raw(const void* data, size_t bytes) {
    const uint8_t* first = static_cast<const uint8_t*>(data);
    if (bytes > 0) bytes_.insert(bytes_.end(), first, first + bytes);
  }
  // Length (2 bytes) and at most `bound` bytes of the text; the rest is cut off.
  void text(const std::string& value, size_t bound) {
    const size_t length = value.size() < bound ? value.size() : bound;
    u16(static_cast<uint16_t>(length));
    raw(value.data(), length);
  }
  std::vector<uint8_t>& bytes() { return bytes_; }

 private:
  void put(uint64_t value, int count) {
    for (int i = 0; i < count; i++) bytes_.push_back(static_cast<uint8_t>(value >> (8 * i)));
  }
  std::vector<uint8_t> bytes_;
};

class ByteReader {
 public:
  ByteReader(const uint8_t* data, size_t bytes) : data_(data), bytes_(bytes) {}
  explicit ByteReader(const std::vector<uint8_t>& bytes) : ByteReader(bytes.data(), bytes.size()) {}

  uint8_t u8() { return static_cast<uint8_t>(get(1)); }
  uint16_t u16() { return static_cast<uint16_t>(get(2)); }
  uint32_t u32() { return static_cast<uint32_t>(get(4)); }
  int32_t i32() { return static_cast<int32_t>(get(4)); }
  uint64_t u64() { return get(8); }
  void raw(void* out, size_t bytes) {
    if (!need(bytes)) {
      std::memset(out, 0, bytes);
      return;
    }
    std::memcpy(out, data_ + offset_, bytes);
    offset_ += bytes;
  }
  std::string text(size_t bound) {
    const size_t length = u16();
    if (length > bound) ok_ = false;
    if (!need(length)) return {};
    std::string value(reinterpret_cast<const char*>(data_ + offset_), length);
    offset_ += length;
    return value;
  }
  std::vector<uint8_t> rest() {
    if (!ok_) return {};
    std::vector<uint8_t> value(data_ + offset_, data_ + bytes_);
    offset_ = bytes_;
    return value;
  }

  bool ok() const { return ok_; }
  bool at_end() const { return ok_ && offset_ == bytes_; }
  const uint8_t* data() const { return data_; }
  size_t size() const { return bytes_; }
  size_t offset() const { return offset_; }
  void skip_to(size_t offset) { offset_ = offset; }
  void fail() { ok_ = false; }

 private:
  bool need(size_t bytes) {
    if (ok_ && bytes_ - offset_ >= bytes) return true;
    ok_ = false;
    return false;
  }
  uint64_t get(size_t count) {
    if (!need(count)) return 0;
    uint64_t value = 0;
    for (size_t i = count; i-- > 0;) value = value << 8 | data_[offset_ + i];
    offset_ += count;
    return value;
  }

  const uint8_t* data_;
  size_t bytes_;
  size_t offset_ = 0;
  bool ok_ = true;
};

}  // namespace fccl
