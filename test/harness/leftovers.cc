// See leftovers.h.
#include "harness/leftovers.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

namespace fccl::test {
namespace {

size_t entries(const char* folder) {
  size_t count = 0;
  std::error_code ignored;
  for (auto it = std::filesystem::directory_iterator(folder, ignored);
       it != std::filesystem::directory_iterator();
       ++it)
    ++count;
  return count;
}

bool contains(const std::string& text, const char* part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

Holdings own_holdings() {
  Holdings h;
  h.descriptors = entries("/proc/self/fd");
  h.threads = entries("/proc/self/task");
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);)
    if (contains(line, "/memfd:") || contains(line, "/dev/shm/")) ++h.memory_files;
  return h;
}

Holdings settled_holdings(const Holdings& before) {
  Holdings now = own_holdings();
  for (int i = 0; i < 200 && !(now == before); ++i) {
    usleep(5000);
    now = own_holdings();
  }
  return now;
}

bool operator==(const Holdings& a, const Holdings& b) {
  return a.descriptors == b.descriptors && a.threads == b.threads &&
         a.memory_files == b.memory_files;
}

std::string text_of(const Holdings& h) {
  return std::to_string(h.descriptors) + " descriptors, " + std::to_string(h.threads) +
         " threads, " + std::to_string(h.memory_files) + " memory files";
}

std::vector<std::string> named_things() {
  std::vector<std::string> found;
  std::error_code ignored;
  for (const char* folder : {"/dev/shm", "/tmp", "/var/tmp", "/run"}) {
    for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
      if (!contains(entry.path().filename().string(), "fccl")) continue;
      // Plain files of that name may be anybody's, a build's for one.
      if (std::string(folder) == "/dev/shm" || entry.is_socket(ignored))
        found.push_back(entry.path().string());
    }
  }
  return found;
}

std::set<std::string> socket_names(pid_t pid) {
  std::set<std::string> held;  // "socket:[inode]"
  std::error_code ignored;
  const std::string folder = "/proc/" + std::to_string(pid) + "/fd";
  for (auto it = std::filesystem::directory_iterator(folder, ignored);
       pid != 0 && it != std::filesystem::directory_iterator();
       it.increment(ignored))
    held.insert(std::filesystem::read_symlink(it->path(), ignored).string());
  std::set<std::string> names;
  std::ifstream table("/proc/net/unix");
  for (std::string line; std::getline(table, line);) {
    std::istringstream fields(line);
    std::string number, references, protocol, flags, type, state, inode, name;
    fields >> number >> references >> protocol >> flags >> type >> state >> inode >> name;
    if (contains(name, "fccl") && (pid == 0 || held.count("socket:[" + inode + "]") != 0))
      names.insert(name);
  }
  return names;
}

}  // namespace fccl::test
