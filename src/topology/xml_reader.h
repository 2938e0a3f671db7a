// XmlElement: as much XML as hwloc writes, read with bounds on size, depth and number, because the
// text comes from a file that a user names and libhwloc's own reader crashes and prints on a
// spoiled one. No DTD, no entities but the five of XML and numbers, no processing instructions
// kept.
#pragma once
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"

namespace fccl {

struct XmlElement {
  std::string name;
  std::vector<std::pair<std::string, std::string>> attributes;
  std::vector<XmlElement> children;
  std::string text;  // all character data directly inside

  // The value, or "" if there is no such attribute.
  const std::string& attribute(std::string_view key) const;
};

inline constexpr size_t kMaxXmlBytes = 16u << 20;

// The one root element. InvalidArgument says what is wrong and in which line.
Result<XmlElement> read_xml(std::string_view text);

}  // namespace fccl
