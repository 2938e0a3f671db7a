#include "fccl_perf/case.h"

#include "fccl_perf/models.h"

namespace perf {
namespace {

std::vector<int64_t> swept_bytes(const Options& options) {
  std::vector<int64_t> sizes;
  for (std::size_t bytes = options.min_bytes; bytes <= options.max_bytes;) {
    sizes.push_back(static_cast<int64_t>(bytes));
    if (options.step_factor > 1 && bytes > 0) {
      bytes *= options.step_factor;
    } else {
      bytes += options.step_factor > 1 ? 1 : options.step_bytes;
    }
  }
  return sizes;
}

Case fused_case(Op op, int datatype, int64_t tokens, int64_t hidden) {
  Case one;
  one.op = op;
  one.datatype = datatype;
  one.tokens = tokens;
  one.hidden = hidden;
  one.count = one.send_count = one.recv_count = tokens * hidden;
  one.bytes = one.count * static_cast<int64_t>(type_bytes(datatype));
  return one;
}

void sweep_fused(const Options& options, int datatype, std::vector<Case>& cases) {
  for (const std::string& name : options.models) {
    const Model& model = *find_model(name);
    for (const int64_t tokens : model.tokens) {
      cases.push_back(fused_case(options.op, datatype, tokens, model.hidden));
    }
  }
  if (!options.models.empty()) return;
  for (const int64_t hidden : options.hidden) {
    if (!options.sizes_given) {
      for (const int64_t tokens : options.tokens) {
        cases.push_back(fused_case(options.op, datatype, tokens, hidden));
      }
      continue;
    }
    int64_t last = -1;
    for (const int64_t bytes : swept_bytes(options)) {
      const int64_t tokens = bytes / (hidden * static_cast<int64_t>(type_bytes(datatype)));
      if (tokens != last && tokens > 0)
        cases.push_back(fused_case(options.op, datatype, tokens, hidden));
      last = tokens;
    }
  }
}

// As nccl-tests: a rank's share in the scattered and gathered collectives is whole 16-byte packs,
// and the size is that of the larger side.
Case plain_case(const Options& options, int datatype, int redop, int root, int64_t bytes,
                int ranks) {
  Case one;
  one.op = options.op;
  one.datatype = datatype;
  one.redop = redop;
  one.root = root;
  const auto element = static_cast<int64_t>(type_bytes(datatype));
  const int64_t elements = bytes / element;
  const int64_t pack = 16 / element;
  const int64_t share = elements / ranks / pack * pack;
  switch (options.op) {
    case Op::kReduceScatter:
      one.send_count = share * ranks;
      one.recv_count = one.count = share;
      one.bytes = one.send_count * element;
      break;
    case Op::kAllGather:
      one.send_count = one.count = share;
      one.recv_count = share * ranks;
      one.bytes = one.recv_count * element;
      break;
    default:
      one.send_count = one.recv_count = one.count = elements;
      one.bytes = elements * element;
      break;
  }
  return one;
}

void sweep_plain(const Options& options, int datatype, int ranks, std::vector<Case>& cases) {
  const bool reduces = options.op == Op::kAllReduce || options.op == Op::kReduceScatter;
  const bool rooted = options.op == Op::kBroadcast;
  const std::vector<int> redops = reduces ? options.redops : std::vector<int>{-1};
  const int first = !rooted ? -1 : options.all_roots ? 0 : options.root;
  const int last = rooted && options.all_roots ? ranks - 1 : first;
  for (const int redop : redops) {
    for (int root = first; root <= last; ++root) {
      for (const int64_t bytes : swept_bytes(options)) {
        cases.push_back(plain_case(options, datatype, redop, root, bytes, ranks));
      }
    }
  }
}

}  // namespace

std::vector<Case> sweep(const Options& options, int ranks) {
  std::vector<Case> cases;
  for (const int datatype : options.types) {
    if (is_fused_shape(options.op)) {
      sweep_fused(options, datatype, cases);
    } else {
      sweep_plain(options, datatype, ranks, cases);
    }
  }
  return cases;
}

double bus_factor(Op op, int ranks) {
  if (op == Op::kBroadcast) return 1;
  const double share = static_cast<double>(ranks - 1) / ranks;
  return op == Op::kReduceScatter || op == Op::kAllGather ? share : 2 * share;
}

}  // namespace perf
