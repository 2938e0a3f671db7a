// See collective_case.h.
#include "harness/collective_case.h"

#include "harness/buffer.h"
#include "harness/comm_case.h"
#include "harness/generator.h"
#include "harness/ranks.h"
#include "harness/reference.h"

namespace fccl::test {
namespace {

// Columns [first, first + count) of a row.
Matrix columns_of(const Matrix& all, int64_t first, int64_t count) {
  Matrix part(all.type(), 1, count);
  for (int64_t c = 0; c < count; ++c) part.set_bits(0, c, all.bits(0, first + c));
  return part;
}

Matrix expected(const CollectiveCase& c, const std::vector<Matrix>& sent, int rank) {
  const auto ranks = static_cast<int64_t>(sent.size());
  switch (c.op) {
    case OpKind::AllReduce:
      return reduce_reference(sent, c.fold);
    case OpKind::ReduceScatter:
      return columns_of(reduce_reference(sent, c.fold), rank * c.count, c.count);
    case OpKind::Broadcast:
      return copy_reference(sent[static_cast<size_t>(c.root)]);
    default: {
      Matrix all(c.type, 1, c.count * ranks);
      for (int64_t r = 0; r < ranks; ++r)
        for (int64_t i = 0; i < c.count; ++i)
          all.set(0, r * c.count + i, sent[static_cast<size_t>(r)].at(0, i));
      return all;
    }
  }
}

fcclResult_t issue(const CollectiveCase& c, const void* send, void* receive, fcclComm_t comm) {
  const auto count = static_cast<size_t>(c.count);
  const auto type = static_cast<fcclDataType_t>(datatype_of(c.type));
  switch (c.op) {
    case OpKind::AllReduce:
      return fcclAllReduce(send, receive, count, type, c.fold, comm, nullptr);
    case OpKind::ReduceScatter:
      return fcclReduceScatter(send, receive, count, type, c.fold, comm, nullptr);
    case OpKind::AllGather:
      return fcclAllGather(send, receive, count, type, comm, nullptr);
    default:
      return fcclBroadcast(send, receive, count, type, c.root, comm, nullptr);
  }
}

}  // namespace

CollectiveCase collective_case(uint64_t seed, uint64_t i, int ranks) {
  const int64_t counts[] = {0, 1, 3, 8, 65, 1000, 4097, 30000};
  return {static_cast<OpKind>(1 + mix(seed, i, 1) % 4),
          static_cast<TypeKind>(mix(seed, i, 2) % 3),
          counts[mix(seed, i, 3) % 8],
          static_cast<fcclRedOp_t>(mix(seed, i, 4) % 5),
          static_cast<int>(mix(seed, i, 5) % static_cast<uint64_t>(ranks)),
          mix(seed, i, 6) % 2 == 0};
}

std::string CollectiveCase::text() const {
  return "op " + std::to_string(static_cast<int>(op)) + " " + type_name(type) + " count " +
         std::to_string(count) + " fold " + std::to_string(fold) + " root " + std::to_string(root) +
         (in_place ? " in place: " : ": ");
}

CollectiveAnswer call_collective(const CollectiveCase& c, uint64_t launch, fcclComm_t comm,
                                 int rank, int ranks) {
  std::vector<Matrix> sent;
  const int64_t columns = c.op == OpKind::ReduceScatter ? c.count * ranks : c.count;
  for (int r = 0; r < ranks; ++r) sent.push_back(make_input(c.type, 1, columns, launch, r));
  const Matrix want = expected(c, sent, rank);
  const Matrix& mine = sent[static_cast<size_t>(rank)];
  // In place the receive buffer begins as what this rank sends, at the place the call means.
  Matrix begin = want;
  const int64_t part = c.op == OpKind::AllGather ? rank * c.count : 0;
  for (int64_t x = 0; x < begin.columns(); ++x) begin.set_bits(0, x, 0x5A5Au);
  if (c.op != OpKind::ReduceScatter)
    for (int64_t x = 0; x < c.count; ++x) begin.set_bits(0, part + x, mine.bits(0, x));
  const Placement odd{rank % 2, 0};
  Buffer in(mine, odd), out(begin, odd);
  char* receive = out.data();
  const char* send = in.data();
  const int64_t bytes = element_bytes(c.type);
  if (c.in_place && c.op == OpKind::ReduceScatter) receive = in.data() + rank * c.count * bytes;
  if (c.in_place && c.op != OpKind::ReduceScatter) send = out.data() + part * bytes;
  CollectiveAnswer answer;
  answer.code = issue(c, send, receive, comm);
  if (answer.code != fcclSuccess) {
    answer.error = c.text() + error_text(answer.code, "the collective", comm);
    return answer;
  }
  std::string& error = answer.error;
  if (receive == out.data()) {
    error = out.difference(want, "received");
    if (error.empty()) error = in.difference(mine, "sent");
  } else {
    error = first_difference(
        columns_of(in.content(), rank * c.count, c.count), want, "received in place");
  }
  if (!error.empty()) error = c.text() + error;
  return answer;
}

}  // namespace fccl::test
