// Limits that the wire format and the kernels share.
#pragma once

namespace fccl {

constexpr int kMaxRanks = 16;  // ranks of one communicator

}  // namespace fccl
