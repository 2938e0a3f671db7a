// What stands for a call in its header: what must be equal on all ranks. The shape in 32 bits that
// can be read back for an error text (op 3, type 2, algorithm 4, hidden 23), and a hash of the
// options in 16: of 65536 ways to differ in them alone, one is not seen.
#pragma once
#include <cstdint>
#include <string>

#include "base/status.h"
#include "device/layout/args.h"

namespace fccl {

struct CallWord {
  uint32_t shape;
  uint32_t options;
};
CallWord call_word(const KernelId& id, int64_t hidden, uint32_t options);
std::string describe_call(const CallWord& word);

// A failure that is sent to peers carries its code in front of the text, and is read back from
// there.
Status with_code_in_text(const Status& status);
Code code_in_text(const std::string& text);

}  // namespace fccl
