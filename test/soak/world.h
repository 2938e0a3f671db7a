// Plays a round: its ranks as threads of this process, or as processes that are started anew.
#pragma once
#include <string>

#include "plan.h"

namespace fccl::test {

// What went wrong, one error a line, or "". Threads must leave nothing behind either.
std::string play_round(const RoundPlan& plan);

// The life of a rank that play_round started as a process: reads its ids from standard input,
// writes its errors to standard output. What main returns.
int play_rank(const RoundPlan& plan, int rank);

}  // namespace fccl::test
