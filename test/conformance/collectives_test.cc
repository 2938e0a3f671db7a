// The plain collectives at kernel level, ranks as threads over plain windows: every operator, type,
// algorithm and protocol, counts that fill no row or pack, in place and out of place.
#include "harness/buffer.h"
#include "harness/catch.h"
#include "harness/generator.h"
#include "harness/kernel_levels.h"
#include "harness/kernel_world.h"
#include "harness/reference.h"

namespace fccl::test {
namespace {

// A count of 0 has no memory.
void copy_bytes(void* to, const void* from, size_t bytes) {
  if (bytes != 0) std::memcpy(to, from, bytes);
}

struct Collective {
  KernelId id;
  KernelLevel level;
  int ranks = 2;
  int64_t count = 1;  // elements: of the tensor, or of one rank's part
  int64_t row = 64;  // elements that the host gives a row
  int op = 0;
  int root = 0;
  int tile_rows = 1;
  int blocks = 1;
  bool in_place = false;
  bool checked = false;
  uint64_t launch = 0;
  uint32_t chaos = 0;

  bool has_parts_in() const { return id.op == OpKind::ReduceScatter; }
  bool has_parts_out() const { return id.op == OpKind::AllGather; }
  int64_t rows() const { return (count + row - 1) / row; }
  std::string text() const {
    return std::string(level.name) + " op " + std::to_string(static_cast<int>(id.op)) + " algo " +
           std::to_string(static_cast<int>(id.algo)) + " protocol " +
           std::to_string(static_cast<int>(id.protocol)) + " " + type_name(id.type) + " ranks " +
           std::to_string(ranks) + " count " + std::to_string(count) + " row " +
           std::to_string(row) + " fold " + std::to_string(op) + " root " + std::to_string(root) +
           " tile " + std::to_string(tile_rows) + " blocks " + std::to_string(blocks) +
           (in_place ? " in place" : "");
  }
};

struct Problem {
  std::vector<Matrix> send;  // of each rank
  std::vector<Matrix> want;  // of each rank
};

Matrix concatenated(const std::vector<Matrix>& parts) {
  Matrix all(parts[0].type(), 1, parts[0].columns() * static_cast<int64_t>(parts.size()));
  for (size_t i = 0; i < parts.size(); ++i)
    copy_bytes(all.row(0) + i * parts[i].row_bytes(), parts[i].row(0), parts[i].row_bytes());
  return all;
}

Matrix part_of(const Matrix& all, int64_t count, int rank) {
  Matrix part(all.type(), 1, count);
  copy_bytes(
      part.row(0), all.row(0) + static_cast<size_t>(rank) * part.row_bytes(), part.row_bytes());
  return part;
}

Problem make_problem(const Collective& c) {
  Problem p;
  const int64_t sent = c.has_parts_in() ? c.count * c.ranks : c.count;
  for (int rank = 0; rank < c.ranks; ++rank)
    p.send.push_back(
        make_input(c.id.type, 1, sent, c.launch + static_cast<uint64_t>(c.launch % 5), rank));
  for (int rank = 0; rank < c.ranks; ++rank) {
    switch (c.id.op) {
      case OpKind::AllGather:
        p.want.push_back(copy_reference(concatenated(p.send)));
        break;
      case OpKind::Broadcast:
        p.want.push_back(copy_reference(p.send[static_cast<size_t>(c.root)]));
        break;
      case OpKind::ReduceScatter:
        p.want.push_back(part_of(reduce_reference(p.send, c.op), c.count, rank));
        break;
      default:
        p.want.push_back(reduce_reference(p.send, c.op));
    }
  }
  return p;
}

KernelArgs make_args(KernelWorld& world, int rank, const Collective& c, char* send, char* receive) {
  const int bytes = element_bytes(c.id.type);
  KernelArgs a{};
  a.ex = world.exchange(rank, c.id);
  a.ex.tile_rows = c.tile_rows;
  a.ex.tokens = static_cast<uint32_t>(c.rows());
  a.ex.checked = c.checked ? 1 : 0;
  a.input = {send, c.row * bytes};
  a.norm_out = {receive, c.row * bytes};
  a.part_stride = c.count * bytes;
  a.total_rows = c.rows();
  a.rows = static_cast<int32_t>(c.rows());
  a.chunk_rows = a.rows;
  a.hidden = static_cast<int32_t>(c.row);
  a.last_hidden = static_cast<int32_t>(c.count - (c.rows() - 1) * c.row);
  a.packs = static_cast<int32_t>((c.row * bytes + 15) / 16);
  a.op = c.op;
  a.root = c.root;
  return a;
}

std::string run_collective(KernelWorld& world, int rank, const Collective& c,
                           const Problem& problem) {
  const Matrix& send = problem.send[static_cast<size_t>(rank)];
  const Matrix& want = problem.want[static_cast<size_t>(rank)];
  const auto part =
      static_cast<size_t>(rank) * static_cast<size_t>(c.count * element_bytes(c.id.type));
  const Placement odd{rank % 3, 0};
  Buffer in(send, odd);
  Buffer out = Buffer::output(c.id.type, 1, want.columns(), odd);
  char* receive = out.data();
  if (c.in_place) {
    receive = c.has_parts_in() ? in.data() + part : in.data();
    if (c.has_parts_out()) copy_bytes(out.data() + part, send.row(0), send.row_bytes());
  }
  char* from = c.in_place && c.has_parts_out() ? out.data() + part : in.data();
  if (c.has_parts_out()) receive = out.data();
  run_kernel(c.level.find(c.id, c.ranks),
             make_args(world, rank, c, from, receive),
             c.blocks,
             c.chaos == 0 ? 0 : c.chaos + static_cast<uint32_t>(rank));
  if (is_poisoned(world.control(rank).line))
    return c.text() + ": " + describe_failure(world.record(rank));
  std::string error;
  if (receive == out.data()) {
    error = out.difference(want, "received");
    if (error.empty()) error = in.difference(send, "sent");
  } else {
    Matrix all = send;  // what in-place did not replace stays
    copy_bytes(all.row(0) + (c.has_parts_in() ? part : 0), want.row(0), want.row_bytes());
    error = in.difference(all, "received in place");
  }
  return error.empty() ? "" : c.text() + ": " + error;
}

void run_sequence(const std::vector<Collective>& calls) {
  KernelWorld::Options options;
  options.ranks = calls[0].ranks;
  std::vector<Problem> problems;
  for (const Collective& c : calls) {
    problems.push_back(make_problem(c));
    const auto pushed =
        static_cast<uint64_t>(c.rows() * ((c.row * element_bytes(c.id.type) + 15) / 16) * 16);
    options.slot_bytes = std::max(options.slot_bytes, pushed);
  }
  KernelWorld world(options);
  CHECK(world.run([&](int rank) -> std::string {
    for (size_t i = 0; i < calls.size(); ++i) {
      std::string error = run_collective(world, rank, calls[i], problems[i]);
      if (!error.empty()) return error;
    }
    return "";
  }) == "");
  CHECK(world.not_at_rest(calls.size()) == "");
}

// Call number i of a sequence that walks through everything.
Collective numbered(uint64_t i, int ranks, uint32_t chaos) {
  static const int64_t counts[] = {1, 2, 7, 8, 63, 64, 65, 100, 1000, 4099};
  Collective c;
  c.ranks = ranks;
  c.id.op = static_cast<OpKind>(1 + mix(i, 1) % 4);
  c.id.algo = c.id.op == OpKind::AllReduce && mix(i, 2) % 2 == 0 ? AlgoKind::TwoshotRows
                                                                 : AlgoKind::Oneshot;
  c.id.protocol = mix(i, 3) % 2 == 0 ? ProtocolKind::Lamport : ProtocolKind::Flags;
  c.id.type = static_cast<TypeKind>(mix(i, 4) % 3);
  c.level = kernel_levels()[mix(i, 5) % kernel_levels().size()];
  c.count = counts[mix(i, 6) % 10];
  c.row = mix(i, 7) % 2 == 0 ? 64 : 256;
  c.op = static_cast<int>(i % 5);
  c.root = static_cast<int>(mix(i, 8) % static_cast<uint64_t>(ranks));
  c.tile_rows = 1 + static_cast<int>(mix(i, 9) % 4);
  c.blocks = 1 + static_cast<int>(mix(i, 10) % 3);
  c.in_place = mix(i, 11) % 2 == 0;
  c.checked = mix(i, 12) % 4 == 0;
  c.launch = i;
  c.chaos = chaos == 0 ? 0 : chaos + static_cast<uint32_t>(i);
  return c;
}

}  // namespace

TEST_CASE("collectives: operators, types, counts and algorithms in turn") {
  for (const int ranks : {1, 2, 3, 4, 5, 8}) {
    std::vector<Collective> calls;
    for (uint64_t i = 0; i < 240; ++i) calls.push_back(numbered(i, ranks, 0));
    run_sequence(calls);
  }
}

TEST_CASE("collectives: chaos seeds") {
  for (uint32_t seed = 1; seed <= 20; ++seed) {
    std::vector<Collective> calls;
    for (uint64_t i = 0; i < 20; ++i)
      calls.push_back(numbered(mix(seed, i), 2 + static_cast<int>(seed % 3), seed * 7919));
    INFO("seed " << seed);
    run_sequence(calls);
  }
}

}  // namespace fccl::test
