// The user's own network; and what Rille makes for a machine itself, which goes with it.
#include "runtime/workflow/provider/left_over.hpp"
#include "runtime/workflow/provider/manner.hpp"
#include "runtime/workflow/provider/outcome.hpp"
#include "tests/contract/with_settings.hpp"

using namespace rille;
using namespace rille::provider;

namespace {

bool has_public_address_setting() {
  const std::set<std::string> all{"aws", "azure", "gcp", "alibaba", "tencent", "huawei"};
  return all.contains(fake_name()) && variable("RILLE_FAKE_FILE", "").empty();
}

struct OfGcp : WithSettings {
  const bool here = fake_name() == "gcp";
  void narrow() { say("ssh_from", Value::Array{"203.0.113.0/24", "198.51.100.7/32"}); }
  std::vector<Machine> listed() { return wait(provider->list("rille-", {})).value(); }
  static std::string type_of(const Offer& o) {
    std::string out = o.id.substr(o.id.find('/') + 1);
    if (out.ends_with(":spot")) out.resize(out.size() - 5);
    return out;
  }
  // One of that type, and its end.
  void rented(const std::string& token, bool spot, const std::string& type) {
    CreateRequest request = order(token, spot);
    for (const Offer& o : offers("any", spot))
      if (type_of(o) == type) request.offer = o;
    REQUIRE(type_of(request.offer) == type);
    const auto made = wait(provider->create(request, {}));
    if (!made) FAIL(made.error().message);
    end(made->id);
  }
};

struct OfAzure : WithSettings {
  const bool here = fake_name() == "azure";
  void without_group() { provider = make({"security_group"}); }
  std::vector<Machine> listed() { return wait(provider->list("rille-", {})).value(); }
};

struct OfAws : WithSettings {
  const bool here = fake_name() == "aws" && variable("RILLE_FAKE_FILE", "").empty();  // not moto
  void without_group() { provider = make({"security_group", "subnet"}); }
  std::vector<Machine> listed() { return wait(provider->list("rille-", {})).value(); }
};

}  // namespace

TEST_CASE_METHOD(WithSettings, "settings: a machine without a public address is reached within its network") {
  if (!has_public_address_setting()) return;
  say("public_address", false);
  const auto made = wait(provider->create(order("inside"), {}));
  if (!made) FAIL(made.error().message + " / " + made.error().hint);
  const Machine live = until(made->id, MachineState::live);
  const std::string address = live.details.text("address");
  INFO(address);
  CHECK((address.starts_with("10.") || address.starts_with("172.16.") || address.starts_with("192.168.")));
  CHECK(Value(Value::Array(live.channel.argv_prefix.begin(), live.channel.argv_prefix.end())).to_json().find(address) !=
        std::string::npos);
  end(made->id);
  CHECK(alive() == 0);
}

TEST_CASE_METHOD(OfAws, "aws: a group is made for the machine, with its tag, and goes after it") {
  if (!here) return;
  without_group();
  const CreateRequest request = order("grouped");
  const auto made = wait(provider->create(request, {}));
  REQUIRE(made);
  REQUIRE(wait(provider->create(request, {})));
  CHECK(asked("CreateSecurityGroup") == 1);
  CHECK(was_sent("\"IpPermissions.1.IpRanges.1.CidrIp\":\"0.0.0.0/0\""));
  REQUIRE(listed().size() == 1);  // while there is a machine, it alone
  CHECK(alive() > 2);
  REQUIRE(wait(provider->terminate(made->id, {})));
  until(made->id, MachineState::gone);
  const std::vector<Machine> left = listed();
  REQUIRE(left.size() == 1);
  CHECK(is_free_left_over(left[0]));
  CHECK(left[0].tag == request.tag);
  CHECK(left[0].state == MachineState::terminating);
  CHECK(wait(provider->describe(left[0].id, {})).value().tag == request.tag);
  REQUIRE(wait(provider->terminate(left[0].id, {})));
  CHECK(wait(provider->describe(left[0].id, {})).value().state == MachineState::gone);
  REQUIRE(wait(provider->terminate(left[0].id, {})));
  CHECK(alive() == 0);
}

TEST_CASE_METHOD(OfAws, "aws: a group that was left without its rule gets it, by the next send") {
  if (!here) return;
  without_group();
  const CreateRequest request = order("first");
  fault("refuse", "AuthorizeSecurityGroupIngress");
  CHECK_FALSE(wait(provider->create(request, {})));
  CHECK(asked("RunInstances") == 0);
  REQUIRE(wait(make({"security_group", "subnet"})->create(request, {})));
  CHECK(asked("CreateSecurityGroup") == 1);
  CHECK(asked("AuthorizeSecurityGroupIngress") == 2);
}

TEST_CASE_METHOD(OfAws, "aws: a group that another process makes meanwhile is taken") {
  if (!here) return;
  without_group();
  const CreateRequest request = order("first");
  REQUIRE(wait(provider->create(request, {})));
  control("set", Value().set("hidden_groups", 1));
  REQUIRE(wait(make({"security_group", "subnet"})->create(request, {})));
  CHECK(asked("CreateSecurityGroup") == 2);  // the second was refused
  CHECK(machines_made() == 1);
}

TEST_CASE_METHOD(OfAws, "aws: a machine that is refused leaves no group") {
  if (!here) return;
  without_group();
  const CreateRequest request = order("refused");
  fault("capacity");
  const auto refused = wait(provider->create(request, {}));
  REQUIRE_FALSE(refused);
  CHECK(to_string(refused.error().kind) == to_string(ErrorKind::capacity));
  CHECK(asked("DeleteSecurityGroup") == 1);
  CHECK(alive() == 0);
}

TEST_CASE_METHOD(OfAws, "aws: ssh_from limits the source addresses, vpc is the group's network") {
  if (!here) return;
  say("ssh_from", Value::Array{"203.0.113.0/24", "198.51.100.7/32"});
  say("vpc", "vpc-0bbbbbbbbbbbbbbb2");
  without_group();
  const auto made = wait(provider->create(order("narrow"), {}));
  if (!made) FAIL(made.error().message);
  CHECK(was_sent("\"IpPermissions.1.IpRanges.2.CidrIp\":\"198.51.100.7/32\""));
  CHECK(was_sent("\"VpcId\":\"vpc-0bbbbbbbbbbbbbbb2\""));
  CHECK_FALSE(was_sent("0.0.0.0/0"));
}

TEST_CASE_METHOD(OfAws, "aws: a reservation is not for spot machines, and one of another type is no capacity") {
  if (!here) return;
  say("reservation", "cr-0123456789abcdef0");
  const auto spot = wait(provider->create(order("spot", true), {}));
  if (!spot) FAIL(spot.error().message);
  CHECK_FALSE(was_sent("CapacityReservationSpecification"));
  const auto other = wait(provider->create(order_of("other", "T4"), {}));
  REQUIRE_FALSE(other);
  CHECK(to_string(other.error().kind) == to_string(ErrorKind::capacity));
  say("capacity_block", true);
  const auto block = wait(provider->create(order_of("block", "A100"), {}));
  if (!block) FAIL(block.error().message);
  CHECK(was_sent("\"capacity-block\""));
}

TEST_CASE_METHOD(OfAzure, "azure: a group is made for the machine, with its tag, and goes after it") {
  if (!here) return;
  without_group();
  const CreateRequest request = order("grouped");
  const auto made = wait(provider->create(request, {}));
  if (!made) FAIL(made.error().message + " / " + made.error().hint);
  REQUIRE(wait(make({"security_group"})->create(request, {})));  // again, by a process that knows nothing
  CHECK(machines_made() == 1);
  CHECK(was_sent("\"destinationPortRange\":\"22\""));
  CHECK(was_sent("\"sourceAddressPrefix\":\"0.0.0.0/0\""));
  CHECK(was_sent("\"networkSecurityGroup\":{\"id\":\"/subscriptions/"));
  REQUIRE(listed().size() == 1);  // while there is a machine, it alone
  REQUIRE(wait(provider->terminate(made->id, {})));
  until(made->id, MachineState::gone);
  const std::vector<Machine> left = listed();
  REQUIRE(left.size() == 1);
  CHECK(is_free_left_over(left[0]));
  CHECK(left[0].tag == request.tag);
  CHECK(left[0].state == MachineState::terminating);
  CHECK(is_free_left_over(wait(provider->describe(left[0].id, {})).value()));
  CHECK(alive() == 1);
  REQUIRE(wait(provider->terminate(left[0].id, {})));
  CHECK(wait(provider->describe(left[0].id, {})).value().state == MachineState::gone);
  REQUIRE(wait(provider->terminate(left[0].id, {})));
  CHECK(alive() == 0);
}

TEST_CASE_METHOD(OfAzure, "azure: a group stays while its interface does, and a refusal to remove it says why") {
  if (!here) return;
  without_group();
  const auto made = wait(provider->create(order("held"), {}));
  REQUIRE(made);
  const std::string group = made->id.substr(0, made->id.find('/')) + "/networkSecurityGroups/" +
                            made->id.substr(made->id.rfind('/') + 1) + "-nsg";
  const auto refused = wait(provider->terminate(group, {}));
  REQUIRE_FALSE(refused);
  CHECK(to_string(refused.error().kind) == to_string(ErrorKind::state));
  CHECK(refused.error().code == "InUseNetworkSecurityGroupCannotBeDeleted");
  end(made->id);
  REQUIRE(wait(provider->terminate(group, {})));
  CHECK(alive() == 0);
}

TEST_CASE_METHOD(OfAzure, "azure: a machine that is refused leaves no group; one of the settings stays") {
  if (!here) return;
  const bool own = GENERATE(true, false);
  if (own) without_group();
  fault("capacity");
  const auto refused = wait(provider->create(order("refused"), {}));
  REQUIRE_FALSE(refused);
  CHECK(to_string(refused.error().kind) == to_string(ErrorKind::capacity));
  CHECK(asked("putNetworkSecurityGroup") == (own ? 1 : 0));
  CHECK(asked("deleteNetworkSecurityGroup") == (own ? 1 : 0));
  CHECK(alive() == 0);
}

TEST_CASE_METHOD(OfAzure, "azure: an interface that is kept for a refused machine does not hold up the refusal") {
  if (!here) return;
  without_group();
  const CreateRequest request = order("kept");
  fault("capacity", "*", 1, Value().set("reserves", 180));
  const auto refused = wait(provider->create(request, {}));
  REQUIRE_FALSE(refused);
  CHECK(to_string(refused.error().kind) == to_string(ErrorKind::capacity));
  CHECK(is_definitive(refused.error()));
  CHECK(alive() == 2);  // the address costs money; the group is counted
  CHECK(asked("deleteNetworkInterface") == 1);
  REQUIRE(wait(make()->create(order("next"), {})));  // elsewhere

  const std::vector<Machine> left = wait(make()->list(request.tag, {})).value();
  REQUIRE(left.size() == 3);
  std::size_t costless = 0;
  for (const Machine& part : left) {
    CHECK(part.tag == request.tag);
    CHECK(part.state == MachineState::terminating);
    costless += is_free_left_over(part);
  }
  CHECK(costless == 1);
  advance(200);
  for (const Machine& part : left) REQUIRE(wait(provider->terminate(part.id, {})));
  CHECK(wait(provider->list(request.tag, {})).value().empty());
}

TEST_CASE_METHOD(OfAzure, "azure: ending an interface that is reserved for a machine waits until Azure frees it") {
  if (!here) return;
  const CreateRequest request = order("kept");
  fault("capacity", "*", 1, Value().set("reserves", 3600));
  REQUIRE_FALSE(wait(provider->create(request, {})));
  const std::vector<Machine> left = wait(provider->list(request.tag, {})).value();
  REQUIRE(left.size() == 2);
  CancelSource stop;
  const std::size_t before = asked("deleteNetworkInterface");
  Timer soon(*loop, 500, [&stop] { stop.cancel(make_error(ErrorKind::cancelled, "enough")); });
  const auto stopped = wait(provider->terminate(left[0].id, stop.token()));
  REQUIRE_FALSE(stopped);
  CHECK(stopped.error().kind == ErrorKind::cancelled);
  CHECK(asked("deleteNetworkInterface") > before);
  CHECK(alive() == 1);
  advance(3600);
  for (const Machine& part : left) REQUIRE(wait(provider->terminate(part.id, {})));
  CHECK(alive() == 0);
}

TEST_CASE_METHOD(OfAzure, "azure: ssh_from limits the source addresses") {
  if (!here) return;
  say("ssh_from", Value::Array{"203.0.113.0/24", "198.51.100.7/32"});
  without_group();
  const auto made = wait(provider->create(order("narrow"), {}));
  if (!made) FAIL(made.error().message + " / " + made.error().hint);
  CHECK(was_sent("\"sourceAddressPrefixes\":[\"203.0.113.0/24\",\"198.51.100.7/32\"]"));
  CHECK_FALSE(was_sent("0.0.0.0/0"));
}

TEST_CASE_METHOD(OfGcp, "gcp: a machine is moved where its host is mended, unless it has GPUs or is spot") {
  if (!here) return;
  rented("e2", false, "e2-standard-2");
  CHECK(was_sent("\"onHostMaintenance\":\"MIGRATE\""));
  CHECK_FALSE(was_sent("\"onHostMaintenance\":\"TERMINATE\""));
  rented("e2-spot", true, "e2-standard-2");
  rented("n1", false, "n1-standard-4");
  rented("t4", false, "n1-standard-4+nvidia-tesla-t4:1");
  rented("l4", false, "g2-standard-4");
  CHECK(was_sent("\"onHostMaintenance\":\"TERMINATE\""));
}

TEST_CASE_METHOD(OfGcp, "gcp: families without persistent disks have a hyperdisk; the settings' word comes first") {
  if (!here) return;
  rented("c4", false, "c4-standard-4");
  CHECK(was_sent("diskTypes/hyperdisk-balanced"));
  CHECK_FALSE(was_sent("diskTypes/pd-"));
  rented("l4", false, "g2-standard-4");
  CHECK(was_sent("diskTypes/pd-balanced"));
  say("disk_kind", "hyperdisk-extreme");
  rented("extreme", false, "c4-standard-4");
  CHECK(was_sent("diskTypes/hyperdisk-extreme"));
}

TEST_CASE_METHOD(OfGcp, "gcp: ssh_from makes two rules for the machine's own network tag, which go after it") {
  if (!here) return;
  narrow();
  const CreateRequest request = order("narrow");
  const auto made = wait(provider->create(request, {}));
  if (!made) FAIL(made.error().message + " / " + made.error().hint);
  const std::string name = made->id.substr(made->id.rfind('/') + 1);
  CHECK(was_sent("\"tags\":{\"items\":[\"" + name + "\"]}"));
  CHECK(was_sent("\"targetTags\":[\"" + name + "\"]"));
  CHECK(was_sent("\"sourceRanges\":[\"203.0.113.0/24\",\"198.51.100.7/32\"]"));
  CHECK(was_sent("\"denied\":[{\"IPProtocol\":\"tcp\",\"ports\":[\"22\"]}]"));
  REQUIRE(wait(make()->create(request, {})));  // again, by a process that knows nothing
  CHECK(machines_made() == 1);
  REQUIRE(listed().size() == 1);  // while there is a machine, it alone
  REQUIRE(wait(provider->terminate(made->id, {})));
  until(made->id, MachineState::gone);
  const std::vector<Machine> left = listed();
  REQUIRE(left.size() == 2);
  CHECK(alive() == 2);
  for (const Machine& rule : left) {
    CHECK(is_free_left_over(rule));
    CHECK(rule.tag == request.tag);
    CHECK(rule.state == MachineState::terminating);
    CHECK(wait(provider->describe(rule.id, {})).value().tag == request.tag);
    REQUIRE(wait(provider->terminate(rule.id, {})));
    CHECK(wait(provider->describe(rule.id, {})).value().state == MachineState::gone);
    REQUIRE(wait(provider->terminate(rule.id, {})));
  }
  CHECK(alive() == 0);
}

TEST_CASE_METHOD(OfGcp, "gcp: a rule's removal is waited for: what was accepted is not gone") {
  if (!here) return;
  narrow();
  const auto made = wait(provider->create(order("slow-rules"), {}));
  if (!made) FAIL(made.error().message);
  end(made->id);
  const std::vector<Machine> left = listed();
  REQUIRE(left.size() == 2);
  const std::size_t before = asked("getGlobalOperation");
  fault("late_done", "deleteFirewall", 1, Value().set("looks", 3));
  REQUIRE(wait(provider->terminate(left[0].id, {})));
  CHECK(asked("getGlobalOperation") == before + 3);
  CHECK(wait(provider->describe(left[0].id, {})).value().state == MachineState::gone);
  CHECK(alive() == 1);

  // A caller that stops waiting knows nothing; an operation that fails at its end has removed nothing.
  fault("late_done", "deleteFirewall", 1, Value().set("looks", 1'000'000));
  CancelSource stop;
  Timer soon(*loop, 300, [&stop] { stop.cancel(make_error(ErrorKind::cancelled, "enough")); });
  const auto stopped = wait(provider->terminate(left[1].id, stop.token()));
  REQUIRE_FALSE(stopped);
  CHECK(stopped.error().kind == ErrorKind::cancelled);
  fault("late_done", "deleteFirewall", 1, Value().set("looks", 1).set("code", "RESOURCE_IN_USE"));
  const auto failed = wait(provider->terminate(left[1].id, {}));
  REQUIRE_FALSE(failed);
  CHECK(failed.error().code == "RESOURCE_IN_USE");
  CHECK(wait(provider->describe(left[1].id, {})).value().state == MachineState::terminating);
  CHECK(alive() == 1);
  REQUIRE(wait(provider->terminate(left[1].id, {})));
  CHECK(alive() == 0);
}

TEST_CASE_METHOD(OfGcp, "gcp: a machine that is refused leaves no rules; without ssh_from none are made or listed") {
  if (!here) return;
  const bool own = GENERATE(true, false);
  if (own) narrow();
  fault("capacity");
  const auto refused = wait(provider->create(order("refused"), {}));
  REQUIRE_FALSE(refused);
  CHECK(to_string(refused.error().kind) == to_string(ErrorKind::capacity));
  REQUIRE(wait(provider->list("rille-", {})));
  CHECK(asked("insertFirewall") == (own ? 2 : 0));
  CHECK(asked("deleteFirewall") == (own ? 2 : 0));
  CHECK((asked("listFirewalls") > 0) == own);
  CHECK(alive() == 0);
}

TEST_CASE_METHOD(OfGcp, "gcp: a machine that lives keeps its rules when the same create is refused later") {
  if (!here) return;
  narrow();
  const CreateRequest request = order("kept");
  const auto made = wait(provider->create(request, {}));
  if (!made) FAIL(made.error().message);
  fault("quota");
  const auto refused = wait(provider->create(request, {}));
  REQUIRE_FALSE(refused);
  CHECK(is_definitive(refused.error()));
  CHECK(asked("deleteFirewall") == 0);
  end(made->id);
  CHECK(alive() == 2);
}

TEST_CASE_METHOD(OfGcp, "gcp: a rule that is there is taken; one that was on its way out is made again") {
  if (!here) return;
  narrow();
  const CreateRequest request = order("again");
  const Value conflict = Value().set("status", 409).set("code", "alreadyExists");
  fault("refuse", "insertFirewall", 1, conflict);  // though none is there
  const auto made = wait(provider->create(request, {}));
  if (!made) FAIL(made.error().message);
  CHECK(asked("insertFirewall") == 3);
  CHECK(asked("getFirewall") == 1);
  CHECK(alive() == 4);  // the machine, its disk, both rules
  REQUIRE(wait(make()->create(request, {})));
  CHECK(asked("insertFirewall") == 5);
  CHECK(asked("getFirewall") == 3);
  CHECK(alive() == 4);
}

TEST_CASE_METHOD(OfGcp, "gcp: a rule that is refused leaves none, and no machine is asked for") {
  if (!here) return;
  narrow();
  fault("refuse", "insertFirewall", 1, Value().set("status", 403).set("code", "forbidden").set("where", "-in"));
  const auto refused = wait(provider->create(order("ruleless"), {}));
  REQUIRE_FALSE(refused);
  CHECK(to_string(refused.error().kind) == to_string(ErrorKind::auth));
  CHECK(asked("insertInstance") == 0);
  CHECK(alive() == 0);
}

TEST_CASE("a refusal says that nothing was made, but for 'asked too often' and what is not known") {
  Error e = make_error(ErrorKind::quota, "");
  CHECK(is_definitive(e));
  e.http_status = 429;
  CHECK_FALSE(is_definitive(e));
  for (const ErrorKind kind : {ErrorKind::network, ErrorKind::timeout, ErrorKind::state, ErrorKind::cancelled})
    CHECK_FALSE(is_definitive(make_error(kind, "")));
  CHECK(left_open(make_error(ErrorKind::cancelled, "")).kind == ErrorKind::cancelled);
}

TEST_CASE_METHOD(WithSettings, "settings: ssh_from is a range; where no group is made, it is refused and says so") {
  if (!has_public_address_setting()) return;
  const bool makes_groups = fake_name() == "aws" || fake_name() == "azure" || fake_name() == "gcp";
  for (const char* said : {"203.0.113.0/24", "203.0.113.0", "203.0.113.0/33", "::/0", "home"}) {
    INFO(said);
    Value settings = told["settings"];
    settings.set("ssh_from", said);
    std::ofstream(root + "/said.json") << Value().set(fake_name(), std::move(settings)).to_json();
    const auto made = make_providers(*loop, root + "/said.json", root + "/home");
    if (makes_groups && std::string(said) == "203.0.113.0/24") {
      CHECK(made);
      continue;
    }
    REQUIRE_FALSE(made);
    CHECK(to_string(made.error().kind) == to_string(ErrorKind::config));
    CHECK_THAT(made.error().message, Catch::Contains(fake_name() + ": "));
    CHECK_THAT(made.error().message, Catch::Contains(makes_groups ? said : "no security group is created"));
  }
}
