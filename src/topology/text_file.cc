// See text_file.h. Plain descriptors, because streams of a library may meet a host program's
// locale.
#include "topology/text_file.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <memory>

#include "base/unique_fd.h"

namespace fccl {

std::string read_text_file(const std::string& path) {
  constexpr size_t kMaxBytes = 1 << 20;
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  std::string text;
  if (!file.valid()) return text;
  char buffer[4096];
  while (text.size() < kMaxBytes) {
    const ssize_t got = ::read(file.get(), buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    text.append(buffer, static_cast<size_t>(got));
  }
  while (!text.empty() && (text.back() == '\n' || text.back() == '\0')) text.pop_back();
  return text;
}

int64_t read_number_file(const std::string& path, int64_t fallback) {
  const std::string text = read_text_file(path);
  char* end = nullptr;
  const long long number = std::strtoll(text.c_str(), &end, 0);
  return end == text.c_str() ? fallback : number;
}

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  size_t begin = 0;
  while (begin <= text.size()) {
    const size_t end = std::min(text.find(separator, begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

std::vector<int> parse_list(const std::string& text, int limit) {
  std::vector<int> numbers;
  for (const std::string& part : split(text, ',')) {
    int first = 0, last = 0;
    const char* stop = part.data() + part.size();
    auto read = std::from_chars(part.data(), stop, first);
    if (read.ec != std::errc() || first < 0) continue;
    last = first;
    if (read.ptr != stop) {
      if (*read.ptr != '-') continue;
      read = std::from_chars(read.ptr + 1, stop, last);
      if (read.ec != std::errc() || read.ptr != stop) continue;
    }
    for (int i = first; i <= std::min(last, limit - 1); ++i) numbers.push_back(i);
  }
  return numbers;
}

CpuMask parse_cpu_list(const std::string& text) {
  CpuMask mask;
  for (int cpu : parse_list(text, kMaxCpus)) mask.add(cpu);
  return mask;
}

std::vector<std::string> list_folder(const std::string& path) {
  std::vector<std::string> names;
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(::opendir(path.c_str()), ::closedir);
  if (folder == nullptr) return names;
  while (const dirent* entry = ::readdir(folder.get())) {
    const std::string name = entry->d_name;
    if (name != "." && name != "..") names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace fccl
