#include "bootstrap/process.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

#include "bootstrap/unique_id.h"

namespace fccl {
namespace {

constexpr int kOrderFd = 100;
constexpr int kReportFd = 101;

void set_text(ProcessReport& report, const Status& status) {
  report.code = static_cast<int32_t>(status.code());
  report.blamed = status.rank();
  std::snprintf(report.text, sizeof report.text, "%s", status.text().c_str());
}

Status play_rank(const ProcessOrder& order, ProcessReport& report) {
  RankSetup setup;
  setup.rank = order.rank;
  setup.ranks = order.ranks;
  setup.timeout_ms = order.timeout_ms;
  setup.config.hostid = order.hostid;
  setup.config.comm_id = order.comm_id;
  setup.config.comm_secret_file = order.secret_file;
  IdBytes id;
  std::memcpy(id.bytes, order.id, sizeof order.id);
  if (order.comm_id[0] != 0) FCCL_TRY(create_unique_id(setup.config, id.bytes));
  const Joined joined = join_one(id, setup);
  FCCL_TRY(joined.status);
  report.joined_us = now_us();
  Group& group = *joined.group;
  for (int peer = 0; peer < group.ranks(); peer++)
    report.unix_peers += group.same_host_socket(peer) ? 1 : 0;
  FCCL_TRY(group.barrier(limit_ms(order.timeout_ms), "first"));
  while (order.scenario == Scenario::BarrierForever) {
    FCCL_TRY(group.barrier(limit_ms(order.timeout_ms), "next"));
    usleep(200);
  }
  return group.leave(limit_ms(order.timeout_ms));
}

Status play_empty_network() {
  if (unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0 && unshare(CLONE_NEWNET) != 0)
    return error(Code::Unsupported, "no network namespace may be made here");
  const Config config = plain_config();
  IdBytes id;
  FCCL_TRY(create_unique_id(config, id.bytes));
  FCCL_TRY_ASSIGN(decoded, decode_unique_id(id.bytes));
  if (!decoded.addresses.empty()) return error(Code::InternalError, "the network is not empty");
  const std::vector<Joined> joined = join_setups(id, setups_of(3));
  for (const Joined& one : joined) FCCL_TRY(one.status);
  return {};
}

bool read_whole(int fd, void* data, size_t bytes) {
  uint8_t* cursor = static_cast<uint8_t*>(data);
  while (bytes > 0) {
    const ssize_t got = read(fd, cursor, bytes);
    if (got <= 0) return false;
    cursor += got;
    bytes -= static_cast<size_t>(got);
  }
  return true;
}

}  // namespace

int64_t now_us() {
  return std::chrono::duration_cast<std::chrono::microseconds>(
             Deadline::Clock::now().time_since_epoch())
      .count();
}

RankProcess start_process(const ProcessOrder& order) {
  int orders[2];
  int reports[2];
  REQUIRE(pipe2(orders, O_CLOEXEC) == 0);
  REQUIRE(pipe2(reports, O_CLOEXEC) == 0);
  const char* const arguments[] = {"rank", "a process that plays one rank", nullptr};
  const pid_t pid = fork();
  REQUIRE(pid >= 0);
  if (pid == 0) {
    const int quiet = open("/dev/null", O_WRONLY);
    if (dup2(quiet, 1) < 0 || dup2(orders[0], kOrderFd) < 0 || dup2(reports[1], kReportFd) < 0)
      _exit(101);
    execv("/proc/self/exe", const_cast<char* const*>(arguments));
    _exit(102);
  }
  close(orders[0]);
  close(reports[1]);
  const bool ordered = write(orders[1], &order, sizeof order) == sizeof order;
  close(orders[1]);
  REQUIRE(ordered);
  return {pid, UniqueFd(reports[0])};
}

bool finish_process(RankProcess& process, ProcessReport& report) {
  const bool told = read_whole(process.report.get(), &report, sizeof report);
  int status = 0;
  REQUIRE(waitpid(process.pid, &status, 0) == process.pid);
  process.report.reset();
  return told;
}

// Not a test of its own: what start_process() runs.
TEST_CASE("a process that plays one rank", "[.]") {
  struct stat info {};
  if (fstat(kOrderFd, &info) != 0 || !S_ISFIFO(info.st_mode)) return;
  (void)fcntl(kOrderFd, F_SETFD, FD_CLOEXEC);
  (void)fcntl(kReportFd, F_SETFD, FD_CLOEXEC);
  ProcessOrder order;
  REQUIRE(read_whole(kOrderFd, &order, sizeof order));
  ProcessReport report;
  const Status status =
      order.scenario == Scenario::EmptyNetwork ? play_empty_network() : play_rank(order, report);
  set_text(report, status);
  report.when_us = now_us();
  REQUIRE(write(kReportFd, &report, sizeof report) == sizeof report);
}

}  // namespace fccl
