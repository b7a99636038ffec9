#include <map>
#include <pugixml.hpp>
#include <string_view>

#include "runtime/core/net/credentials/api.hpp"

namespace rille::net {

namespace {

constexpr int xml_depth_max = 128;

// Stops at a node too deep for the recursion of to_value. pugixml's parser and traverse() do not recurse.
struct DepthLimit : pugi::xml_tree_walker {
  bool for_each(pugi::xml_node&) override { return depth() <= xml_depth_max; }
};

Value to_value(const pugi::xml_node& node) {
  const pugi::xml_node first = node.first_child();
  if (!first || first.type() == pugi::node_pcdata || first.type() == pugi::node_cdata) return Value(node.child_value());
  const std::string_view name = first.name();
  if (name == "item" || name == "member") {
    Value::Array list;
    for (const pugi::xml_node& child : node.children()) list.push_back(to_value(child));
    return Value(std::move(list));
  }
  std::map<std::string, Value::Array, std::less<>> named;  // names that come more than once become lists
  for (const pugi::xml_node& child : node.children()) named[child.name()].push_back(to_value(child));
  Value out{Value::Object{}};
  for (auto& [key, values] : named) {
    if (values.size() == 1) out.set(key, std::move(values[0]));
    else out.set(key, std::move(values));
  }
  return out;
}

}  // namespace

Result<Value> read_xml(const std::string& text) {
  pugi::xml_document document;
  const pugi::xml_parse_result parsed = document.load_buffer(text.data(), text.size());
  if (!parsed)
    return make_error(
        ErrorKind::integrity, std::string("the response is not XML: ") + parsed.description(),
        "run it again; if it repeats, a proxy between this machine and the provider may change the responses");
  DepthLimit limit;
  if (!document.traverse(limit))
    return make_error(
        ErrorKind::integrity, "the response is XML nested deeper than 128 levels",
        "run it again; if it repeats, a proxy between this machine and the provider may change the responses");
  const pugi::xml_node root = document.document_element();
  Value out{Value::Object{}};
  out.set(root.name(), to_value(root));
  return out;
}

}  // namespace rille::net
