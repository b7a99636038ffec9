// SSH access if the settings have ssh_from: two firewall rules for each machine. One allows SSH from the ssh_from
// ranges; one denies SSH from all other addresses and overrides the network's own rules (such as "default-allow-ssh").
// Both apply to a network tag that only this machine has. Firewall rules have no labels, so their description holds the
// machine's tag and region. Rules are free, and are deleted when the lease is released.
#include "runtime/workflow/provider/cloud/wait.hpp"
#include "runtime/workflow/provider/gcp/compute.hpp"
#include "runtime/workflow/provider/outcome.hpp"

namespace rille::provider::gcp {

namespace {

using net::Effect;
using net::list_of;

constexpr std::int64_t rule_patience_ms = 60'000;
constexpr int lets_in = 900, keeps_out = 901;  // rule priorities: the lower number wins; default rules have 65534
constexpr const char* tag_begins = "rille-";

// Reads tag and region from the rule's description: "rille-0123456789ab-.. us-central1".
Rule read_rule(const Value& v) {
  const std::string told = v.text("description");
  const std::size_t space = told.find(' ');
  if (!told.starts_with(tag_begins) || space == std::string::npos) return {v.text("name"), "", ""};
  return {v.text("name"), told.substr(0, space), told.substr(space + 1)};
}

Value rule_of(const std::string& name, const std::string& about, const std::string& network,
              const std::string& network_tag) {
  Value out;
  out.set("name", name).set("description", about).set("network", network).set("direction", "INGRESS");
  return out.set("targetTags", Value::Array{Value(network_tag)});
}

}  // namespace

// Creates the firewall rule. Succeeds if it exists from an earlier send of the same create; if it is being deleted,
// waits and creates it again.
Async<> Compute::make_rule(Value rule, CancelToken token) {
  cloud::Patience patience(loop_, rule_patience_ms);
  const std::string name = rule.text("name");
  while (true) {
    net::Query none;
    Value sent = rule;
    Result<Value> answer =
        co_await call("POST", "/global/firewalls", std::move(none), std::move(sent), Effect::lasting, token);
    if (answer) {
      const Result<Value> ended = co_await done("", std::move(*answer), rule_patience_ms, token);
      if (!ended) co_return left_open(ended.error());
      co_return result_of(*ended, "operation insert");
    }
    if (answer.error().http_status != 409) co_return answer.error();
    const Result<Rule> there = co_await describe_rule(name, token);
    if (there) co_return success();
    if (there.error().http_status != 404) co_return left_open(there.error());
    RILLE_CO_CHECK(co_await patience.next("the rule " + name, token));
  }
}

// Makes the deny rule first, so that SSH is never open to all addresses.
Async<> Compute::narrow_ssh(std::string network_tag, std::string rule, std::string tag, std::string network,
                            std::vector<std::string> from, CancelToken token) {
  const std::string about = tag + " " + region_;
  const Value ssh(Value::Array{Value().set("IPProtocol", "tcp").set("ports", Value::Array{Value("22")})});
  Value out = rule_of(rule + "-no", about, network, network_tag);
  Value in = rule_of(rule + "-in", about, network, network_tag);
  out.set("priority", keeps_out).set("denied", ssh).set("sourceRanges", Value::Array{Value("0.0.0.0/0")});
  in.set("priority", lets_in).set("allowed", ssh).set("sourceRanges", Value::Array(from.begin(), from.end()));
  RILLE_CO_CHECK(co_await make_rule(std::move(out), token));
  co_return co_await make_rule(std::move(in), std::move(token));
}

Async<std::vector<Rule>> Compute::rules(CancelToken token) {
  net::Query none;
  RILLE_CO_TRY(const Value::Array rows, co_await pages("/global/firewalls", "firewalls", std::move(none), token));
  std::vector<Rule> out;
  for (const Value& v : rows)
    if (Rule one = read_rule(v); one.region == region_) out.push_back(std::move(one));
  co_return out;
}

Async<Rule> Compute::describe_rule(std::string name, CancelToken token) {
  net::Query none;
  RILLE_CO_TRY(const Value answer,
               co_await call("GET", "/global/firewalls/" + name, std::move(none), Value(), Effect::none, token));
  co_return read_rule(answer);
}

Async<> Compute::remove_rule(std::string name, CancelToken token) {
  net::Query none;
  Result<Value> answer =
      co_await call("DELETE", "/global/firewalls/" + name, std::move(none), Value(), Effect::none, token);
  if (!answer && answer.error().http_status == 404) co_return success();
  if (!answer) co_return answer.error();
  co_return co_await finished("", std::move(*answer), rule_patience_ms, "operation delete", std::move(token));
}

}  // namespace rille::provider::gcp
