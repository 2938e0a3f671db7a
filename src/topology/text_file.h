// Reading the small text files of /proc and /sys. A file that cannot be read is an empty text:
// facts that are not there are absent, never an error.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "topology/facts.h"

namespace fccl {

// At most 1 MiB, without the newlines at the end.
std::string read_text_file(const std::string& path);
// The first number in the file, else `fallback`. Understands 0x.
int64_t read_number_file(const std::string& path, int64_t fallback);
// "0-3,8" -> the numbers; what is malformed or above `limit` is left out.
std::vector<int> parse_list(const std::string& text, int limit);
CpuMask parse_cpu_list(const std::string& text);
std::vector<std::string> split(const std::string& text, char separator);
// Names in a folder, sorted, without . and ..
std::vector<std::string> list_folder(const std::string& path);

}  // namespace fccl
