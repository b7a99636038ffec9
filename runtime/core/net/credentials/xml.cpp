#include <algorithm>
#include <pugixml.hpp>
#include <string_view>

#include "runtime/core/net/credentials/api.hpp"

namespace rille::net {

namespace {

constexpr int xml_depth_max = 128;

// Elements within elements, at most; not less than there are. Deep ones would overflow the stack, pugixml's destructor
// included, so this looks at the text before it is parsed.
int depth_of(std::string_view text) {
  int depth = 0, deepest = 0;
  for (auto at = text.find('<'); at != text.npos; at = text.find('<', at + 1)) {
    const char next = at + 1 < text.size() ? text[at + 1] : '\0';
    if (next == '/') --depth;
    if (next == '/' || next == '!' || next == '?') continue;
    const auto end = text.find('>', at);
    if (end != text.npos && text[end - 1] == '/') continue;
    deepest = std::max(deepest, ++depth);
  }
  return deepest;
}

Value to_value(const pugi::xml_node& node) {
  const pugi::xml_node first = node.first_child();
  if (!first || first.type() == pugi::node_pcdata || first.type() == pugi::node_cdata) return Value(node.child_value());
  const std::string_view name = first.name();
  if (name == "item" || name == "member") {
    Value::Array list;
    for (const pugi::xml_node& child : node.children()) list.push_back(to_value(child));
    return Value(std::move(list));
  }
  Value out{Value::Object{}};
  for (const pugi::xml_node& child : node.children()) {
    if (out[child.name()].is_null()) {
      out.set(child.name(), to_value(child));
      continue;
    }
    const Value before = out[child.name()];
    Value::Array list = before.as_array() ? *before.as_array() : Value::Array{before};
    list.push_back(to_value(child));
    out.set(child.name(), std::move(list));
  }
  return out;
}

}  // namespace

Result<Value> read_xml(const std::string& text) {
  if (depth_of(text) > xml_depth_max)
    return make_error(ErrorKind::integrity, "the response is XML nested deeper than 128 levels");
  pugi::xml_document document;
  const pugi::xml_parse_result parsed = document.load_buffer(text.data(), text.size());
  if (!parsed) return make_error(ErrorKind::integrity, std::string("the response is not XML: ") + parsed.description());
  const pugi::xml_node root = document.document_element();
  Value out{Value::Object{}};
  out.set(root.name(), to_value(root));
  return out;
}

}  // namespace rille::net
