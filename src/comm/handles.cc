#include "comm/handles.h"

#include <array>
#include <chrono>
#include <mutex>

namespace fccl {
namespace {

constexpr int kRows = 4096;  // communicators alive at once
constexpr int kIndexBits = 16;

struct Row {
  std::atomic<uint64_t> generation{0};  // odd: in use
  std::atomic<int32_t> pins{0};
  Communicator* comm = nullptr;  // written while the generation is even
};

struct Table {
  std::array<Row, kRows> rows;
  std::mutex mutex;  // of making and taking
  int next = 0;
};
Table& table() {
  static auto* const instance = new Table;
  return *instance;
}

fcclComm_t encode(int row, uint64_t generation) {
  return reinterpret_cast<fcclComm_t>(
      static_cast<uintptr_t>(generation << kIndexBits | static_cast<uint64_t>(row)));
}
int row_of(fcclComm_t handle) {
  return static_cast<int>(reinterpret_cast<uintptr_t>(handle) & ((uintptr_t{1} << kIndexBits) - 1));
}
uint64_t generation_of(fcclComm_t handle) {
  return reinterpret_cast<uintptr_t>(handle) >> kIndexBits;
}

}  // namespace

Pinned::Pinned(fcclComm_t handle) {
  const int index = row_of(handle);
  if (index >= kRows || generation_of(handle) % 2 == 0) return;
  Row& row = table().rows[static_cast<size_t>(index)];
  // The pin first, then the look: whoever takes the handle changes the generation first, then waits
  // for pins. Sequentially consistent on both sides.
  row.pins.fetch_add(1);
  if (row.generation.load() != generation_of(handle)) {
    row.pins.fetch_sub(1);
    return;
  }
  row_ = index;
  comm_ = row.comm;
}

Pinned::~Pinned() {
  if (row_ >= 0) table().rows[static_cast<size_t>(row_)].pins.fetch_sub(1);
}

Result<fcclComm_t> make_handle(std::unique_ptr<Communicator> comm) {
  Table& t = table();
  const std::lock_guard<std::mutex> lock(t.mutex);
  for (int i = 0; i < kRows; ++i) {
    const int index = (t.next + i) % kRows;
    Row& row = t.rows[static_cast<size_t>(index)];
    const uint64_t generation = row.generation.load();
    if (generation % 2 != 0 || row.pins.load() != 0) continue;
    row.comm = comm.release();
    row.generation.store(generation + 1);
    t.next = index + 1;
    return encode(index, generation + 1);
  }
  return error(
      Code::OutOfResources, "%d communicators are alive in this process; destroy some", kRows);
}

std::unique_ptr<Communicator> take_handle(fcclComm_t handle, int64_t patience_ms) {
  const int index = row_of(handle);
  if (index >= kRows || generation_of(handle) % 2 == 0) return nullptr;
  Row& row = table().rows[static_cast<size_t>(index)];
  uint64_t generation = generation_of(handle);
  if (!row.generation.compare_exchange_strong(generation, generation + 1)) return nullptr;
  std::unique_ptr<Communicator> comm(row.comm);
  const Deadline patience = Deadline::after_ms(patience_ms);
  bool aborted = false;
  while (row.pins.load() != 0) {
    if (!aborted && patience.expired()) {
      comm->abort();
      aborted = true;
    }
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
  return comm;
}

}  // namespace fccl
