// What a rank prepares before it meets the others: open listeners for its peers, and the card that
// tells them where and who it is.
#pragma once
#include <string>
#include <vector>

#include "base/config.h"
#include "base/status.h"
#include "bootstrap/messages.h"
#include "bootstrap/socket.h"

namespace fccl {

struct LocalRank {
  RankCard card;
  std::vector<Listener> listeners;
};

// One unix listener with a random name, and one TCP listener per chosen address. Fails only if none
// can be opened, or a setting is wrong. The card is filled as far as possible even then.
Status open_local_rank(const Config& config, int rank, LocalRank& out);

// Process id, host name and host token; no sockets.
RankCard identity_card(const Config& config);

// "rank 2 (pid 1234 on host X)"
std::string describe_rank(int rank, const RankCard& card);

}  // namespace fccl
