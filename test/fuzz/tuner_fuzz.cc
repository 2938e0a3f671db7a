// A tuner file of any bytes: refused in one line that names the file, or costs from which every
// request gets the same plan twice, one that can run or says why not.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "harness/cpu_facts.h"
#include "memory/workspace.h"
#include "select/plan.h"
#include "select/tuner_file.h"

using namespace fccl;

namespace {

void demand(bool truth) {
  if (!truth) std::abort();
}

void plan(const std::vector<CostRow>& costs, int ranks) {
  Situation situation;
  situation.facts = test::cpu_facts(ranks, 0xFF);
  situation.layout = workspace_layout(BackendKind::Cpu, ranks, 0);
  situation.costs = costs;
  for (const int64_t rows : {int64_t{1}, int64_t{17}, int64_t{1} << 20}) {
    Request request;
    request.rows = rows;
    request.hidden = 4096;
    const Plan plan = make_plan(request, situation);
    const Plan again = make_plan(request, situation);
    demand(plan.supported || !plan.reason.empty());
    demand(plan.supported == again.supported && plan.algo == again.algo &&
           plan.protocol == again.protocol && plan.launches == again.launches);
    if (plan.supported) demand(plan.launches >= 1 && plan.chunk_rows >= 1 && plan.max_blocks >= 0);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t bytes) {
  Result<std::vector<CostRow>> costs =
      parse_tuner_text(std::string(reinterpret_cast<const char*>(data), bytes));
  if (!costs.ok()) {
    const std::string& why = costs.status().text();
    demand(costs.status().code() == Code::InvalidArgument);
    demand(why.rfind("tuner file", 0) == 0 && why.find('\n') == std::string::npos);
    return 0;
  }
  for (const int ranks : {1, 2, 8}) plan(*costs, ranks);
  return 0;
}
