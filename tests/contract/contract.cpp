// What every provider promises to the lease layer (runtime/workflow/provider/provider.hpp), tried on its fake. usage:
// RILLE_FAKE=aws contract. What a provider does not have (tokens, spot) stands in fake.hpp.
#include <algorithm>
#include <map>
#include <set>

#include "runtime/core/base/send_by.hpp"
#include "runtime/workflow/provider/catalogue/known.hpp"
#include "runtime/workflow/provider/left_over.hpp"
#include "runtime/workflow/provider/outcome.hpp"
#include "tests/contract/fake.hpp"

using namespace rille;
using namespace rille::provider;

namespace {

void check_named(const Error& e) {
  INFO(e.message);
  CHECK(e.provider == fake_name());
  CHECK_FALSE(e.operation.empty());
}

}  // namespace

TEST_CASE_METHOD(Fake, "offers: what is sold, priced, in order, and only that") {
  const std::vector<Offer> all = offers("any");
  REQUIRE(all.size() >= 3);
  for (const Offer& o : all) {
    INFO(o.to_value().to_json());
    CHECK(o.provider == fake_name());
    CHECK(o.vcpus > 0);
    CHECK(o.memory_bytes > 0);
    CHECK_FALSE(o.region.empty());
  }
  for (std::size_t i = 1; i < all.size(); ++i)
    if (all[i].dollars() >= 0) CHECK(all[i - 1].dollars() <= all[i].dollars());
  const std::vector<Offer> some = offers("A100");
  REQUIRE_FALSE(some.empty());
  for (const Offer& o : some) {
    CHECK(o.gpu.find("A100") != std::string::npos);
    CHECK(o.gpu_count > 0);
    CHECK(o.gpu_memory_bytes >= 38'000'000'000);
  }
  CHECK(offers("A100-17GB").empty());
  OfferQuery there;
  there.gpu = "A100";
  there.region = some.front().region;
  const std::vector<Offer> found = wait(provider->offers(there, {})).value();
  CHECK(std::any_of(found.begin(), found.end(), [&](const Offer& o) { return o.id == some.front().id; }));
  CHECK(std::all_of(found.begin(), found.end(), [&](const Offer& o) { return o.region == there.region; }));
  OfferQuery cheap;
  cheap.gpu = "A100";
  cheap.max_price_micros_per_hour = 1;
  CHECK(wait(provider->offers(cheap, {})).value().empty());
}

// Rille's agent and bundle are made for x86-64. Each fake sells one such machine, cheaper than the others.
TEST_CASE_METHOD(Fake, "offers: none with an ARM processor, GPUs that no image drives, or what cannot start") {
  const std::map<std::string, std::vector<std::string>> others{
      {"aws", {"g5g.xlarge", "g4ad.xlarge"}},
      {"azure", {"Standard_D2ps_v5", "Standard_D2_v5", "Standard_DS2"}},
      {"gcp", {"t2a-standard-2"}},
      {"alibaba", {"ecs.c8y.large"}},
      {"huawei", {"kc1.large.2"}},
      {"tencent", {"SR1.MEDIUM4"}}};
  const auto mine = others.find(fake_name());
  if (mine == others.end()) return;
  Value settings = told["settings"];
  if (fake_name() == "azure") settings.as_object()->erase("image");
  told.set("settings", settings);
  provider = make();
  const std::vector<Offer> all = offers("any");
  CHECK_FALSE(all.empty());
  for (const std::string& other : mine->second)
    CHECK(std::none_of(all.begin(), all.end(), [&](const Offer& o) { return o.id.find(other) != o.id.npos; }));
  if (fake_name() != "azure") return;
  settings.set("disk_kind", "StandardSSD_LRS");  // which takes what premium disks do not
  told.set("settings", settings);
  provider = make();
  const std::vector<Offer> more = offers("any");
  CHECK(std::any_of(more.begin(), more.end(), [](const Offer& o) { return o.id.ends_with("Standard_D2_v5"); }));
}

// By what the provider tells, or else by Rille's tables: docs/manual/choosing.md says which.
TEST_CASE_METHOD(Fake, "offers: a machine's disks and processors, its network, and its compliance") {
  const std::string cloud = fake_name();
  if (cloud != "aws" && cloud != "azure" && cloud != "gcp" && cloud != "alibaba") return;
  const Offer* largest = nullptr;
  std::vector<Offer> all = offers("any");
  for (Offer& o : all) {
    complete(o);
    INFO(o.to_value().to_json());
    if (o.gpu_count == 0) continue;
    CHECK(o.gpu_vendor == "nvidia");
    // Azure does not report the kind of the local disk for its older sizes.
    if (cloud != "azure" || o.gpu_memory_bytes > 40'000'000'000) CHECK_FALSE(o.disk_kind.empty());
    CHECK_FALSE(o.compliance.empty());
    if (!largest || o.price_micros_per_hour > largest->price_micros_per_hour) largest = &o;
  }
  REQUIRE(largest);
  INFO(largest->to_value().to_json());
  CHECK(largest->gpu_count == 8);
  CHECK(largest->interconnect == "nvswitch");
  CHECK(largest->network_gbps > 0);
  if (cloud != "gcp") CHECK_FALSE(largest->rdma.empty());
  CHECK(largest->cuda_max.empty());  // no limit that is known: its driver is the image's
}

TEST_CASE_METHOD(Fake, "a life: create, describe, list, terminate, and nothing is left") {
  const CreateRequest request = order("life");
  const auto made = wait(provider->create(request, {}));
  if (!made) FAIL(made.error().message + " / " + made.error().hint);
  CHECK(made->tag == request.tag);
  const Machine live = until(made->id, MachineState::live);
  CHECK(live.tag == request.tag);
  const std::vector<std::string>& prefix = live.channel.argv_prefix;
  REQUIRE_FALSE(prefix.empty());
  if (prefix[0] == "ssh")  // the machine cannot use the keys of this one's ssh agent, nor its screen
    for (const char* option : {"-a", "-x"}) CHECK(std::find(prefix.begin(), prefix.end(), option) != prefix.end());
  CHECK(live.channel.directory[0] == '/');
  const auto listed = wait(provider->list("rille-0123456789ab-", {})).value();
  REQUIRE(listed.size() == 1);
  CHECK(listed[0].id == made->id);
  CHECK(listed[0].tag == request.tag);
  CHECK(wait(provider->list("rille-other-", {})).value().empty());
  CHECK(alive() >= 1);
  REQUIRE(wait(provider->terminate(made->id, {})));
  until(made->id, MachineState::gone);
  REQUIRE(wait(provider->terminate(made->id, {})));
  const std::vector<Machine> after = wait(provider->list("rille-0123456789ab-", {})).value();
  for (const Machine& left : after)  // what costs nothing, which no release waits for
    if (is_free_left_over(left)) REQUIRE(wait(provider->terminate(left.id, {})));
  CHECK(wait(provider->list("rille-0123456789ab-", {})).value().empty());
  CHECK(alive() == 0);
}

TEST_CASE_METHOD(Fake, "what is unknown is gone, and ending it succeeds") {
  const auto made = wait(provider->create(order("vanish"), {}));
  REQUIRE(made);
  until(made->id, MachineState::live);
  const Value state = control("state");
  control("vanish", Value().set("id", (*state["machines"].as_array())[0].text("id")));
  until(made->id, MachineState::gone);
  CHECK(wait(provider->terminate(made->id, {})));
  const auto stranger = wait(provider->describe("no-such-machine", {}));
  REQUIRE(stranger);
  CHECK(stranger->state == MachineState::gone);
  CHECK(wait(provider->terminate("no-such-machine", {})));
}

TEST_CASE_METHOD(Fake, "a token makes one machine, by this process and by the next") {
  REQUIRE((provider->traits().token_lifetime_ms > 0) == has().tokens);
  if (!has().tokens) return;
  const CreateRequest request = order("token");
  const auto first = wait(provider->create(request, {}));
  REQUIRE(first);
  const auto again = wait(provider->create(request, {}));
  REQUIRE(again);
  CHECK(again->id == first->id);
  const std::unique_ptr<Provider> other = make();
  const auto by_other = wait(other->create(request, {}));
  if (!by_other) FAIL(by_other.error().message);
  CHECK(by_other->id == first->id);
  CHECK(machines_made() == 1);
  REQUIRE(wait(provider->terminate(first->id, {})));
}

TEST_CASE_METHOD(Fake, "an answer that was lost: the error leaves it open, and the tag finds the machine") {
  for (const char* kind : {"drop_after", "error_after"}) {
    INFO(kind);
    const CreateRequest request = order(kind);
    fault(kind, told["settings"].text("create", "*"), 1, Value().set("where", request.tag));
    const auto lost = wait(provider->create(request, {}));
    if (lost) {  // a retry inside the driver with the same token gave the machine: as good
      CHECK(provider->traits().token_lifetime_ms > 0);
    } else {
      check_named(lost.error());
      CHECK(lost.error().kind == ErrorKind::network);
    }
    std::vector<Machine> found;
    for (int i = 0; i < 20 && found.empty(); ++i) {
      found = wait(provider->list(request.tag, {})).value();
      if (found.empty()) advance(10);
    }
    REQUIRE(found.size() == 1);
    CHECK(found[0].tag == request.tag);
    REQUIRE(wait(provider->terminate(found[0].id, {})));
    until(found[0].id, MachineState::gone);
  }
  CHECK(alive() == 0);
}

TEST_CASE_METHOD(Fake, "a create whose time is over is not sent, nor sent again") {
  CreateRequest request = order("overdue");
  SECTION("before the call") { request.send_by_wall_us = loop->clock().wall_us(); }
  SECTION("once it was asked to wait") {
    request.send_by_wall_us = loop->clock().wall_us() + 900'000;
    fault("throttle", told["settings"].text("create", "*"), 1, Value().set("retry_after", 1));
  }
  const auto late = wait(provider->create(request, {}));
  REQUIRE_FALSE(late);
  INFO(late.error().message);
  check_named(late.error());
  CHECK(is_late(late.error()));
  CHECK_FALSE(is_definitive(late.error()));
  CHECK(machines_made() == 0);
  // Announced anew, it goes on with what was made for it.
  control("calm");
  request.send_by_wall_us = loop->clock().wall_us() + 600'000'000;
  const auto made = wait(provider->create(request, {}));
  if (!made) FAIL(made.error().message);
  CHECK(machines_made() == 1);
  REQUIRE(wait(provider->terminate(made->id, {})));
}

// What stands between may answer in the service's place, or cut its answer short, after the machine was made.
TEST_CASE_METHOD(Fake, "an answer that cannot be read: the error leaves it open, and the tag finds the machine") {
  const Value half, empty = Value().set("body", "{}");
  std::vector<std::pair<std::string, Value>> all{{"half", half}, {"nothing", empty}};
  for (const int status : {301, 404, 407, 408, 499})
    all.push_back({std::to_string(status), Value().set("status", status).set("body", "<html>somebody else</html>")});
  for (const auto& [name, said] : all) {
    INFO(name);
    const CreateRequest request = order("unread-" + name);
    const std::size_t before = machines_made();
    for (const Value& operation : *told["creates"].as_array())
      fault("unreadable_after", *operation.as_string(), 1, said.as_object() ? said : Value(Value::Object{}));
    const auto lost = wait(provider->create(request, {}));
    control("calm");
    if (lost) {
      CHECK(provider->traits().token_lifetime_ms > 0);
    } else {
      INFO(lost.error().message);
      check_named(lost.error());
      CHECK(to_string(lost.error().kind) == to_string(ErrorKind::network));
      CHECK_FALSE(is_definitive(lost.error()));
      CHECK_FALSE(lost.error().hint.empty());
    }
    CHECK(machines_made() == before + 1);
    end_by_tag(request.tag);
  }
  CHECK(alive() == 0);
}

TEST_CASE_METHOD(Fake, "a login page in the place of an answer is no empty list, and nothing is gone by it") {
  const auto made = wait(provider->create(order("page"), {}));
  if (!made) FAIL(made.error().message);
  until(made->id, MachineState::live);
  const char* other = fake_name() == "aws" ? "<OtherResponse/>" : "{\"message\": \"log in\", \"Response\": {}}";
  for (const char* body : {"<html><body>Please log in</body></html>", other}) {
    INFO(body);
    fault("page", "*", 1'000'000, Value().set("body", body));
    const std::unique_ptr<Provider> fresh = make();
    OfferQuery query;
    query.gpu = "A100";
    const auto answered = [](const Result<>& done) {
      if (done) return std::string("it succeeds");
      INFO(done.error().message);
      CHECK_FALSE(done.error().hint.empty());
      return std::string(to_string(done.error().kind));
    };
    const auto offered = wait(fresh->offers(query, {}));
    CHECK(answered(offered ? Result<>(success()) : Result<>(offered.error())) == "network");
    const auto listed = wait(provider->list("rille-", {}));
    CHECK(answered(listed ? Result<>(success()) : Result<>(listed.error())) == "network");
    const auto described = wait(provider->describe(made->id, {}));
    CHECK(answered(described ? Result<>(success()) : Result<>(described.error())) == "network");
    if (fake_name() != "azure" || body != other)  // whose answer to a delete need not say anything
      CHECK(answered(wait(provider->terminate(made->id, {}))) == "network");
    control("calm");
  }
  CHECK(alive() >= 1);
  REQUIRE(wait(provider->terminate(made->id, {})));
  until(made->id, MachineState::gone);
}

TEST_CASE_METHOD(Fake, "each kind of refused create has its own error") {
  const std::pair<const char*, ErrorKind> all[] = {{"capacity", ErrorKind::capacity}, {"quota", ErrorKind::quota}};
  for (const auto& [kind, wanted] : all) {
    INFO(kind);
    const CreateRequest request = order(kind);
    fault(kind);
    const auto refused = wait(provider->create(request, {}));
    REQUIRE_FALSE(refused);
    check_named(refused.error());
    CHECK(to_string(refused.error().kind) == to_string(wanted));
    CHECK(refused.error().http_status != 429);
  }
  CHECK(alive() == 0);
}

TEST_CASE_METHOD(Fake, "asked too often: it waits, and asks again") {
  const CreateRequest request = order("throttled");
  fault("throttle", "*", 2);
  const auto made = wait(provider->create(request, {}));
  if (!made) FAIL(made.error().message);
  CHECK(machines_made() == 1);
  fault("throttle", "*", 2);
  CHECK(wait(provider->describe(made->id, {})));
  fault("throttle", "*", 1, Value().set("retry_after", 1));
  CHECK(wait(provider->list("rille-", {})));
  REQUIRE(wait(provider->terminate(made->id, {})));
}

TEST_CASE_METHOD(Fake, "reads are repeated after a failure of theirs") {
  const auto made = wait(provider->create(order("flaky"), {}));
  REQUIRE(made);
  for (const char* kind : {"error", "drop"}) {
    INFO(kind);
    fault(kind, "*", 2);
    CHECK(wait(provider->describe(made->id, {})));
    fault(kind, "*", 2);
    CHECK(wait(provider->list("rille-", {})));
    fault(kind, "*", 1);
    CHECK(wait(provider->terminate(made->id, {})));
  }
}

TEST_CASE_METHOD(Fake, "keys that are refused are named as such, and not shown") {
  fault("auth", "*", 1000);
  OfferQuery query;
  query.gpu = "A100";
  const auto refused = wait(provider->offers(query, {}));
  REQUIRE_FALSE(refused);
  CHECK(refused.error().kind == ErrorKind::auth);
  check_named(refused.error());
  const std::string shown = error_to_value(refused.error()).to_json();
  for (const Value& secret : *told["secrets"].as_array()) CHECK(shown.find(*secret.as_string()) == std::string::npos);
}

TEST_CASE_METHOD(Fake, "a clock that is off by an hour is corrected") {
  const CreateRequest request = order("clock");
  fault("skew");
  const auto made = wait(provider->create(request, {}));
  if (!made) FAIL(made.error().message);
  CHECK(wait(provider->describe(made->id, {})));
  REQUIRE(wait(provider->terminate(made->id, {})));
}

TEST_CASE_METHOD(Fake, "lists have pages") {
  std::set<std::string> ids;
  for (int i = 0; i < 5; ++i) {
    const auto made = wait(provider->create(order("page" + std::to_string(i)), {}));  // an offer may be one machine
    if (!made) FAIL(made.error().message);
    ids.insert(made->id);
  }
  control("set", Value().set("page_size", 2));
  std::set<std::string> listed;
  const auto all = wait(provider->list("rille-0123456789ab-page", {}));
  if (!all) FAIL(all.error().message);
  for (const Machine& m : *all) listed.insert(m.id);
  CHECK(listed == ids);
  fault("duplicates", "*", 100);
  const std::vector<Machine> twice = wait(provider->list("rille-0123456789ab-page", {})).value();
  listed.clear();
  for (const Machine& m : twice) listed.insert(m.id);
  CHECK(listed == ids);
  CHECK(twice.size() == ids.size());
  control("calm");
  for (const std::string& id : ids) CHECK(wait(provider->terminate(id, {})));
}

TEST_CASE_METHOD(Fake, "a new machine that is not shown yet is no failure") {
  control("set", Value().set("lag", 30));
  const auto made = wait(provider->create(order("late"), {}));
  if (!made) FAIL(made.error().message);
  CHECK_FALSE(made->id.empty());
  CHECK(wait(provider->describe(made->id, {})));  // gone, or pending: the lease layer knows the lag
  advance(40);
  until(made->id, MachineState::live);
  CHECK(provider->traits().visibility_lag_ms >= 30'000);
  REQUIRE(wait(provider->terminate(made->id, {})));
}

TEST_CASE_METHOD(Fake, "spot: its own price, a cap, and the day it is taken away") {
  const std::vector<Offer> all = offers("any", true);
  REQUIRE(all.empty() == !has().spot);
  if (!has().spot) return;
  for (const Offer& o : all) CHECK(o.spot);
  const CreateRequest request = order("spot", true);
  const auto made = wait(provider->create(request, {}));
  if (!made) FAIL(made.error().message);
  const Machine live = until(made->id, MachineState::live);
  const Value state = control("state");
  const Value& machine = (*state["machines"].as_array())[0];
  CHECK(machine.boolean("spot"));
  control("reclaim", Value().set("id", machine.text("id")).set("in_seconds", 5));
  advance(10);
  for (int i = 0; i < 20; ++i) {
    const auto now = wait(provider->describe(made->id, {}));
    REQUIRE(now);
    if (now->state != MachineState::live) break;
    advance(10);
  }
  CHECK(wait(provider->describe(made->id, {})).value().state != MachineState::live);
  REQUIRE(wait(provider->terminate(made->id, {})));
  until(made->id, MachineState::gone);
  CHECK(alive() == 0);
}

TEST_CASE_METHOD(Fake, "spot: a cap below the market is refused, and leaves nothing") {
  if (!has().cap) return;  // Google's spot machines know none
  CreateRequest request = order("low", true);
  request.offer.price_micros_per_hour = request.cap_micros_per_hour = 1000;
  const auto refused = wait(provider->create(request, {}));
  REQUIRE_FALSE(refused);
  check_named(refused.error());
  INFO(refused.error().message);
  CHECK(to_string(refused.error().kind) == to_string(ErrorKind::capacity));
  CHECK(alive() == 0);
}

TEST_CASE_METHOD(Fake, "cancelling ends the wait") {
  fault("slow", "*", 1, Value().set("seconds", 30));
  CancelSource stop;
  Timer soon(*loop, 100, [&stop] { stop.cancel(make_error(ErrorKind::cancelled, "enough")); });
  const auto answer = wait(provider->list("rille-", stop.token()));
  REQUIRE_FALSE(answer);
  CHECK(answer.error().kind == ErrorKind::cancelled);
}
