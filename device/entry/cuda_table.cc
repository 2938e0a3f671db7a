// The table of CUDA kernels: which instance serves a kernel and a row. All instances of a kernel
// give the same bits, so a rank may take any of them.
#include <algorithm>
#include <initializer_list>

#include "device/entry/cuda_entry.h"

namespace fccl {

#define FCCL_NORM_ENTRIES(space)                               \
  namespace space {                                            \
  CudaKernel find_norm_f32(const KernelId& id, int ranks);     \
  CudaKernel find_norm_f16(const KernelId& id, int ranks);     \
  CudaKernel find_norm_bf16(const KernelId& id, int ranks);    \
  inline CudaKernel find_norm(const KernelId& id, int ranks) { \
    switch (id.type) {                                         \
      case TypeKind::F32:                                      \
        return find_norm_f32(id, ranks);                       \
      case TypeKind::F16:                                      \
        return find_norm_f16(id, ranks);                       \
      case TypeKind::BF16:                                     \
        return find_norm_bf16(id, ranks);                      \
    }                                                          \
    return {};                                                 \
  }                                                            \
  }
FCCL_NORM_ENTRIES(cuda_k0)
FCCL_NORM_ENTRIES(cuda_k1)
FCCL_NORM_ENTRIES(cuda_k2)
FCCL_NORM_ENTRIES(cuda_k4)
#undef FCCL_NORM_ENTRIES

namespace cuda_k0 {
CudaKernel find_collective_f32(const KernelId& id);
CudaKernel find_collective_f16(const KernelId& id);
CudaKernel find_collective_bf16(const KernelId& id);
}  // namespace cuda_k0

namespace {

CudaKernel find_collective(const KernelId& id) {
  switch (id.type) {
    case TypeKind::F32:
      return cuda_k0::find_collective_f32(id);
    case TypeKind::F16:
      return cuda_k0::find_collective_f16(id);
    case TypeKind::BF16:
      return cuda_k0::find_collective_bf16(id);
  }
  return {};
}

CudaKernel find_held(const KernelId& id, int ranks, int packs) {
  switch (packs) {
    case 1:
      return cuda_k1::find_norm(id, ranks);
    case 2:
      return cuda_k2::find_norm(id, ranks);
    case 4:
      return cuda_k4::find_norm(id, ranks);
    default:
      return {};
  }
}

// What blocks of a launch can work on at the same time: rows or tiles.
int64_t units_of_work(const KernelId& id, const KernelArgs& a) {
  const bool reduces = id.op == OpKind::FusedNorm || id.op == OpKind::AllReduce;
  const bool by_row = reduces && id.algo == AlgoKind::Oneshot && id.protocol != ProtocolKind::Flags;
  int64_t rows = a.rows;
  if (reduces && id.algo == AlgoKind::TwoshotRows)  // of the rank that owns most
    rows = std::min<int64_t>((a.total_rows + a.ex.ranks - 1) / a.ex.ranks - a.chunk_first,
                             a.chunk_rows);
  const int64_t tile = by_row ? 1 : std::max(a.ex.tile_rows, 1);
  return std::max<int64_t>((rows + tile - 1) / tile, 1);
}

}  // namespace

CudaKernel find_cuda_kernel(const KernelId& id, int ranks, int packs, int packs_per_thread) {
  if (id.op != OpKind::FusedNorm) return find_collective(id);
  const int wish = packs_per_thread > 0 ? packs_per_thread : 1;
  for (int held = 1; held <= kMostHeldPacks; held *= 2) {
    if (held < wish || packs > held * held_max_threads(held, ranks)) continue;
    const CudaKernel found = find_held(id, ranks, held);
    if (found.entry != nullptr) return found;
  }
  return cuda_k0::find_norm(id, ranks);
}

// One pack per thread where a row fits: the fastest at every size from 1 x 2048 to 2048 x 8192 of
// two H200 and two ranks. As many blocks as there is work, up to 1024 threads on each SM: half as
// many cost 6 % at 256 rows and 1 % at 2048.
CudaShape cuda_shape(const KernelId& id, const KernelArgs& args, int sm_count,
                     int packs_per_thread) {
  CudaShape shape;
  KernelId served = id;
  served.plain = id.plain && args.ex.checked == 0;  // the kernels for speed have no checked mode
  shape.kernel = find_cuda_kernel(served, args.ex.ranks, args.packs, packs_per_thread);
  const int held = std::max(shape.kernel.packs, 1);
  const int wanted = (std::max(args.packs, 1) + held - 1) / held;
  shape.threads = std::min((wanted + 31) / 32 * 32, shape.kernel.max_threads);
  const bool streamed = shape.kernel.packs == 0;
  shape.shared_bytes = streamed ? stream_shared_bytes(args.packs) : 0;
  // Instances of fewer threads have more registers.
  const int threads_per_sm =
      held > 1 || (!streamed && shape.kernel.max_threads < 1024) ? 512 : 1024;
  const int per_sm = std::max(threads_per_sm / std::max(shape.threads, 1), 1);
  shape.blocks =
      static_cast<int>(std::min<int64_t>(units_of_work(id, args), int64_t{per_sm} * sm_count));
  return shape;
}

void visit_cuda_kernels(int ranks, CudaKernelVisitor visit, void* context) {
  const OpKind ops[] = {OpKind::FusedNorm,
                        OpKind::AllReduce,
                        OpKind::ReduceScatter,
                        OpKind::AllGather,
                        OpKind::Broadcast};
  const auto found = [&](const CudaKernel& kernel) {
    if (kernel.entry != nullptr) visit(context, kernel, ranks);
  };
  KernelId id;
  for (const OpKind op : ops)
    for (const AlgoKind algo : {AlgoKind::Oneshot, AlgoKind::TwoshotRows, AlgoKind::TwoshotCols})
      for (const ProtocolKind protocol :
           {ProtocolKind::Lamport, ProtocolKind::Flags, ProtocolKind::LL})
        for (const TypeKind type : {TypeKind::F32, TypeKind::F16, TypeKind::BF16}) {
          id = {op, algo, protocol, type, true};
          if (op != OpKind::FusedNorm) {
            found(find_collective(id));
            continue;
          }
          for (int held = 1; held <= kMostHeldPacks; held *= 2) found(find_held(id, ranks, held));
          found(cuda_k0::find_norm(id, ranks));
        }
}

}  // namespace fccl
