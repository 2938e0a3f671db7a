// Descriptors over unix stream sockets. A descriptor travels with the first byte of a frame; the
// kernel hands descriptors out in the order of the bytes, so the k-th frame that announces one owns
// the k-th that arrived. The receiver opts in per read: before the peer has proved itself nothing
// is taken, and the kernel drops what was sent along.
#pragma once
#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <deque>

#include "base/unique_fd.h"

namespace fccl {

// One send without blocking or signal, with `fd` alongside if it is not -1. As send(2).
ssize_t send_bytes(int socket, const uint8_t* data, size_t bytes, int fd);

// One read without blocking. With `fds` null, descriptors are refused. `lost` is set if the kernel
// could not install one (this process is out of descriptors). As recv(2).
ssize_t receive_bytes(int socket, uint8_t* data, size_t bytes, std::deque<UniqueFd>* fds,
                      bool* lost);

}  // namespace fccl
