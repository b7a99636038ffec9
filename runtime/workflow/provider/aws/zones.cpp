#include "runtime/workflow/provider/aws/zones.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace rille::provider::aws {

Result<std::vector<Zone>> pair_zones(const std::vector<std::string>& names, const std::vector<std::string>& subnets) {
  if (!names.empty() && !subnets.empty() && names.size() != subnets.size())
    return make_error(ErrorKind::config,
                      fmt::format("aws: zone = {} and subnet = {} have different lengths", fmt::join(names, ", "),
                                  fmt::join(subnets, ", ")),
                      "name the zone of each subnet, in the same order; or no zones: they are looked up");
  std::vector<Zone> out;
  for (std::size_t i = 0; i < std::max(names.size(), subnets.size()); ++i)
    out.push_back({names.empty() ? "" : names[i], subnets.empty() ? "" : subnets[i]});
  return out;
}

TypeName read_type_name(const std::string& id) {
  const std::size_t at = id.find('@');
  return {id.substr(0, at), at == std::string::npos ? "" : id.substr(at + 1)};
}

Async<> Zones::learn(CancelToken token) {
  std::vector<std::string> asked;
  for (const Zone& zone : known_)
    if (zone.name.empty()) asked.push_back(zone.subnet);
  if (asked.empty()) co_return success();
  Result<std::map<std::string, std::string>> found = co_await ec2_.subnet_zones(asked, token);
  if (!found) {
    Error why = std::move(found).error();
    if (why.kind == ErrorKind::auth) why.hint += "; or name the `zone` of each subnet beside it in the settings";
    co_return why;
  }
  for (const std::string& subnet : asked)
    if ((*found)[subnet].empty()) co_return net::not_theirs("aws", "DescribeSubnets");
  for (Zone& zone : known_)
    if (zone.name.empty()) zone.name = (*found)[zone.subnet];
  for (const Zone& zone : known_)
    if (std::count_if(known_.begin(), known_.end(), [&](const Zone& z) { return z.name == zone.name; }) > 1)
      co_return make_error(ErrorKind::config,
                           fmt::format("aws: two of the configured subnets are in zone {}", zone.name),
                           "name one subnet of each zone");
  co_return success();
}

Async<std::string> Zones::name_of(std::string zone, CancelToken token) {
  if (!zone.empty() || known_.empty()) co_return zone;
  RILLE_CO_CHECK(co_await learn(std::move(token)));
  co_return known_.front().name;
}

Async<std::vector<Offer>> Zones::offers(Offer type, std::optional<Ec2::ZonePrices> prices, std::string only,
                                        CancelToken token) {
  if (known_.size() > 1 || prices || !only.empty()) RILLE_CO_CHECK(co_await learn(token));
  const auto fits = [&only](const std::string& zone) { return only.empty() || zone == only; };
  std::vector<Offer> out;
  const auto add = [&out, &type](const std::string& id, Micros price) {
    out.push_back(type);
    out.back().id = id;
    out.back().price_micros_per_hour = price;
  };
  if (known_.empty() && !prices) add(type.id, type.price_micros_per_hour);
  if (known_.empty() && prices)
    for (const auto& [zone, price] : *prices)
      if (fits(zone)) add(type.id + "@" + zone, price);
  for (std::size_t i = 0; i < known_.size(); ++i) {
    if (!fits(known_[i].name)) continue;
    const std::string id = i == 0 ? type.id : type.id + "@" + known_[i].name;
    if (!prices) add(id, type.price_micros_per_hour);
    else if (const auto at = prices->find(known_[i].name); at != prices->end()) add(id, at->second);
  }
  co_return out;
}

// Returns told_ rather than known_: a create repeated by another process, which has not requested the subnets' zones,
// must send the same parameters.
Async<Zone> Zones::of_offer(std::string zone, CancelToken token) {
  if (zone.empty()) co_return told_.empty() ? Zone() : told_.front();
  if (told_.empty()) co_return Zone{zone, ""};
  RILLE_CO_CHECK(co_await learn(token));
  for (std::size_t i = 0; i < known_.size(); ++i)
    if (known_[i].name == zone) co_return told_[i];
  co_return make_error(ErrorKind::config, fmt::format("aws: the settings no longer name zone {}", zone),
                       "restore it or its subnet until all machines there are released");
}

}  // namespace rille::provider::aws
