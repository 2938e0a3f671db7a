// Strangers: connections to a rendezvous that have no secret, or know nothing to do with it.
#pragma once
#include <vector>

#include "base/config.h"
#include "bootstrap/secret.h"
#include "bootstrap/socket.h"
#include "bootstrap/unique_id.h"

namespace fccl::test {

// Every door of the rendezvous of an id: the unix socket and the TCP addresses.
std::vector<Endpoint> doors_of(const uint8_t* id);

GuardedFd connect_to(const Endpoint& door);
void send_to(const GuardedFd& fd, const void* data, size_t bytes);

// The hello of an honest rank 1 of 2 that has this secret.
std::vector<uint8_t> client_hello(const Secret& secret);

// Five kinds in turn: silent, slow, garbage, too much, a replayed hello.
void behave(const GuardedFd& fd, int kind, const std::vector<uint8_t>& replay);

}  // namespace fccl::test
