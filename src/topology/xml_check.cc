// A quick look at hwloc XML before hwloc reads it: hwloc trusts counts, depth and mask lengths, and
// a file named in the environment may be any file. Not a parser: it follows tags and attributes
// only as far as needed to bound them.
#include <algorithm>
#include <cctype>
#include <charconv>
#include <string_view>

#include "topology/machine_source.h"

namespace fccl {
namespace {

constexpr size_t kMaxBytes = 16u << 20;
constexpr int kMaxDepth = 64;
constexpr int kMaxObjects = 65536;
constexpr size_t kMaxAttributeBytes = 8192;

struct Bound {
  std::string_view attribute;
  uint64_t most;
};
// hwloc allocates by these numbers.
constexpr Bound kBounds[] = {{"nbobjs", 1024}, {"os_index", 65535}, {"length", kMaxBytes}};

Status refuse(const char* what) {
  return error(Code::InvalidArgument, "no usable hwloc XML: %s", what);
}

Status check_attribute(std::string_view name, std::string_view value) {
  if (value.size() > kMaxAttributeBytes) return refuse("an attribute is too long");
  for (const Bound& bound : kBounds) {
    if (name != bound.attribute) continue;
    uint64_t number = 0;
    const auto [end, failure] = std::from_chars(value.data(), value.data() + value.size(), number);
    if (failure != std::errc() || end != value.data() + value.size() || number > bound.most) {
      return error(Code::InvalidArgument,
                   "no usable hwloc XML: %.*s=\"%.*s\" is not a number up to %llu",
                   static_cast<int>(name.size()),
                   name.data(),
                   static_cast<int>(std::min<size_t>(value.size(), 32)),
                   value.data(),
                   static_cast<unsigned long long>(bound.most));
    }
  }
  return {};
}

// name="value" pairs of one tag.
Status check_attributes(std::string_view tag) {
  size_t at = 0;
  while ((at = tag.find('=', at)) != std::string_view::npos) {
    size_t begin = at;
    while (begin > 0 &&
           (std::isalnum(static_cast<unsigned char>(tag[begin - 1])) || tag[begin - 1] == '_')) {
      --begin;
    }
    const std::string_view name = tag.substr(begin, at - begin);
    if (at + 1 >= tag.size() || (tag[at + 1] != '"' && tag[at + 1] != '\'')) {
      return refuse("an attribute has no quotes");
    }
    const size_t close = tag.find(tag[at + 1], at + 2);
    if (close == std::string_view::npos) return refuse("an attribute does not end");
    FCCL_TRY(check_attribute(name, tag.substr(at + 2, close - at - 2)));
    at = close + 1;
  }
  return {};
}

// The end of the tag that begins at `open`, quotes respected.
size_t end_of_tag(std::string_view xml, size_t open) {
  char quote = '\0';
  for (size_t i = open; i < xml.size(); ++i) {
    if (quote != '\0') {
      if (xml[i] == quote) quote = '\0';
    } else if (xml[i] == '"' || xml[i] == '\'') {
      quote = xml[i];
    } else if (xml[i] == '>') {
      return i;
    }
  }
  return std::string_view::npos;
}

}  // namespace

Status check_hwloc_xml(const std::string& text) {
  const std::string_view xml = text;
  if (xml.size() > kMaxBytes) return refuse("longer than 16 MiB");
  if (xml.find('\0') != std::string_view::npos) return refuse("it holds zero bytes");
  if (xml.find("<!ENTITY") != std::string_view::npos) return refuse("it declares entities");
  int depth = 0, objects = 0;
  bool topology = false;
  size_t at = 0;
  while ((at = xml.find('<', at)) != std::string_view::npos) {
    const size_t end = end_of_tag(xml, at);
    if (end == std::string_view::npos) return refuse("a tag does not end");
    const std::string_view tag = xml.substr(at + 1, end - at - 1);
    at = end + 1;
    if (tag.empty()) return refuse("an empty tag");
    if (tag[0] == '?' || tag[0] == '!') continue;
    if (tag[0] == '/') {
      if (--depth < 0) return refuse("more tags end than begin");
      continue;
    }
    if (++depth > kMaxDepth) return refuse("nested too deep");
    if (tag.rfind("topology", 0) == 0) topology = true;
    if (tag.rfind("object", 0) == 0 && ++objects > kMaxObjects) return refuse("too many objects");
    FCCL_TRY(check_attributes(tag));
    if (tag.back() == '/') --depth;
  }
  if (depth != 0) return refuse("it is cut off");
  if (!topology || objects == 0) return refuse("it has no topology with objects");
  return {};
}

}  // namespace fccl
