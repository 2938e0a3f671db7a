// Growing structs at the border: reads what the caller's version of a struct holds, and no byte
// more.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/status.h"

namespace fccl {

Status check_struct(const char* name, const void* given, size_t known_size, uint32_t magic);

// Copies the known part of `given` over the defaults in `*out`. NULL leaves the defaults.
template <class T>
Status read_struct(const char* name, const T* given, uint32_t magic, T* out) {
  if (given == nullptr) return {};
  FCCL_TRY(check_struct(name, given, sizeof(T), magic));
  size_t size;
  std::memcpy(&size, given, sizeof size);
  std::memcpy(static_cast<void*>(out), given, size < sizeof(T) ? size : sizeof(T));
  out->size = sizeof(T);
  return {};
}

// Copies a filled struct out to a caller who may know less of it.
template <class T>
Status write_struct(const char* name, T* to, uint32_t magic, const T& value) {
  if (to == nullptr) return error(Code::InvalidArgument, "%s is NULL", name);
  FCCL_TRY(check_struct(name, to, sizeof(T), magic));
  const size_t size = to->size;
  std::memcpy(static_cast<void*>(to), &value, size < sizeof(T) ? size : sizeof(T));
  to->size = size;
  return {};
}

}  // namespace fccl
