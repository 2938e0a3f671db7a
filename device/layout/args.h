// KernelArgs: everything a kernel is told, one plain struct for all kernels and targets. Nothing in
// it depends on a call's position in time: graphs freeze it.
#pragma once
#include "device/layout/control.h"

namespace fccl {

// Which side of the exchange a launch sees. window[i] is the window of rank (rank + i) % ranks, so
// window[0] is the own one and every index into it is a constant of the unrolled loop. What a call
// with few ranks reads lies together, here and in KernelArgs: a GPU fetches arguments by the line.
struct ExchangeArgs {
  uint64_t region;  // offset of the protocol's region in a window, generation 0
  uint32_t generation;  // packs of 16 bytes from one generation to the next
  uint32_t hop_stride;  // packs from the first to the second hop
  uint32_t from_stride;  // packs of one sender's slot
  int32_t rank;
  int32_t ranks;
  int32_t tile_rows;  // rows that share one arrival
  uint32_t hash;  // of the call, for the header (call_word.h)
  uint32_t tokens;  // rows of this launch, for the header
  uint32_t checked;  // compare headers on every call
  uint32_t options;  // 16 bits, for the header
  char* to_peer;  // of two ranks: the own slot in the peer's window, generation 0 and hop 0
  char* from_peer;  //   and the peer's slot here; known without arithmetic
  char* window[kMaxRanks];
  FailureRecord* record;  // host memory
  const uint32_t* host_abort;  // host memory, nonzero ends every wait
};

struct Tensor {
  char* ptr;  // null: absent
  int64_t stride;  // bytes between rows
};

enum KernelFlags : uint32_t {
  kWeightF32 = 1u << 0,
  kBiasF32 = 1u << 1,
  kWeightPlusOne = 1u << 2,
  kRoundSum = 1u << 3,  // numerics "as unfused"
  kResidualSharded = 1u << 4,  // residual and residual_out hold the own rows only
  kEarlyTrigger = 1u << 5,  // kernels that follow may be set up once the last row is pushed
  kLastReduces = 1u << 6,  // two-shot rows, CPU ranks, one row: the last rank to arrive owns it
};

struct KernelArgs {
  int32_t rows;  // of this launch
  int32_t packs;  // of a row, the last one padded
  int32_t hidden;  // elements of a row
  uint32_t flags;  // KernelFlags
  float eps;
  float inv_hidden;  // fl(1 / hidden)
  const char* weight;
  Tensor input;
  Tensor residual;
  Tensor residual_out;
  Tensor norm_out;
  ExchangeArgs ex;
  Tensor allreduce_out;
  const char* bias;
  int64_t
      part_stride;  // bytes between the parts of ranks (reduce-scatter input, all-gather output)
  int64_t total_rows;  // row ownership: of the whole tensor; each owner's rows are chunked alike
  int64_t chunk_first;  //   first row of this launch within each owner's rows
  int32_t chunk_rows;  //   rows of this launch of each owner, at most
  int32_t last_hidden;  // elements of the last row (plain collectives; = hidden for the fused call)
  int32_t op;  // fcclRedOp_t
  int32_t root;  // broadcast
  float scale;  // Avg: fl(1 / ranks)
};

enum class AlgoKind : int32_t { Oneshot = 0, TwoshotRows = 1, TwoshotCols = 2 };
enum class ProtocolKind : int32_t { Lamport = 0, Flags = 1, LL = 2 };
enum class OpKind : int32_t {
  FusedNorm = 0,
  AllReduce = 1,
  ReduceScatter = 2,
  AllGather = 3,
  Broadcast = 4
};
enum class TypeKind : int32_t { F32 = 0, F16 = 1, BF16 = 2 };
constexpr int element_bytes(TypeKind type) {
  return type == TypeKind::F32 ? 4 : 2;
}

// Which kernel: a row of the table of instances.
struct KernelId {
  OpKind op = OpKind::FusedNorm;
  AlgoKind algo = AlgoKind::Oneshot;
  ProtocolKind protocol = ProtocolKind::Lamport;
  TypeKind type = TypeKind::BF16;
  bool plain =
      false;  // aligned, whole packs, weight of the tensor's type, nothing optional but residual
};

// Has every tile of this launch a signal pad? One beyond them would be another sender's.
constexpr bool tiles_have_pads(const KernelId& id, const KernelArgs& a) {
  const int64_t rows = a.chunk_rows > 0 ? a.chunk_rows : a.rows;
  return id.protocol != ProtocolKind::Flags ||
         (a.ex.tile_rows > 0 && rows <= int64_t{a.ex.tile_rows} * kMaxTiles);
}

}  // namespace fccl
