// See xml_reader.h.
#include "topology/xml_reader.h"

#include <algorithm>
#include <cctype>
#include <charconv>

namespace fccl {
namespace {

constexpr int kMaxDepth = 64;
constexpr int kMaxElements = 200000;
constexpr int kMaxAttributes = 64;

bool is_space(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

bool is_name(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-' || c == '.' ||
         c == ':';
}

class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  Result<XmlElement> read() {
    FCCL_TRY(skip_misc());
    XmlElement root;
    FCCL_TRY(read_element(0, &root));
    FCCL_TRY(skip_misc());
    if (at_ != text_.size()) return wrong("text after the root element");
    return root;
  }

 private:
  Status wrong(const char* what) const {
    const auto line =
        1 + std::count(text_.begin(),
                       text_.begin() + static_cast<std::ptrdiff_t>(std::min(at_, text_.size())),
                       '\n');
    return error(Code::InvalidArgument, "line %ld: %s", static_cast<long>(line), what);
  }

  bool starts(std::string_view word) const { return text_.compare(at_, word.size(), word) == 0; }

  void skip_spaces() {
    while (at_ < text_.size() && is_space(text_[at_])) ++at_;
  }

  Status skip_to(std::string_view end) {
    const size_t found = text_.find(end, at_);
    if (found == std::string_view::npos) return wrong("cut off");
    at_ = found + end.size();
    return {};
  }

  // Comments, the declaration and a document type without a subset of its own.
  Status skip_misc() {
    for (skip_spaces(); at_ < text_.size(); skip_spaces()) {
      if (starts("<?")) {
        FCCL_TRY(skip_to("?>"));
      } else if (starts("<!--")) {
        FCCL_TRY(skip_to("-->"));
      } else if (starts("<!DOCTYPE")) {
        const size_t begin = at_;
        FCCL_TRY(skip_to(">"));
        if (text_.substr(begin, at_ - begin).find('[') != std::string_view::npos) {
          return wrong("declarations are not read");
        }
      } else {
        break;
      }
    }
    return {};
  }

  Status read_name(std::string* name) {
    const size_t begin = at_;
    while (at_ < text_.size() && is_name(text_[at_])) ++at_;
    if (at_ == begin) return wrong("a name is missing");
    *name = text_.substr(begin, at_ - begin);
    return {};
  }

  // Appends raw text with its entities replaced.
  Status decode(std::string_view raw, std::string* out) const {
    constexpr std::pair<std::string_view, char> kEntities[] = {
        {"lt", '<'}, {"gt", '>'}, {"amp", '&'}, {"quot", '"'}, {"apos", '\''}};
    for (size_t i = 0; i < raw.size(); ++i) {
      if (raw[i] != '&') {
        *out += raw[i] == '\0' ? '?' : raw[i];
        continue;
      }
      const size_t end = raw.find(';', i);
      if (end == std::string_view::npos) return wrong("an entity does not end");
      const std::string_view entity = raw.substr(i + 1, end - i - 1);
      i = end;
      char c = '\0';
      for (const auto& [name, character] : kEntities) {
        if (entity == name) c = character;
      }
      if (c == '\0' && entity.size() > 1 && entity[0] == '#') c = numbered(entity.substr(1));
      if (c == '\0') return wrong("unknown entity");
      *out += c;
    }
    return {};
  }

  // What lies outside ASCII is of no use here and becomes '?'; '\0': no number.
  static char numbered(std::string_view digits) {
    const bool hex = digits[0] == 'x';
    if (hex) digits.remove_prefix(1);
    uint32_t code = 0;
    const auto [end, failure] =
        std::from_chars(digits.data(), digits.data() + digits.size(), code, hex ? 16 : 10);
    if (failure != std::errc() || end != digits.data() + digits.size()) return '\0';
    return code > 0 && code < 0x80 ? static_cast<char>(code) : '?';
  }

  Status read_attribute(XmlElement* element) {
    std::pair<std::string, std::string> attribute;
    FCCL_TRY(read_name(&attribute.first));
    skip_spaces();
    if (at_ >= text_.size() || text_[at_] != '=') return wrong("an attribute has no value");
    ++at_;
    skip_spaces();
    if (at_ >= text_.size() || (text_[at_] != '"' && text_[at_] != '\'')) {
      return wrong("an attribute has no quotes");
    }
    const char quote = text_[at_++];
    const size_t end = text_.find(quote, at_);
    if (end == std::string_view::npos) return wrong("an attribute does not end");
    FCCL_TRY(decode(text_.substr(at_, end - at_), &attribute.second));
    at_ = end + 1;
    if (static_cast<int>(element->attributes.size()) == kMaxAttributes) {
      return wrong("too many attributes");
    }
    element->attributes.push_back(std::move(attribute));
    return {};
  }

  Status read_element(int depth, XmlElement* element) {
    if (at_ >= text_.size() || text_[at_] != '<') return wrong("an element is missing");
    if (depth == kMaxDepth) return wrong("nested too deep");
    if (++elements_ > kMaxElements) return wrong("too many elements");
    ++at_;
    FCCL_TRY(read_name(&element->name));
    for (skip_spaces(); at_ < text_.size() && is_name(text_[at_]); skip_spaces()) {
      FCCL_TRY(read_attribute(element));
    }
    if (starts("/>")) {
      at_ += 2;
      return {};
    }
    if (!starts(">")) return wrong("a tag does not end");
    ++at_;
    return read_content(depth, element);
  }

  // Up to and with the end tag.
  Status read_content(int depth, XmlElement* element) {
    for (;;) {
      const size_t open = text_.find('<', at_);
      if (open == std::string_view::npos) return wrong("cut off");
      FCCL_TRY(decode(text_.substr(at_, open - at_), &element->text));
      at_ = open;
      if (starts("</")) break;
      if (starts("<!--")) {
        FCCL_TRY(skip_to("-->"));
      } else if (starts("<!") || starts("<?")) {
        return wrong("declarations are not read");
      } else {
        element->children.emplace_back();
        FCCL_TRY(read_element(depth + 1, &element->children.back()));
      }
    }
    at_ += 2;
    std::string name;
    FCCL_TRY(read_name(&name));
    if (name != element->name) return wrong("an end tag does not fit");
    skip_spaces();
    if (!starts(">")) return wrong("a tag does not end");
    ++at_;
    return {};
  }

  std::string_view text_;
  size_t at_ = 0;
  int elements_ = 0;
};

}  // namespace

const std::string& XmlElement::attribute(std::string_view key) const {
  static const std::string none;
  for (const auto& [known, value] : attributes) {
    if (known == key) return value;
  }
  return none;
}

Result<XmlElement> read_xml(std::string_view text) {
  if (text.size() > kMaxXmlBytes) {
    return Status(Code::InvalidArgument, "longer than 16 MiB");
  }
  return Reader(text).read();
}

}  // namespace fccl
