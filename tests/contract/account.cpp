// The account of the keys that a provider is used with, and its optional functions: quotas, a history of prices,
// another type for a machine. fake.hpp says which provider has them. Last, all calls that contract.cpp and this file
// have made are compared with the policy document.
#include "runtime/workflow/provider/account.hpp"

#include "runtime/workflow/provider/left_over.hpp"
#include "runtime/workflow/provider/rearm.hpp"
#include "runtime/workflow/provider/rent_options.hpp"
#include "runtime/workflow/provider/volumes.hpp"
#include "tests/contract/fake.hpp"

using namespace rille;
using namespace rille::provider;

namespace {

constexpr std::int64_t day_us = 24LL * 3'600'000'000;

template <class T>
bool is_not_there(const Result<T>& answer, bool expected) {
  const bool lacks = !answer && is_lack(answer.error());
  REQUIRE(lacks == !expected);
  if (!lacks) return false;
  INFO(answer.error().message);
  CHECK(answer.error().kind == ErrorKind::invalid);
  CHECK(answer.error().message.starts_with(fake_name() + " has no "));
  return true;
}

void check_hidden(const Fake& fake, const std::string& shown) {
  for (const Value& secret : *fake.told["secrets"].as_array())
    CHECK(shown.find(*secret.as_string()) == std::string::npos);
}

// What documents of all kinds allow: actions, permissions, verbs of resources, parts of an API.
void collect(const Value& v, std::set<std::string>& out) {
  const auto add = [&out](const Value& some) {
    if (some.as_string()) out.insert(*some.as_string());
    for (const Value& one : some.as_array() ? *some.as_array() : Value::Array()) out.insert(*one.as_string());
  };
  for (const Value& one : v.as_array() ? *v.as_array() : Value::Array()) collect(one, out);
  if (!v.as_object()) return;
  if (v["verbs"].as_array())
    for (const Value& group : *v["apiGroups"].as_array())
      for (const Value& what : *v["resources"].as_array())
        for (const Value& verb : *v["verbs"].as_array())
          out.insert(*group.as_string() + (group.as_string()->empty() ? "" : "/") + *what.as_string() + ":" +
                     *verb.as_string());
  for (const auto& [key, value] : *v.as_object()) {
    if (key == "Action" || key == "action" || key == "Actions" || key == "includedPermissions") add(value);
    else if (key == "api")
      for (const auto& [part, nothing] : *value.as_object()) out.insert(part);
    else collect(value, out);
  }
}

std::string own_id(const std::string& id) { return id.substr(id.find('/') + 1); }

}  // namespace

TEST_CASE_METHOD(Fake, "check: whose the keys are, where they were found, and what they reach") {
  const auto found = wait(provider->check({}));
  if (!found) FAIL(found.error().message);
  INFO(found->to_value().to_json());
  if (fake_name() != "lambda") CHECK_FALSE(found->who.empty());  // which tells no names
  CHECK_FALSE(found->from.empty());
  CHECK(found->skew_us == 0);
  for (const AskedRegion& reach : found->regions) CHECK_FALSE(reach.problem);
  CHECK(control("state").integer("alive") == 0);
  check_hidden(*this, found->to_value().to_json());
}

TEST_CASE_METHOD(Fake, "check: the age of the key, or the reason why it is unknown") {
  for (const int days : {30, 100}) {
    control("set", Value().set("key_age_days", days));
    const auto found = wait(make()->check({}));
    REQUIRE(found);
    if (found->key_made_wall_us == 0) {
      CHECK_FALSE(found->age_unknown.empty());
      continue;
    }
    const std::int64_t age_us = loop->clock().wall_us() - found->key_made_wall_us;
    CHECK(age_us > (days - 1) * day_us);
    CHECK(age_us < (days + 1) * day_us);
  }
}

TEST_CASE_METHOD(Fake, "check: keys that are refused, and a region that is") {
  const auto before = wait(provider->check({}));
  REQUIRE(before);
  if (before->regions.size() > 1) {
    fault("auth", "*", 1000, Value().set("where", before->regions.back().region));
    const auto some = wait(make()->check({}));
    REQUIRE(some);
    CHECK_FALSE(some->regions.front().problem);
    REQUIRE(some->regions.back().problem);
    CHECK(some->regions.back().problem->kind == ErrorKind::auth);
    control("calm");
  }
  fault("auth", "*", 1000);
  const auto refused = wait(make()->check({}));
  REQUIRE_FALSE(refused);
  CHECK(to_string(refused.error().kind) == to_string(ErrorKind::auth));
  CHECK(refused.error().provider == fake_name());
  check_hidden(*this, error_to_value(refused.error()).to_json());
}

TEST_CASE_METHOD(Fake, "check: a wrong clock is reported") {
  fault("skew");
  const auto found = wait(make()->check({}));
  if (!found) FAIL(found.error().message);
  CHECK(found->skew_us > 3'500'000'000);
  CHECK(found->skew_us < 3'700'000'000);
}

TEST_CASE_METHOD(Fake, "quotas: what may be rented, by region") {
  const auto all = wait(provider->quotas("", {}));
  if (is_not_there(all, has().quotas)) return;
  if (!all) FAIL(all.error().message);
  REQUIRE_FALSE(all->empty());
  for (const Quota& quota : *all) {
    INFO(quota.to_value().to_json());
    CHECK_FALSE(quota.region.empty());
    CHECK_FALSE(quota.name.empty());
    CHECK(quota.limit > 0);
    CHECK(quota.used <= 0);  // 0, or not reported
  }
  const std::string region = all->back().region;
  const auto some = wait(provider->quotas(region, {}));
  REQUIRE(some);
  CHECK_FALSE(some->empty());
  for (const Quota& quota : *some) CHECK(quota.region == region);
  CHECK_FALSE(wait(provider->quotas("nowhere-9", {})));
}

TEST_CASE_METHOD(Fake, "price history: what spot machines of a kind have cost, oldest first") {
  OfferQuery query;
  query.gpu = "A100";
  const std::int64_t since_us = loop->clock().wall_us() - 6LL * 3'600'000'000;
  const auto all = wait(provider->price_history(query, since_us, {}));
  if (is_not_there(all, has().history)) return;
  if (!all) FAIL(all.error().message);
  std::set<std::string> types;
  for (const Offer& o : offers("A100", true)) types.insert(own_id(o.id).substr(0, own_id(o.id).find(':')));
  REQUIRE(all->size() >= 6);
  for (const PricePoint& point : *all) {
    INFO(point.to_value().to_json());
    CHECK(types.contains(point.type));
    CHECK(point.zone.empty() == (fake_name() == "azure"));  // whose prices are a region's
    CHECK(point.currency == provider->traits().currency);
    CHECK(point.micros_per_hour > 0);
    CHECK(point.from_wall_us >= since_us - 3'600'000'000);
  }
  for (std::size_t i = 1; i < all->size(); ++i) CHECK((*all)[i - 1].from_wall_us <= (*all)[i].from_wall_us);
  query.gpu = "A100-17GB";
  CHECK(wait(provider->price_history(query, since_us, {})).value().empty());
}

TEST_CASE_METHOD(Fake, "alibaba: a history of prices ends with its last page, and goes 30 days back") {
  if (fake_name() != "alibaba") return;
  OfferQuery query;
  query.gpu = "A100";
  const std::int64_t day_us = 86'400LL * 1'000'000, now_us = loop->clock().wall_us();
  const auto all = wait(provider->price_history(query, now_us - 60 * day_us, {}));
  if (!all) FAIL(all.error().message);
  REQUIRE_FALSE(all->empty());
  for (const PricePoint& point : *all) CHECK(point.from_wall_us > now_us - 31 * day_us);
  CHECK(all->front().from_wall_us < now_us - 29 * day_us);
}

TEST_CASE_METHOD(Fake, "resize: the machine is the same, its type another; a refused one goes on as it was") {
  control("set", Value().set("end", 0.05));
  const CreateRequest request = order("resize");
  const auto made = wait(provider->create(request, {}));
  if (!made) FAIL(made.error().message);
  until(made->id, MachineState::live);
  const std::string before = own_id(request.offer.id);
  std::string type;
  for (const Offer& o : offers("any")) {
    const bool can = o.region == request.offer.region && o.id.find('+') == std::string::npos;
    if (can && own_id(o.id) != before && type.empty()) type = own_id(o.id);
  }
  REQUIRE_FALSE(type.empty());
  const auto changed = wait(provider->resize(made->id, type, {}));
  if (is_not_there(changed, has().resize)) {
    REQUIRE(wait(provider->terminate(made->id, {})));
    return;
  }
  if (!changed) FAIL(changed.error().message);
  CHECK(changed->id == made->id);
  CHECK(changed->tag == request.tag);
  CHECK(until(made->id, MachineState::live).tag == request.tag);
  const auto now = [this] { return (*control("state")["machines"].as_array())[0]; };
  CHECK(now().text("type") == type);
  CHECK(machines_made() == 1);

  const auto refused = wait(provider->resize(made->id, "no-such-type", {}));
  REQUIRE_FALSE(refused);
  CHECK(refused.error().provider == fake_name());
  until(made->id, MachineState::live);
  CHECK(now().text("type") == type);
  const auto unknown = wait(provider->resize("no-such-machine", type, {}));
  REQUIRE_FALSE(unknown);
  REQUIRE(wait(provider->terminate(made->id, {})));
  until(made->id, MachineState::gone);
  CHECK(alive() == 0);
}

namespace {
// A volume's life, with that of a machine that has it.
void live_with_volume(Fake& fake) {
  // On aws, without a zone in the settings, the driver asks for those that there are.
  const std::unique_ptr<Provider> maker =
      fake.make(fake_name() == "aws" ? std::vector<std::string>{"zone", "subnet"} : std::vector<std::string>{});
  VolumeSeller* const seller = seller_of_volumes(maker.get());
  REQUIRE(seller);
  CreateRequest disk = fake.order("policy-disk"), with_disk = fake.order("policy-with-disk");
  VolumeWish wish;
  wish.kind = seller->volume_kinds().front().name;
  wish.region = disk.offer.region;
  wish.size_bytes = 20'000'000'000;
  const auto sold = fake.wait(seller->volume_offers(wish, {}));
  REQUIRE(sold);
  disk.offer = sold->front();
  disk.disk_bytes = wish.size_bytes;
  VolumeTraits traits;
  traits.kind = wish.kind;
  tell_volume(disk.extra, traits);
  const auto volume = fake.wait(maker->create(disk, {}));
  REQUIRE(volume);
  const Machine made = fake.until(volume->id, MachineState::live);
  tell_mounts(with_disk.extra, {{"data", made.id, "l-0", made.details.text("zone"), false, traits.kind}});
  const auto mounting = fake.wait(fake.provider->create(with_disk, {}));
  REQUIRE(mounting);
  fake.until(mounting->id, MachineState::live);
  REQUIRE(fake.wait(fake.provider->terminate(mounting->id, {})));
  fake.until(mounting->id, MachineState::gone);
  REQUIRE(fake.wait(fake.provider->terminate(made.id, {})));
}
}  // namespace

TEST_CASE_METHOD(Fake, "policy: it allows what the driver calls, and nothing else") {
  const std::string text = about_provider(fake_name()).value().policy;
  const Result<Value> document = Value::from_json(text);
  REQUIRE(static_cast<bool>(document) == has().policy);
  if (!document) {  // a cloud whose keys cannot be restricted by a document
    CHECK(text.find(' ') != std::string::npos);
    return;
  }
  // What the settings spare a driver, it does itself here; and a life, with all that is optional.
  unsetenv("HUAWEICLOUD_SDK_PROJECT_ID");
  if (fake_name() == "aws") provider = make({"image", "security_group"});
  if (fake_name() == "azure") provider = make({"security_group"});
  if (fake_name() == "huawei") provider = make({"project"});
  if (fake_name() == "gcp") {
    Value settings = told["settings"];
    settings.set("ssh_from", "203.0.113.0/24");
    told.set("settings", std::move(settings));
    provider = make();
  }
  control("set", Value().set("end", 0.05));
  offers("any", true);
  const CreateRequest request = order("policy");
  const auto made = wait(provider->create(request, {}));
  if (!made) FAIL(made.error().message);
  until(made->id, MachineState::live);
  REQUIRE(wait(provider->list("rille-", {})));
  REQUIRE(wait(provider->check({})));
  (void)wait(provider->quotas("", {}));
  (void)wait(provider->price_history(OfferQuery(), loop->clock().wall_us(), {}));
  (void)wait(provider->resize(made->id, "no-such-type", {}));
  until(made->id, MachineState::live);
  if (auto* const armed = dynamic_cast<Rearmed*>(provider.get()))
    (void)wait(armed->set_end(made->id, request.expires_wall_us, {}));
  if (has().volumes) live_with_volume(*this);
  if (fake_name() == "aws") {
    const auto spot = wait(provider->create(order("policy-spot", true), {}));
    REQUIRE(spot);
    REQUIRE(wait(provider->terminate(spot->id, {})));
    CreateRequest fast = order("policy-efa");
    fast.offer = offers("A100").front();
    tell_cluster(fast.extra, "rille-0123456789ab-cluster");
    tell_rdma(fast.extra);
    const auto member = wait(provider->create(fast, {}));
    REQUIRE(member);
    REQUIRE(wait(provider->terminate(member->id, {})));
    until(member->id, MachineState::gone);
    const std::vector<Machine> listed = wait(provider->list("rille-", {})).value();
    for (const Machine& left : listed)
      if (is_free_left_over(left)) REQUIRE(wait(provider->terminate(left.id, {})));
    OfferQuery query;
    query.spot = true;
    REQUIRE(wait(make({"zone"})->offers(query, {})));  // which asks where the subnet is
  }
  const std::string region = made->id.substr(0, made->id.find('/') + 1);
  const std::map<std::string, std::vector<std::string>> left_overs{
      {"aws", {"vol-0123456789abcdef0", "sg-0fedcba9876543210"}},
      {"alibaba", {"d-bp10123456789abcdef0"}},
      {"tencent", {"disk-01234567"}},
      {"huawei", {"volume/01234567-89ab-4cde-a012-3456789abcde"}},
      {"gcp", {"us-central1-a/disks/none", "global/firewalls/none"}},
      {"azure",
       {"disks/none", "networkInterfaces/none-nic", "publicIPAddresses/none-ip", "networkSecurityGroups/none-nsg"}}};
  const auto mine = left_overs.find(fake_name());
  for (const std::string& left_over : mine == left_overs.end() ? std::vector<std::string>() : mine->second) {
    (void)wait(provider->describe(region + left_over, {}));
    REQUIRE(wait(provider->terminate(region + left_over, {})));
  }
  REQUIRE(wait(provider->terminate(made->id, {})));
  until(made->id, MachineState::gone);

  learn_needs();
  std::set<std::string> allowed;
  collect(*document, allowed);
  REQUIRE(allowed.size() >= 4);
  for (const std::string& needed : needed_so_far()) {
    INFO("called, and not allowed: " << needed);
    CHECK(allowed.contains(needed));
  }
  for (const std::string& one : allowed) {
    INFO("allowed, and never called: " << one);
    CHECK(needed_so_far().contains(one));
  }
}
