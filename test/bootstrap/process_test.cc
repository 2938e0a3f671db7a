// Ranks as processes: separate hosts, deaths at random moments, forked children, no network.
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <random>

#include "bootstrap/interfaces.h"
#include "bootstrap/process.h"

using namespace fccl;

namespace {

ProcessOrder order_of(const IdBytes& id, Scenario scenario, int rank, int ranks) {
  ProcessOrder order;
  order.scenario = scenario;
  std::memcpy(order.id, id.bytes, sizeof order.id);
  order.rank = rank;
  order.ranks = ranks;
  order.timeout_ms = bound_ms(5000);
  return order;
}

std::vector<ProcessReport> run_all(const std::vector<ProcessOrder>& orders) {
  std::vector<RankProcess> processes;
  for (const ProcessOrder& order : orders) processes.push_back(start_process(order));
  std::vector<ProcessReport> reports(orders.size());
  for (size_t i = 0; i < orders.size(); i++) CHECK(finish_process(processes[i], reports[i]));
  return reports;
}

void check_all_ok(const std::vector<ProcessReport>& reports) {
  for (const ProcessReport& report : reports) {
    INFO(report.text);
    CHECK(report.code == 0);
  }
}

// One of four is killed after `delay_us`; what the others say.
void kill_one(int delay_us, int victim) {
  const IdBytes id = make_id(plain_config());
  const int64_t init_ms = bound_ms(2000);
  std::vector<RankProcess> processes;
  for (int rank = 0; rank < 4; rank++) {
    ProcessOrder order = order_of(id, Scenario::BarrierForever, rank, 4);
    order.timeout_ms = init_ms;
    processes.push_back(start_process(order));
  }
  const int64_t started_us = now_us();
  usleep(static_cast<useconds_t>(delay_us));
  REQUIRE(kill(processes[static_cast<size_t>(victim)].pid, SIGKILL) == 0);
  const int64_t killed_us = now_us();
  for (int rank = 0; rank < 4; rank++) {
    ProcessReport report;
    const bool told = finish_process(processes[static_cast<size_t>(rank)], report);
    if (rank == victim) continue;
    INFO("killed rank " << victim << " after " << delay_us << " us; rank " << rank << ": "
                        << report.text);
    REQUIRE(told);
    CHECK(report.code != 0);
    CHECK(report.blamed == victim);
    CHECK(contains(report.text, "rank " + std::to_string(victim)));
    const bool before_hello = report.code == static_cast<int32_t>(Code::Timeout);
    if (before_hello) CHECK(contains(report.text, "did not come"));
    const int64_t took_ms = (report.when_us - (before_hello ? started_us : killed_us)) / 1000;
    CHECK(took_ms <= (before_hello ? init_ms : 0) + bound_ms(1000));
  }
}

}  // namespace

TEST_CASE("four processes meet and leave") {
  const IdBytes id = make_id(plain_config());
  std::vector<ProcessOrder> orders;
  for (int rank = 0; rank < 4; rank++)
    orders.push_back(order_of(id, Scenario::JoinAndLeave, rank, 4));
  const std::vector<ProcessReport> reports = run_all(orders);
  check_all_ok(reports);
  for (const ProcessReport& report : reports) CHECK(report.unix_peers == 4);
}

TEST_CASE("B08 processes that look like two hosts do not share unix sockets") {
  Result<std::vector<Address>> addresses = local_addresses(plain_config());
  REQUIRE(addresses.ok());
  if (addresses->empty()) return;  // nothing joins two hosts without a network
  const IdBytes id = make_id(plain_config());
  std::vector<ProcessOrder> orders;
  for (int rank = 0; rank < 4; rank++) {
    orders.push_back(order_of(id, Scenario::JoinAndLeave, rank, 4));
    std::snprintf(orders.back().hostid, sizeof orders.back().hostid, "host%d", rank / 2);
  }
  const std::vector<ProcessReport> reports = run_all(orders);
  check_all_ok(reports);
  for (const ProcessReport& report : reports) CHECK(report.unix_peers == 2);
}

TEST_CASE("a killed rank is named: at the init deadline before its hello, within a second after") {
  std::mt19937 random(7);
  for (int round = 0; round < (kPatience > 1 ? 3 : 8); round++)
    kill_one(static_cast<int>(random() % (kPatience * 40000)), static_cast<int>(random() % 4));
}

TEST_CASE("a killed rank is named, at 50 random moments", "[slow]") {
  std::mt19937 random(11);
  for (int round = 0; round < 50; round++)
    kill_one(static_cast<int>(random() % (kPatience * 60000)), static_cast<int>(random() % 4));
}

TEST_CASE("B03 ranks meet in a network namespace without any interface") {
  ProcessOrder order;
  order.scenario = Scenario::EmptyNetwork;
  RankProcess process = start_process(order);
  ProcessReport report;
  REQUIRE(finish_process(process, report));
  if (report.code == static_cast<int32_t>(Code::Unsupported)) {
    WARN("skipped: " << report.text);
    return;
  }
  INFO(report.text);
  CHECK(report.code == 0);
}

TEST_CASE("a forked child holds none of the parent's sockets, and may not use its group") {
  const Groups groups = join_ranks(2);
  const IdBytes open_id = make_id(plain_config());
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    int sockets = 0;
    for (int fd = 3; fd < 1024; fd++) {
      struct stat info {};
      if (fstat(fd, &info) == 0 && S_ISSOCK(info.st_mode)) sockets++;
    }
    const bool refused = groups[0]->barrier(limit_ms(1000), "x").code() == Code::InvalidUsage &&
                         groups[0]->leave(limit_ms(1000)).code() == Code::InvalidUsage &&
                         !groups[0]->owned_by_this_process();
    _exit(sockets == 0 && refused ? 0 : 1);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
  // The parent's are whole.
  for (const Status& one : status_on_all(
           groups, [](Group& group) { return group.barrier(limit_ms(bound_ms(2000)), "x"); }))
    CHECK(one.ok());
  leave_all(groups);
  leave_all(groups_of(join_setups(open_id, setups_of(2))));
}

#if !defined(__SANITIZE_THREAD__)  // it does not let a forked child start threads
TEST_CASE("the death of a process is seen although its forked child lives on") {
  Config config = plain_config();
  const IdBytes id = make_id(config);
  int ready[2];
  REQUIRE(pipe2(ready, O_CLOEXEC) == 0);
  const pid_t rank1 = fork();
  REQUIRE(rank1 >= 0);
  if (rank1 == 0) {
    RankSetup setup = setups_of(2)[1];
    const Joined joined = join_one(id, setup);
    const pid_t grandchild = fork();
    if (grandchild == 0) {
      // Outlives its parent, with all that it inherited, until rank 0 has seen the death.
      usleep(static_cast<useconds_t>(bound_ms(1500) * 1000));
      _exit(0);
    }
    const char byte = joined.status.ok() ? 'y' : 'n';
    if (write(ready[1], &byte, 1) != 1) _exit(1);
    pause();
    _exit(0);
  }
  const Joined joined = join_one(id, setups_of(2)[0]);
  INFO(joined.status.text());
  REQUIRE(joined.status.ok());
  char byte = 0;
  REQUIRE(read(ready[0], &byte, 1) == 1);
  REQUIRE(byte == 'y');
  REQUIRE(kill(rank1, SIGKILL) == 0);
  const Deadline since = Deadline::after_ms(0);
  const Status status = joined.group->barrier(limit_ms(bound_ms(5000)), "x");
  CHECK(since.elapsed_ms() < bound_ms(1000));
  CHECK(status.rank() == 1);
  CHECK(contains(status.text(), "closed its connection"));
  int ended = 0;
  REQUIRE(waitpid(rank1, &ended, 0) == rank1);
  close(ready[0]);
  close(ready[1]);
}

TEST_CASE("the death of the process that made the id is told to those who wait") {
  int ends[2];
  REQUIRE(pipe2(ends, O_CLOEXEC) == 0);
  const pid_t maker = fork();
  REQUIRE(maker >= 0);
  if (maker == 0) {
    uint8_t bytes[kUniqueIdBytes];
    if (!create_unique_id(plain_config(), bytes).ok()) _exit(1);
    if (write(ends[1], bytes, sizeof bytes) != sizeof bytes) _exit(1);
    pause();
    _exit(0);
  }
  IdBytes id;
  REQUIRE(read(ends[0], id.bytes, sizeof id.bytes) == sizeof id.bytes);
  close(ends[0]);
  close(ends[1]);
  Joined joined;
  std::thread waiter([&] { joined = join_one(id, setups_of(2)[0]); });
  usleep(100000);
  REQUIRE(kill(maker, SIGKILL) == 0);
  waiter.join();
  int status = 0;
  REQUIRE(waitpid(maker, &status, 0) == maker);
  INFO(joined.status.text());
  CHECK(joined.status.code() == Code::RemoteError);
  CHECK(contains(joined.status.text(), "pid " + std::to_string(maker)));
  CHECK(joined.ms < 100 + bound_ms(1000));
  // And those who come later find nobody.
  const Joined late = join_one(id, setups_of(2)[1]);
  CHECK(late.status.code() == Code::InvalidUsage);
  CHECK(contains(late.status.text(), "has ended"));
}
#endif
