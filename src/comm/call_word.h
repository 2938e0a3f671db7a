// The word that stands for a call in its header: what must be equal on all ranks, in 32 bits that
// can be read back for an error text. Bits: op 3, type 2, algorithm 4, options (a hash) 5,
// hidden 18.
#pragma once
#include <cstdint>
#include <string>

#include "base/status.h"
#include "device/layout/args.h"

namespace fccl {

uint32_t call_word(const KernelId& id, int64_t hidden, uint32_t options);
std::string describe_call(uint32_t word);

// A failure that is sent to peers carries its code in front of the text, and is read back from
// there.
Status with_code_in_text(const Status& status);
Code code_in_text(const std::string& text);

}  // namespace fccl
