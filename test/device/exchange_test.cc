// The control line: blocks of launches read it, add to it and look at what they found, in any
// order.
#include "device/protocol/exchange.h"

#include <algorithm>
#include <memory>
#include <random>
#include <vector>

#include "harness/catch.h"

namespace fccl::test {
namespace {

namespace target = FCCL_TARGET;

// One rank that has nobody to tell.
struct Window {
  explicit Window(uint64_t epoch) : control(std::make_unique<Control>()) {
    control->line = line_of(epoch);
    args.ranks = 1;
    args.window[0] = reinterpret_cast<char*>(control.get());
    args.record = &record;
  }
  std::unique_ptr<Control> control;
  FailureRecord record{};
  ExchangeArgs args{};
};

struct RunningBlock {
  RunningBlock(const Window& window, int id, int count)
      : block(CpuLaunch{.block = id, .blocks = count}), exchange(window.args) {
    usable = exchange.enter();
  }
  target::Block block;
  target::Exchange<0> exchange;
  bool usable = false;
};

constexpr uint64_t kLastEpoch = (uint64_t{1} << 47) - 2;

}  // namespace

TEST_CASE("exchange: generations follow each other at every wrap of a part of the counter") {
  for (const int bits : {1, 8, 16, 31, 32, 33, 46}) {
    for (uint64_t epoch = (uint64_t{1} << bits) - 2; epoch < (uint64_t{1} << bits) + 3; ++epoch) {
      CHECK(generation_of(epoch) == epoch % 3);
      CHECK(epoch_of(line_of(epoch)) == epoch);
    }
  }
  CHECK(generation_of(kLastEpoch) == kLastEpoch % 3);
  CHECK_FALSE(is_poisoned(line_of(kLastEpoch)));
}

TEST_CASE("exchange: blocks read one number until all have read it, in whatever order they come") {
  std::mt19937 random(7);
  for (int round = 0; round < 2000; ++round) {
    const uint64_t epoch = round % 2 == 0 ? 1 + random() % 100 : (uint64_t{1} << 32) - 1;
    Window window(epoch);
    const int count = 1 + static_cast<int>(random() % (round % 5 == 0 ? 200 : 5));
    std::vector<int> ids;
    for (int i = 0; i < count; ++i) ids.push_back(i);
    std::shuffle(ids.begin(), ids.end(), random);
    std::vector<std::unique_ptr<RunningBlock>> blocks;
    std::vector<RunningBlock*> entered;
    size_t next = 0;
    while (next < ids.size() || !entered.empty()) {
      const bool enters = next < ids.size() && (entered.empty() || random() % 2 == 0);
      if (enters) {
        blocks.push_back(std::make_unique<RunningBlock>(window, ids[next++], count));
        REQUIRE(blocks.back()->exchange.epoch() == epoch);
        entered.push_back(blocks.back().get());
      } else {
        entered.back()->exchange.begin(entered.back()->block);
        entered.pop_back();
      }
    }
    CHECK(window.control->line == line_of(epoch + 1));
    for (const auto& each : blocks) each->exchange.close(each->block);
    CHECK(window.control->status == 0);
  }
}

TEST_CASE("exchange: of two launches that overlap one says so") {
  std::mt19937 random(11);
  for (int round = 0; round < 500; ++round) {
    Window window(5);
    std::vector<std::unique_ptr<RunningBlock>> blocks;
    for (int launch = 0; launch < 2; ++launch) {
      const int count = 1 + static_cast<int>(random() % 6);
      for (int id = 0; id < count; ++id)
        blocks.push_back(std::make_unique<RunningBlock>(window, id, count));
    }
    std::shuffle(blocks.begin(), blocks.end(), random);
    for (const auto& each : blocks) each->exchange.begin(each->block);
    CHECK(window.control->status == 0);
    for (const auto& each : blocks) each->exchange.close(each->block);
    CHECK(failure_of(window.control->status) == Failure::Overlap);
    CHECK(is_poisoned(window.control->line));
    CHECK(window.record.complete == 1);
  }
}

TEST_CASE("exchange: additions do not undo a poison, and are no overlap") {
  Window window(5);
  RunningBlock early(window, 0, 2);
  RunningBlock late(window, 1, 2);
  early.exchange.begin(early.block);
  target::poison(window.control->line);
  late.exchange.begin(late.block);
  early.exchange.close(early.block);
  late.exchange.close(late.block);
  CHECK(window.control->status == 0);
  CHECK_FALSE(RunningBlock(window, 0, 1).usable);
}

}  // namespace fccl::test
