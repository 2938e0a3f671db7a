// See stages.h. A stage is a protocol of its own under the product's algorithm, and so is the
// clock.
#include "gpu/stages.h"

#define FCCL_CUDA_PACKS 1
#include "device/entry/cuda_instances.h"

namespace fccl::FCCL_TARGET {
namespace {

using test::Stage;

template <int kRanks, Stage kStage>
class PartOfLamport {
 public:
  static_assert(kRanks == 2);
  static constexpr ProtocolKind kind = ProtocolKind::Lamport;
  static constexpr bool kWaitsForPacks = true;

  FCCL_DEVICE PartOfLamport(const Exchange<kRanks>& exchange, int hop, Hop)
      : exchange_(exchange), hop_(hop) {}

  FCCL_DEVICE uint64_t places() const { return 0; }
  FCCL_DEVICE void push(int i, uint32_t index, Pack p) const {
    if constexpr (kStage == Stage::WireTwice || kStage == Stage::NoWait)
      store_peer(slots().outgoing(i, index), without_sentinel(p));
    // The peer's slot for itself is not used with two ranks.
    if constexpr (kStage == Stage::WireTwice)
      store_peer(slots().outgoing(i, index) + (1 - 2 * ex().rank) * pack_offset(ex().from_stride),
                 without_sentinel(p));
  }
  FCCL_DEVICE SendAll<PartOfLamport, kRanks> sender_to_all(int first) const {
    return {*this, ex(), first};
  }
  FCCL_DEVICE void publish(Block&, int) const {}
  FCCL_DEVICE bool acquire(Block&, int, int) const { return true; }
  FCCL_DEVICE const PartOfLamport& reader() const { return *this; }

  template <class Got>
  FCCL_DEVICE bool receive_all(Block& blk, uint32_t index, int row, Pack mine, Got& got) const {
    got[0] = got[1] = mine;
    if constexpr (kStage == Stage::Local) return true;
    const auto ready = [&] {
      got[1] = load_peer(slots().incoming(1 - ex().rank, index));
      return kStage != Stage::WireTwice || arrived(got[1]);
    };
    return exchange_.wait(blk, ready, [&] { return Waiting{1 - ex().rank, 0, row}; });
  }
  FCCL_DEVICE void release_all(uint32_t index) const {
    if constexpr (kStage != Stage::Local)
      store_peer(slots().incoming(1 - ex().rank, index), sentinel_pack());
  }

 private:
  FCCL_DEVICE const ExchangeArgs& ex() const { return exchange_.args(); }

  FCCL_DEVICE Slots slots() const { return {ex(), exchange_.gen(), hop_}; }

  const Exchange<kRanks>& exchange_;
  const int hop_;
};

template <int kRanks>
using WireTwice = PartOfLamport<kRanks, Stage::WireTwice>;
template <int kRanks>
using NoWait = PartOfLamport<kRanks, Stage::NoWait>;
template <int kRanks>
using NoPush = PartOfLamport<kRanks, Stage::NoPush>;
template <int kRanks>
using Local = PartOfLamport<kRanks, Stage::Local>;

// The norm of the own row twice, with ever less of the exchange around it.
template <Stage kStage>
struct LocalNorm {
  static constexpr int kRankCount = 2;
  using Epilogue = FusedNorm<BF16, true>;
  FCCL_DEVICE static void run(Block& blk, const KernelArgs& a) {
    const auto input = input_rows<Epilogue>(a).row(blk.id());
    Exchange<2> exchange(a.ex);
    wait_for_earlier_kernels();
    const auto mine = blk.prefetch(0, a.packs, [input](int p) { return input.load(p); });
    if (kStage != Stage::Norm && !exchange.read_line()) return;
    if constexpr (kStage == Stage::NoHeader) exchange.begin(blk);
    norm(blk, a, mine);
    if constexpr (kStage == Stage::NoHeader) exchange.close(blk);
  }
  template <class Mine>
  FCCL_DEVICE static void norm(Block& blk, const KernelArgs& a, const Mine& mine) {
    const Epilogue epilogue(a);
    const auto line = epilogue.row(blk.id(), blk.id());
    auto kept = blk.kept_row(epilogue.kept_rows(), a.packs);
    auto squares = blk.squares(a.packs);
    kept.start(blk.id());
    const auto residual = blk.prefetch(0, a.packs, [line](int p) { return line.load_residual(p); });
    const auto weight = blk.prefetch(0, a.packs, [line](int p) { return line.load_weight(p); });
    blk.each_pack(0, a.packs, [&](Slot s, int p) {
      const auto x = to_floats<BF16>(mine(s, p));
      const Pack h = line.combine(p, line.fold(x, x), residual(s, p));
      line.keep(p, h);
      kept[s] = h;
      squares.set(s, to_floats<BF16>(h));
    });
    const float scale = epilogue.scale(blk.row_sum(squares, a.packs, kElements<BF16>));
    blk.each_pack(0, a.packs, [&](Slot s, int p) { line.finish(p, kept[s], scale, weight(s, p)); });
  }
};

struct Nothing {
  static constexpr int kRankCount = 2;
  FCCL_DEVICE static void run(Block&, const KernelArgs&) { wait_for_earlier_kernels(); }
};

// ---- with a clock
using test::Mark;

FCCL_DEVICE test::WarpMarks& warp_marks() {
  FCCL_SHARED test::WarpMarks marks[test::kTimedWarps];
  return marks[threadIdx.x / 32];
}
FCCL_DEVICE void mark(Mark at) {
  uint32_t now;
  asm volatile("mov.u32 %0, %%clock;" : "=r"(now)::"memory");
  if ((threadIdx.x & 31) == 0) warp_marks().clock[static_cast<int>(at)] = now;
}

template <int kRanks>
class TimedLamport : public Lamport<kRanks> {
 public:
  using Base = Lamport<kRanks>;
  FCCL_DEVICE TimedLamport(const Exchange<kRanks>& exchange, int hop, Hop kind)
      : Base(exchange, hop, kind), exchange_(exchange) {}
  FCCL_DEVICE void push(int i, uint32_t index, Pack p) const {
    Base::push(i, index, p);
    mark(Mark::Pushed);
  }
  FCCL_DEVICE SendAll<TimedLamport, kRanks> sender_to_all(int first) const {
    return {*this, exchange_.args(), first};
  }
  FCCL_DEVICE const TimedLamport& reader() const { return *this; }
  template <class Got>
  FCCL_DEVICE bool receive_all(Block& blk, uint32_t index, int row, Pack mine, Got& got) const {
    mark(Mark::Waiting);
    const bool good = Base::receive_all(blk, index, row, mine, got);
    mark(Mark::Received);
    return good;
  }
  FCCL_DEVICE void release_all(uint32_t index) const {
    Base::release_all(index);
    mark(Mark::Summed);
    if (threadIdx.x == 0)
      call_number() = static_cast<uint32_t>(exchange_.epoch() % test::kTimedCalls);
  }
  FCCL_DEVICE static uint32_t& call_number() {
    FCCL_SHARED uint32_t number;
    return number;
  }

 private:
  const Exchange<kRanks>& exchange_;
};

class TimedNorm : public FusedNorm<BF16, true> {
 public:
  using Base = FusedNorm<BF16, true>;
  using Base::Base;
  FCCL_DEVICE float scale(float squares) const {
    const float result = Base::scale(squares);
    if (result < 0.0f) __nanosleep(1);  // never: the clock is read when it is known
    mark(Mark::Scaled);
    return result;
  }
};

struct Timed {
  static constexpr int kRankCount = 2;
  FCCL_DEVICE static void run(Block& blk, const KernelArgs& a) {
    Oneshot<TimedLamport, 2, TimedNorm>::run(blk, a);
    mark(Mark::Done);
    if ((threadIdx.x & 31) != 0) return;
    auto* all = reinterpret_cast<test::WarpMarks*>(a.allreduce_out.ptr);
    const uint32_t block = TimedLamport<2>::call_number() * test::kTimedBlocks + blockIdx.x;
    all[block * test::kTimedWarps + threadIdx.x / 32] = warp_marks();
  }
};

}  // namespace
}  // namespace fccl::FCCL_TARGET

namespace fccl::test {

const char* stage_name(Stage stage) {
  static const char* const names[] = {"whole",
                                      "wire twice",
                                      "no wait",
                                      "no push",
                                      "local",
                                      "no header",
                                      "no advance",
                                      "norm",
                                      "empty"};
  return names[static_cast<int>(stage)];
}

CudaKernel stage_kernel(Stage stage) {
  namespace target = FCCL_TARGET;
  using Epilogue = target::FusedNorm<BF16, true>;
  switch (stage) {
    case Stage::WireTwice:
      return target::instance<target::Oneshot<target::WireTwice, 2, Epilogue>>();
    case Stage::NoWait:
      return target::instance<target::Oneshot<target::NoWait, 2, Epilogue>>();
    case Stage::NoPush:
      return target::instance<target::Oneshot<target::NoPush, 2, Epilogue>>();
    case Stage::Local:
      return target::instance<target::Oneshot<target::Local, 2, Epilogue>>();
    case Stage::NoHeader:
      return target::instance<target::LocalNorm<Stage::NoHeader>>();
    case Stage::NoAdvance:
      return target::instance<target::LocalNorm<Stage::NoAdvance>>();
    case Stage::Norm:
      return target::instance<target::LocalNorm<Stage::Norm>>();
    default:
      return target::instance<target::Nothing>();
  }
}

CudaKernel timed_kernel() {
  return FCCL_TARGET::instance<FCCL_TARGET::Timed>();
}

}  // namespace fccl::test
