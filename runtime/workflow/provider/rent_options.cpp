#include "runtime/workflow/provider/rent_options.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "runtime/core/base/units.hpp"
#include "runtime/workflow/provider/manner.hpp"
#include "runtime/workflow/provider/providers.hpp"

namespace rille::provider {

Result<std::int64_t> read_size(const char* name, const Value& said) {
  const std::string* text = said.as_string();
  const bool bare = text && !text->empty() && text->find_first_not_of("0123456789. ") == std::string::npos;
  if (!text || bare) {
    const std::string number = text ? *text : said.to_json();
    return make_error(ErrorKind::invalid, fmt::format("{} = {}: expected a size with a unit", name, said.to_json()),
                      fmt::format("{} = \"{}GB\"", name, said.as_number() || bare ? number : "200"));
  }
  Result<std::int64_t> bytes = parse_size_bytes(*text);
  if (bytes && *bytes > 0) return bytes;
  Error e = bytes ? make_error(ErrorKind::invalid, fmt::format("'{}' is not a size", *text), "it must be above zero")
                  : std::move(bytes).error();
  e.message = fmt::format("{}: {}", name, e.message);
  return e;
}

namespace {

struct RentOption {
  const char *name, *things, *example;
  bool for_spot = true;  // allowed for spot machines
};
constexpr RentOption all[] = {{"reservation", "reservations", "reservation = \"cr-0123456789abcdef0\"", false},
                              {"image", "images", "image = \"ami-0123456789abcdef0\""},
                              {"qos", "qos", "qos = \"high\""},
                              {"priority_class", "priority classes", "priority_class = \"batch\""}};

bool understands(const std::string& provider, const char* option) {
  const auto& named = manner_of(provider).options;
  return std::any_of(named.begin(), named.end(), [option](const char* one) { return std::string_view(one) == option; });
}

std::string who_understands(const char* option) {
  std::vector<std::string> out;
  for (const std::string& name : provider_names())
    if (understands(name, option)) out.push_back(name);
  return fmt::format("{}", fmt::join(out, ", "));
}

Result<> check(const RentOption& option, const Value& said, const OfferQuery& query) {
  const auto wrong = [&](const std::string& what, std::string hint) {
    return make_error(ErrorKind::invalid, fmt::format("{} = {}: {}", option.name, said.to_json(), what),
                      std::move(hint));
  };
  if (!said.as_string() || said.as_string()->empty()) return wrong("expected a name", option.example);
  if (query.providers.size() != 1)
    return wrong("this option belongs to one provider, which must be named too",
                 fmt::format("provider = \"..\", one of: {}", who_understands(option.name)));
  if (!understands(query.providers.front(), option.name)) {
    Error e = lacks(query.providers.front(), option.things);
    e.hint = fmt::format("remove {}; supported by: {}", option.name, who_understands(option.name));
    return e;
  }
  if (query.spot && !option.for_spot)
    return wrong("not possible for spot machines", "remove either this or spot = true");
  return {};
}

}  // namespace

const std::vector<std::string>& rent_options() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> out;
    for (const RentOption& option : all) out.emplace_back(option.name);
    return out;
  }();
  return names;
}

Result<Value> read_rent_options(const Value& options, const OfferQuery& query) {
  Value out;
  for (const RentOption& option : all) {
    const Value& said = options[option.name];
    if (said.is_null()) continue;
    RILLE_CHECK(check(option, said, query));
    out.set(option.name, said);
  }
  return out;
}

void tell_cluster(Value& extra, const std::string& name) {
  if (!name.empty()) extra.set("cluster", name);
}
void tell_rdma(Value& extra) { extra.set("rdma", true); }
std::string cluster_in(const CreateRequest& request) { return request.extra.text("cluster"); }
bool wants_rdma(const CreateRequest& request) { return request.extra.boolean("rdma"); }
std::string image_in(const CreateRequest& request, const std::string& of_settings) {
  return request.extra.text("image", of_settings);
}

}  // namespace rille::provider
