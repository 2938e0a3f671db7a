// Plain collectives on GPU ranks, bit for bit against the scalar reference: every operator, type,
// algorithm and protocol, counts that fill no row or pack, in place and out of place.
#include <algorithm>
#include <cstdio>
#include <cstring>

#include "gpu/checks.h"
#include "gpu/gpu_case.h"
#include "harness/generator.h"

namespace fccl::test {
namespace {

struct Collective {
  KernelId id;
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

  int64_t rows() const { return (count + row - 1) / row; }
  int64_t packs() const { return (row * element_bytes(id.type) + 15) / 16; }
  int64_t sent() const { return id.op == OpKind::ReduceScatter ? count * ranks : count; }
  int64_t received() const { return id.op == OpKind::AllGather ? count * ranks : count; }
  std::string text() const {
    char out[200];
    std::snprintf(out,
                  sizeof out,
                  "op %d algo %d protocol %d %s ranks %d count %lld row %lld fold %d root %d tile "
                  "%d blocks %d "
                  "in place %d checked %d",
                  static_cast<int>(id.op),
                  static_cast<int>(id.algo),
                  static_cast<int>(id.protocol),
                  type_name(id.type),
                  ranks,
                  static_cast<long long>(count),
                  static_cast<long long>(row),
                  op,
                  root,
                  tile_rows,
                  blocks,
                  in_place,
                  checked);
    return out;
  }
};

Collective draw(uint64_t i, int ranks) {
  const auto pick = [&](uint64_t salt, uint64_t count) {
    return static_cast<int>(mix(i, salt, 77) % count);
  };
  static const int64_t counts[] = {1, 7, 64, 1000, 4096, 10001, 65536, 100003};
  static const int64_t rows[] = {64, 256, 2048};
  Collective c;
  c.ranks = ranks;
  c.id.op = static_cast<OpKind>(1 + pick(1, 4));
  if (c.id.op == OpKind::AllReduce && pick(2, 2) == 0) c.id.algo = AlgoKind::TwoshotRows;
  c.id.protocol = pick(3, 2) == 0 ? ProtocolKind::Lamport : ProtocolKind::Flags;
  c.id.type = static_cast<TypeKind>(pick(4, 3));
  c.count = counts[pick(5, std::size(counts))];
  c.row = rows[pick(6, std::size(rows))];
  c.op = pick(7, 5);
  c.root = pick(8, static_cast<uint64_t>(ranks));
  c.tile_rows = std::max(1 + pick(9, 4), static_cast<int>(c.rows() / 200) + 1);
  c.blocks = 1 + pick(10, 24);
  c.in_place = pick(11, 2) == 0;
  c.checked = pick(12, 3) == 0;
  c.launch = i;
  return c;
}

Matrix concatenated(const std::vector<Matrix>& parts) {
  Matrix all(parts[0].type(), 1, parts[0].columns() * static_cast<int64_t>(parts.size()));
  for (size_t i = 0; i < parts.size(); ++i)
    std::memcpy(all.row(0) + i * parts[i].row_bytes(), parts[i].row(0), parts[i].row_bytes());
  return all;
}

Matrix wanted(const Collective& c, const std::vector<Matrix>& send, int rank) {
  switch (c.id.op) {
    case OpKind::AllGather:
      return copy_reference(concatenated(send));
    case OpKind::Broadcast:
      return copy_reference(send[static_cast<size_t>(c.root)]);
    case OpKind::ReduceScatter: {
      const Matrix all = reduce_reference(send, c.op);
      Matrix part(c.id.type, 1, c.count);
      std::memcpy(
          part.row(0), all.row(0) + static_cast<size_t>(rank) * part.row_bytes(), part.row_bytes());
      return part;
    }
    default:
      return reduce_reference(send, c.op);
  }
}

// Device memory of one rank in one call: sent and received, or one of both where they overlap.
struct Place {
  char* memory = nullptr;
  char* send = nullptr;
  char* receive = nullptr;
};

class Call {
 public:
  Call(GpuWorld& world, const Collective& c) : world_(world), c_(c) {
    for (int r = 0; r < c.ranks; ++r)
      send_.push_back(make_input(c.id.type, 1, c.sent(), c.launch, r));
    for (int r = 0; r < c.ranks; ++r) place_.push_back(place(r));
  }
  ~Call() {
    for (Place& p : place_) CHECK_CUDA(cudaFree(p.memory));
  }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  void launch(int rank) {
    const CudaKernel kernel = find_cuda_kernel(c_.id, c_.ranks, static_cast<int>(c_.packs()), 0);
    GpuShape shape = shape_of(kernel, static_cast<int>(c_.packs()));
    shape.blocks = c_.blocks;
    shape.dependent = world_.dependents_fit();
    const KernelArgs a = args(rank);
    check_pads(c_.id, a);
    world_.launch(rank, kernel, a, shape);
  }
  std::string check(int rank) {
    const Matrix want = wanted(c_, send_, rank);
    Matrix got(c_.id.type, 1, want.columns());
    CHECK_CUDA(cudaMemcpy(got.row(0),
                          place_[static_cast<size_t>(rank)].receive,
                          got.row_bytes(),
                          cudaMemcpyDeviceToHost));
    if (std::memcmp(got.row(0), want.row(0), got.row_bytes()) == 0) return "";
    return c_.text() + ": rank " + std::to_string(rank) + ": " +
           first_difference(got, want, "received");
  }

 private:
  Place place(int rank) {
    const auto bytes = static_cast<size_t>(element_bytes(c_.id.type));
    const size_t sent = static_cast<size_t>(c_.sent()) * bytes,
                 received = static_cast<size_t>(c_.received()) * bytes;
    const size_t part = static_cast<size_t>(rank) * static_cast<size_t>(c_.count) * bytes;
    const size_t odd = static_cast<size_t>(rank % 3) * bytes;
    CHECK_CUDA(cudaSetDevice(world_.device(rank)));
    Place p;
    CHECK_CUDA(cudaMalloc(reinterpret_cast<void**>(&p.memory), sent + received + 512));
    CHECK_CUDA(cudaMemset(p.memory, 0xC5, sent + received + 512));
    p.send = p.memory + odd;
    p.receive = p.memory + (sent + 255) / 256 * 256 + odd;
    if (c_.in_place) {
      if (c_.id.op == OpKind::AllGather) {
        p.send = p.receive + part;
      } else {
        p.receive = p.send + (c_.id.op == OpKind::ReduceScatter ? part : 0);
      }
    }
    CHECK_CUDA(
        cudaMemcpy(p.send, send_[static_cast<size_t>(rank)].row(0), sent, cudaMemcpyHostToDevice));
    CHECK_CUDA(cudaDeviceSynchronize());
    return p;
  }
  KernelArgs args(int rank) const {
    const int bytes = element_bytes(c_.id.type);
    const Place& p = place_[static_cast<size_t>(rank)];
    KernelArgs a{};
    a.ex = world_.exchange(rank, c_.id);
    a.ex.tile_rows = c_.tile_rows;
    a.ex.tokens = static_cast<uint32_t>(c_.rows());
    a.ex.checked = c_.checked ? 1 : 0;
    a.input = {p.send, c_.row * bytes};
    a.norm_out = {p.receive, c_.row * bytes};
    a.part_stride = c_.count * bytes;
    a.total_rows = c_.rows();
    a.rows = static_cast<int32_t>(c_.rows());
    a.chunk_rows = a.rows;
    a.hidden = static_cast<int32_t>(c_.row);
    a.last_hidden = static_cast<int32_t>(c_.count - (c_.rows() - 1) * c_.row);
    a.packs = static_cast<int32_t>(c_.packs());
    a.op = c_.op;
    a.root = c_.root;
    return a;
  }

  GpuWorld& world_;
  Collective c_;
  std::vector<Matrix> send_;
  std::vector<Place> place_;
};

std::string run_group(const std::vector<Collective>& group, int devices, uint64_t seed) {
  GpuOptions options;
  options.ranks = group[0].ranks;
  options.devices = devices;
  options.start_epoch = 1 + seed % 3;
  for (const Collective& c : group)
    options.slot_bytes =
        std::max(options.slot_bytes, static_cast<uint64_t>(c.rows() * c.packs() * 16));
  GpuWorld world(options);
  std::vector<std::unique_ptr<Call>> calls;
  for (const Collective& c : group) calls.push_back(std::make_unique<Call>(world, c));
  for (const auto& call : calls)
    for (int r = 0; r < options.ranks; ++r)
      call->launch(static_cast<int>((static_cast<uint64_t>(r) + seed) %
                                    static_cast<uint64_t>(options.ranks)));
  if (!world.wait(30)) return "launches did not end";
  std::string error;
  for (const auto& call : calls)
    for (int r = 0; r < options.ranks && error.empty(); ++r) error = call->check(r);
  if (error.empty()) error = world.not_at_rest(group.size());
  if (error.empty()) return "";
  for (const Collective& c : group) error += "\n      in " + c.text();
  return error;
}

}  // namespace

int check_collectives(int devices, int groups, uint64_t seed) {
  int bad = 0;
  for (const int ranks : {1, 2, 3, 4, 8}) {
    int bad_here = 0;
    for (int g = 0; g < groups && bad_here < 4; ++g) {
      std::vector<Collective> group;
      for (uint64_t i = 0; i < 10; ++i)
        group.push_back(draw(
            mix(seed, static_cast<uint64_t>(g), i, static_cast<uint64_t>(ranks)) % 100000, ranks));
      const std::string error = run_group(group, devices, mix(seed, static_cast<uint64_t>(g)));
      if (error.empty()) continue;
      ++bad_here;
      std::printf("NOT EXACT (collectives, ranks %d, group %d): %s\n", ranks, g, error.c_str());
    }
    std::printf("collectives, ranks %d on %d GPUs: %d groups of 10, %d wrong\n",
                ranks,
                devices,
                groups,
                bad_here);
    std::fflush(stdout);
    bad += bad_here;
  }
  return bad;
}

}  // namespace fccl::test
