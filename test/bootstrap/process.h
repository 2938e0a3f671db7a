// Ranks as processes: this very program is started anew (fork and exec, so that it works under
// every sanitizer) and told over a pipe what to do; it answers over another pipe and exits.
#pragma once
#include <sys/types.h>

#include <string>

#include "base/unique_fd.h"
#include "bootstrap/ranks.h"

namespace fccl {

enum class Scenario : int32_t {
  JoinAndLeave,  // join, one barrier, leave
  BarrierForever,  // join, then barriers until one fails
  EmptyNetwork,  // alone: a new network namespace, 3 ranks as threads in it
};

struct ProcessOrder {
  Scenario scenario = Scenario::JoinAndLeave;
  uint8_t id[kUniqueIdBytes] = {};
  int32_t rank = 0;
  int32_t ranks = 0;
  int64_t timeout_ms = 5000;
  char hostid[32] = {};
  char comm_id[64] = {};
  char secret_file[128] = {};
};

struct ProcessReport {
  int32_t code = 0;
  int32_t blamed = -1;
  int64_t when_us = 0;  // steady clock, the same for all processes of a host
  int64_t joined_us = 0;  // 0 if it did not join
  int32_t unix_peers = 0;
  char text[512] = {};
};

struct RankProcess {
  pid_t pid = -1;
  UniqueFd report;
};

int64_t now_us();
RankProcess start_process(const ProcessOrder& order);
// Waits for its end. False if it ended without a report (killed).
bool finish_process(RankProcess& process, ProcessReport& report);

}  // namespace fccl
