#include "ops/collectives.h"

#include "comm/call_word.h"

namespace fccl {
namespace {

constexpr int kPack = 16;
constexpr int64_t kRowPacks = 512;  // a row is the work of one block at a time
constexpr uint64_t kMostBytes = uint64_t{1} << 50;

struct Checked {
  TypeKind type;
  int64_t hidden;
  int64_t rows;
  int64_t last;  // elements of the last row
};

Status check_numbers(const CollectiveArgs& a, const Communicator& comm) {
  if (a.reduction < fcclSum || a.reduction > fcclAvg)
    return error(Code::InvalidArgument,
                 "op %d is unknown; supported: sum, prod, max, min, avg",
                 a.reduction);
  if (a.root < 0 || a.root >= comm.ranks())
    return error(Code::InvalidArgument, "root is %d; allowed: 0 to %d", a.root, comm.ranks() - 1);
  if (a.count > kMostBytes / 4 / static_cast<uint64_t>(comm.ranks()))
    return error(Code::InvalidArgument, "a count of %zu elements is more than 2^50 bytes", a.count);
  return {};
}

// A buffer of `parts` parts against one of the other side: equal where both mean the same elements.
Status check_buffers(const CollectiveArgs& a, const Communicator& comm, int bytes) {
  const bool sends = a.op != OpKind::Broadcast || comm.rank() == a.root;
  if (a.count == 0) return {};
  if (a.receive == nullptr || (sends && a.send == nullptr))
    return error(
        Code::InvalidArgument, "%s is NULL", a.receive == nullptr ? "recvbuff" : "sendbuff");
  for (const void* p : {a.send, static_cast<const void*>(a.receive)})
    if (reinterpret_cast<uintptr_t>(p) % static_cast<uintptr_t>(bytes) != 0)
      return error(
          Code::InvalidArgument, "a buffer is not aligned to its element of %d bytes", bytes);
  if (!sends) return {};
  const auto part = static_cast<int64_t>(a.count) * bytes;
  const int64_t send_bytes = a.op == OpKind::ReduceScatter ? part * comm.ranks() : part;
  const int64_t receive_bytes = a.op == OpKind::AllGather ? part * comm.ranks() : part;
  const char* send = static_cast<const char*>(a.send);
  const char* receive = static_cast<const char*>(a.receive);
  if (send + send_bytes <= receive || receive + receive_bytes <= send) return {};
  const char* same_send = a.op == OpKind::ReduceScatter ? send + comm.rank() * part : send;
  const char* same_receive = a.op == OpKind::AllGather ? receive + comm.rank() * part : receive;
  if (same_send == same_receive) return {};
  return error(Code::InvalidArgument,
               "sendbuff and recvbuff overlap in part; in place means the same elements");
}

Result<Checked> check(const CollectiveArgs& a, const Communicator& comm) {
  FCCL_TRY(check_numbers(a, comm));
  FCCL_TRY_ASSIGN(type, type_kind(a.datatype));
  const int bytes = element_bytes(type);
  FCCL_TRY(check_buffers(a, comm, bytes));
  const int64_t per_pack = kPack / bytes;
  const auto count = static_cast<int64_t>(a.count);
  const int64_t packs = (count + per_pack - 1) / per_pack;
  Checked c{type, (packs < kRowPacks ? packs : kRowPacks) * per_pack, 0, 0};
  if (count == 0) {
    c.hidden = per_pack;
    return c;
  }
  c.rows = (count + c.hidden - 1) / c.hidden;
  c.last = count - (c.rows - 1) * c.hidden;
  return c;
}

}  // namespace

Status collective(const CollectiveArgs& a, Communicator& comm, void* stream) {
  const auto lock = comm.lock();
  FCCL_TRY(comm.usable());
  FCCL_TRY_ASSIGN(c, check(a, comm));
  FCCL_TRY(comm.context().check_stream(stream));
  Request request;
  request.op = a.op;
  request.type = c.type;
  request.rows = c.rows;
  request.hidden = c.hidden;
  const Plan& plan = comm.plan_for(request);
  if (!plan.supported) return Status(plan.code, plan.reason);
  comm.counters().calls.fetch_add(1, std::memory_order_relaxed);
  if (c.rows == 0 && (!comm.settings().check || comm.ranks() == 1)) return {};

  const int bytes = element_bytes(c.type);
  Launch launch;
  launch.id = KernelId{a.op, plan.algo, plan.protocol, c.type, false};
  KernelArgs& k = launch.args;
  k = KernelArgs{};
  // No sendbuff where nothing is sent: its rows are null + 0.
  k.input = {static_cast<char*>(const_cast<void*>(a.send)),
             a.send == nullptr ? 0 : c.hidden * bytes};
  k.norm_out = {static_cast<char*>(a.receive), c.hidden * bytes};
  k.part_stride = a.op == OpKind::ReduceScatter || a.op == OpKind::AllGather
                      ? static_cast<int64_t>(a.count) * bytes
                      : 0;
  k.hidden = static_cast<int32_t>(c.hidden);
  k.packs = static_cast<int32_t>(c.hidden * bytes / kPack);
  k.op = a.reduction;
  k.root = a.root;
  const CallWord call =
      call_word(launch.id,
                c.hidden,
                static_cast<uint32_t>(a.reduction) * 16u + static_cast<uint32_t>(a.root));
  if (plan.algo == AlgoKind::TwoshotRows) {
    k.total_rows = c.rows;
    k.last_hidden = static_cast<int32_t>(c.last);
    k.chunk_rows = static_cast<int32_t>(plan.chunk_rows);
    k.ex.tokens = static_cast<uint32_t>(c.rows);
    for (int64_t i = 0; i < plan.launches; ++i) {
      k.chunk_first = i * plan.chunk_rows;
      FCCL_TRY(comm.launch(launch, plan, call, stream));
    }
    return {};
  }
  int64_t first = 0;
  do {
    const int64_t left = c.rows - first;
    k.rows = static_cast<int32_t>(left < plan.chunk_rows ? left : plan.chunk_rows);
    k.total_rows = k.rows;
    k.last_hidden = static_cast<int32_t>(first + k.rows == c.rows ? c.last : c.hidden);
    k.ex.tokens = static_cast<uint32_t>(k.rows);
    FCCL_TRY(comm.launch(launch, plan, call, stream));
    k.input.ptr += k.rows * k.input.stride;
    k.norm_out.ptr += k.rows * k.norm_out.stride;
    first += k.rows;
  } while (first < c.rows);
  return {};
}

}  // namespace fccl
