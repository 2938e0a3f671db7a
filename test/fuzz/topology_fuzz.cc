// FCCL_TOPO_FILE of any bytes: refused in one line, or a machine that can be laid out and written.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "topology/machine_source.h"

using namespace fccl;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t bytes) {
  Result<MachineFacts> machine =
      machine_from_xml(std::string(reinterpret_cast<const char*>(data), bytes));
  if (!machine.ok()) {
    if (machine.status().text().find('\n') != std::string::npos) std::abort();
    return 0;
  }
  machine->host_id = machine->boot_id_hash = 1;
  machine->allowed.add(0);
  Result<std::vector<RankFacts>> ranks = facts_from_machine(*machine, 3);
  if (ranks.ok()) {
    const CommFacts comm = classify(*ranks);
    if (comm_text(comm).empty() || comm_json(comm).empty()) std::abort();
  }
  if (machine_text(*machine).empty() || machine_json(*machine).empty()) std::abort();
  return 0;
}
