// Guarded buffers: the bytes before and after are a known pattern that no call may touch.
#include <fmt/format.h>

#include <cstring>

#include "fccl_perf/workbench.h"

namespace perf {
namespace {

constexpr unsigned char kGuardByte = 0xc3;

}  // namespace

Buffer::~Buffer() {
  release();
}

void Buffer::release() {
  if (base_ == nullptr) return;
  if (window_ != nullptr) static_cast<void>(fcclCommWindowDeregister(comm_, window_));
  if (comm_ != nullptr) {
    static_cast<void>(fcclMemFree(comm_, base_));
  } else {
    device_->release(base_);
  }
  window_ = nullptr;
  base_ = nullptr;
  capacity_ = 0;
}

Outcome Buffer::reserve(Device* device, fcclComm_t comm, int registered, std::size_t bytes,
                        std::size_t shift) {
  bytes_ = bytes;
  shift_ = shift;
  const std::size_t wanted = bytes + 2 * kGuard + shift;
  if (wanted <= capacity_) return {};
  release();
  device_ = device;
  comm_ = registered > 0 ? comm : nullptr;
  void* pointer = nullptr;
  if (registered == 0) {
    PERF_TRY(device->allocate(&pointer, wanted));
  } else if (fcclMemAlloc(comm, &pointer, wanted) != fcclSuccess) {
    return Outcome::failure(fmt::format("fcclMemAlloc: {}", fcclGetLastError(comm)));
  }
  base_ = static_cast<char*>(pointer);
  capacity_ = wanted;
  if (registered == 2 && fcclCommWindowRegister(comm, base_, wanted, &window_) != fcclSuccess) {
    return Outcome::failure(fmt::format("fcclCommWindowRegister: {}", fcclGetLastError(comm)));
  }
  return {};
}

Outcome Buffer::fill(const void* content) {
  const std::vector<unsigned char> guard(kGuard + shift_, kGuardByte);
  PERF_TRY(device_->upload(base_, guard.data(), guard.size()));
  PERF_TRY(device_->upload(data(), content, bytes_));
  return device_->upload(data() + bytes_, guard.data(), kGuard);
}

Outcome Buffer::fill_canary() {
  const std::vector<char> canary(bytes_, kCanary);
  return fill(canary.data());
}

Outcome Buffer::download(std::vector<char>& content, bool& guards_intact) const {
  std::vector<unsigned char> guard(2 * kGuard + shift_);
  content.resize(bytes_);
  PERF_TRY(device_->download(content.data(), data(), bytes_));
  PERF_TRY(device_->download(guard.data(), base_, kGuard + shift_));
  PERF_TRY(device_->download(guard.data() + kGuard + shift_, data() + bytes_, kGuard));
  guards_intact = true;
  for (const unsigned char byte : guard) guards_intact = guards_intact && byte == kGuardByte;
  return {};
}

}  // namespace perf
