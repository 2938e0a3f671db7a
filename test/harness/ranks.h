// Ranks over the C ABI: threads of this process, or processes that are started anew. One body
// serves both: it gets a communicator that is ready and answers with what went wrong, or "".
#pragma once
#include <fccl/fccl.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace fccl::test {

// A bound in time that fccl promises, with allowance for sanitizers (or FCCL_TEST_SLOW_FACTOR).
int64_t bound_ms(int64_t ms);
int64_t now_ms();  // the same clock in all processes of a host

using Variables = std::vector<std::pair<std::string, std::string>>;

// Sets variables of the environment for a scope, and hides all other FCCL_ ones. Made before
// threads start, gone after they ended.
class Environment {
 public:
  explicit Environment(const Variables& variables);
  ~Environment();
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

 private:
  Variables saved_;
};

struct RanksOptions {
  int ranks = 2;
  fcclConfig config = FCCL_CONFIG_INITIALIZER;
  Variables environment;
};
// Deadlines that end a test before CTest does.
RanksOptions ranks_of(int ranks, Variables environment = {});

using RankBody = std::function<std::string(fcclComm_t comm, int rank)>;

// Init, body and destroy on one thread per rank. The errors, one a line, or "".
std::string as_threads(const RanksOptions& options, const RankBody& body);

fcclUniqueId new_id();
// "" for fcclSuccess, else the code's name, `what` and the last error's text.
std::string error_text(fcclResult_t result, const char* what, fcclComm_t comm = nullptr);
#define FCCL_EXPECT_OK(call, comm)                                              \
  do {                                                                          \
    const std::string error_ = ::fccl::test::error_text((call), #call, (comm)); \
    if (!error_.empty()) return error_;                                         \
  } while (false)

}  // namespace fccl::test
