#include "comm/query.h"

#include <fccl/fccl.h>

#include "memory/workspace.h"
#include "select/tuner_file.h"
#include "topology/detect.h"

namespace fccl {

Result<BackendKind> expected_backend(const Settings& settings) {
  Status last;
  for (const BackendKind kind : {BackendKind::Cuda, BackendKind::Hip, BackendKind::Cpu}) {
    const bool forced = settings.backend == static_cast<int32_t>(kind);
    if (settings.backend != fcclBackendAuto && !forced) continue;
    auto found = find_backend(kind, settings.env);
    last = found.ok() ? (*found)->available() : found.status();
    if (last.ok()) return kind;
  }
  return last;
}

Result<Situation> expected_situation(const Settings& settings, int ranks) {
  FCCL_TRY_ASSIGN(kind, expected_backend(settings));
  FCCL_TRY_ASSIGN(machine, detect_machine(settings.env));
  auto found = find_backend(kind, settings.env);
  if (!found.ok()) return found.status();
  std::vector<RankFacts> all;
  for (int r = 0; r < ranks; ++r) {
    RankFacts facts = local_rank_facts(machine, r);
    facts.process_token += static_cast<uint64_t>(r);  // processes of their own
    int device = settings.device;
    if (device < 0 && kind != BackendKind::Cpu) device = r;
    FCCL_TRY((*found)->describe(device, facts));
    if (facts.has_device != 0) place_device(machine, &facts);
    all.push_back(facts);
  }
  Situation situation;
  situation.backend = kind;
  situation.facts = classify(all, kind == BackendKind::Cpu ? Between::Hosts : Between::Devices);
  situation.layout = workspace_layout(kind, ranks, settings.capacity_bytes);
  situation.algo = settings.env.algo;
  situation.max_blocks = settings.max_blocks;
  situation.costs = builtin_costs(kind, situation.facts);
  if (!settings.env.tuner_file.empty()) {
    FCCL_TRY_ASSIGN(text, read_tuner_file(settings.env.tuner_file));
    FCCL_TRY_ASSIGN(costs, parse_tuner_text(text));
    situation.costs = std::move(costs);
  }
  return situation;
}

}  // namespace fccl
