// What the machines of a cluster share on aws: the group within which they reach each other, EFA and its placement
// group; and the zones of a region. Nothing of it stays when the last of them has gone.
#include <algorithm>

#include "runtime/core/loop/together.hpp"
#include "runtime/workflow/provider/left_over.hpp"
#include "runtime/workflow/provider/rent_options.hpp"
#include "runtime/workflow/provider/type_of.hpp"
#include "tests/contract/fake.hpp"

using namespace rille;
using namespace rille::provider;

namespace {

constexpr const char* gang = "rille-0123456789ab-c00000000000000aa";

struct Gang : Fake {
  const bool here = fake_name() == "aws" && variable("RILLE_FAKE_FILE", "").empty();  // not moto

  Gang() {
    if (here) provider = fresh();
  }
  std::unique_ptr<Provider> fresh() { return make({"security_group", "subnet"}); }
  void say(const std::string& name, Value value) {
    Value settings = told["settings"];
    settings.set(name, std::move(value));
    told.set("settings", std::move(settings));
    provider = fresh();
  }

  CreateRequest member(const std::string& token, const std::string& type = "") {
    CreateRequest request = order(token);
    for (const Offer& o : offers("any"))
      if (type_of(o) == type) request.offer = o;
    tell_cluster(request.extra, gang);
    return request;
  }
  CreateRequest fast(const std::string& token, const std::string& type = "p4d.24xlarge") {
    CreateRequest request = member(token, type);
    REQUIRE(request.offer.rdma == "efa");
    tell_rdma(request.extra);
    return request;
  }
  Machine made(const CreateRequest& request) {
    auto machine = wait(provider->create(request, {}));
    if (!machine) FAIL(machine.error().message + " / " + machine.error().hint);
    return std::move(*machine);
  }
  std::vector<Result<Machine>> made_together(const std::vector<CreateRequest>& requests) {
    std::vector<Together<Machine>> all;
    for (const CreateRequest& request : requests)
      all.push_back({"create", [this, request](CancelToken t) { return provider->create(request, t); }});
    return wait(together(*loop, std::move(all), 0, {}));
  }
  void end(const std::string& id) {
    REQUIRE(wait(provider->terminate(id, {})));
    until(id, MachineState::gone);
  }
  std::vector<Machine> listed(const std::string& tag) { return wait(provider->list(tag, {})).value(); }
  // As a release does: looked up by its own tag.
  std::size_t leave(const Machine& m, const std::string& tag) {
    end(m.id);
    std::size_t n = 0;
    for (const Machine& left : listed(tag)) {
      REQUIRE(is_free_left_over(left));
      REQUIRE(wait(provider->terminate(left.id, {})));
      ++n;
    }
    return n;
  }

  std::vector<Value> calls_of(const std::string& operation) {
    std::vector<Value> out;
    const Value state = control("state");
    for (const Value& call : *state["calls"].as_array())
      if (call.text("operation") == operation) out.push_back(call["parameters"]);
    return out;
  }
  std::size_t asked(const std::string& operation) { return calls_of(operation).size(); }
};

}  // namespace

TEST_CASE_METHOD(Gang, "aws: the members of a cluster have one group, within which they reach each other") {
  if (!here) return;
  const std::vector<CreateRequest> orders{member("first"), member("second"), member("third")};
  const auto answers = made_together(orders);
  for (const auto& answer : answers)
    if (!answer) FAIL(answer.error().message);
  REQUIRE(asked("CreateSecurityGroup") == 1);
  const std::vector<Value> opened = calls_of("AuthorizeSecurityGroupIngress");
  REQUIRE(opened.size() == 1);
  const std::string group = opened[0].text("GroupId");
  CHECK(opened[0].text("IpPermissions.1.FromPort") == "22");
  CHECK(opened[0].text("IpPermissions.2.IpProtocol") == "-1");
  CHECK(opened[0].text("IpPermissions.2.Groups.1.GroupId") == group);
  CHECK(asked("AuthorizeSecurityGroupEgress") == 0);  // everything may go out by itself, but for EFA
  for (const Value& sent : calls_of("RunInstances")) CHECK(sent.text("SecurityGroupId.1") == group);
  CHECK(listed("rille-").size() == 3);  // while one of them is there, they alone

  CHECK(leave(*answers[0], orders[0].tag) == 0);  // whichever member made it
  const auto refused = wait(provider->terminate("us-east-1/" + group, {}));
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == "DependencyViolation");
  CHECK(to_string(refused.error().kind) == to_string(ErrorKind::state));
  CHECK(leave(*answers[2], orders[2].tag) == 0);
  CHECK(leave(*answers[1], orders[1].tag) == 1);
  CHECK(alive() == 0);
}

TEST_CASE_METHOD(Gang, "aws: a machine without a cluster can reach no other machine") {
  if (!here) return;
  CreateRequest alone = member("alone"), with = member("with");
  alone.extra = Value();
  const Machine one = made(alone), other = made(with);
  REQUIRE(asked("CreateSecurityGroup") == 2);
  CHECK(calls_of("AuthorizeSecurityGroupIngress")[0]["IpPermissions.2.IpProtocol"].is_null());
  CHECK(leave(one, alone.tag) == 1);
  CHECK(leave(other, with.tag) == 1);
  CHECK(alive() == 0);
}

TEST_CASE_METHOD(Gang, "aws: a cluster's group that was left behind is found by the tag of the member that made it") {
  if (!here) return;
  const CreateRequest maker = member("maker"), last = member("last");
  const Machine first = made(maker), second = made(last);
  end(first.id);
  end(second.id);
  control("advance", Value().set("seconds", 7200));  // EC2 shows neither of them any more
  const std::vector<Machine> left = wait(fresh()->list("rille-", {})).value();
  REQUIRE(left.size() == 1);
  CHECK(left[0].tag == maker.tag);
  CHECK(wait(provider->describe(left[0].id, {})).value().tag == maker.tag);
  REQUIRE(wait(provider->terminate(left[0].id, {})));
  CHECK(wait(provider->describe(left[0].id, {})).value().state == MachineState::gone);
  CHECK(alive() == 0);
}

TEST_CASE_METHOD(Gang, "aws: a group that another process takes away before a member is there is made anew") {
  if (!here) return;
  const CreateRequest first = fast("first"), second = fast("second");
  end(made(first).id);
  const auto other = fresh();
  std::size_t taken = 0;
  const std::vector<Machine> there = wait(other->list("rille-", {})).value();
  for (const Machine& left : there) {
    REQUIRE(wait(other->terminate(left.id, {})));
    ++taken;
  }
  CHECK(taken == 2);
  CHECK(alive() == 0);
  const Machine again = made(second);  // this process believes that both are there
  CHECK(asked("CreateSecurityGroup") == 2);
  CHECK(asked("CreatePlacementGroup") == 2);
  CHECK(leave(again, second.tag) == 2);
  CHECK(alive() == 0);
}

TEST_CASE_METHOD(Gang, "aws: members that are refused leave nothing, and take nothing from those that are not") {
  if (!here) return;
  const std::vector<CreateRequest> orders{fast("first"), fast("second")};
  fault("capacity", "RunInstances", 2);
  for (const auto& answer : made_together(orders)) {
    REQUIRE_FALSE(answer);
    CHECK(to_string(answer.error().kind) == to_string(ErrorKind::capacity));
  }
  CHECK(alive() == 0);
  const Machine there = made(fast("there"));
  fault("capacity", "RunInstances");
  CHECK_FALSE(wait(provider->create(fast("late"), {})));
  CHECK(listed("rille-").size() == 1);
  const Machine beside = made(fast("beside"));
  end(there.id);
  CHECK(leave(beside, fast("beside").tag) == 2);
  CHECK(alive() == 0);
}

TEST_CASE_METHOD(Gang, "aws: EFA that is asked for is ordered, beside the other members; nothing else is") {
  if (!here) return;
  const std::vector<CreateRequest> orders{fast("first"), fast("second")};
  const Machine first = made(orders[0]), second = made(orders[1]);
  REQUIRE(asked("CreatePlacementGroup") == 1);
  CHECK(calls_of("CreatePlacementGroup")[0].text("Strategy") == "cluster");
  const std::vector<Value> out = calls_of("AuthorizeSecurityGroupEgress");
  REQUIRE(out.size() == 1);
  const std::string group = out[0].text("GroupId");
  CHECK(out[0].text("IpPermissions.1.IpProtocol") == "-1");
  CHECK(out[0].text("IpPermissions.1.Groups.1.GroupId") == group);
  for (const Value& sent : calls_of("RunInstances")) {
    CHECK(sent.text("NetworkInterface.1.InterfaceType") == "efa");
    CHECK(sent.text("NetworkInterface.1.SecurityGroupId.1") == group);
    CHECK(sent.text("NetworkInterface.1.AssociatePublicIpAddress") == "true");
    CHECK(sent["NetworkInterface.2.DeviceIndex"].is_null());  // a public address is for one interface alone
    CHECK(sent["SecurityGroupId.1"].is_null());
    CHECK(sent.text("Placement.GroupName") == gang);
  }
  CHECK(leave(first, orders[0].tag) == 0);
  CHECK(leave(second, orders[1].tag) == 2);
  CHECK(alive() == 0);
  // Not asked for, or of a type without it.
  for (const char* type : {"p4d.24xlarge", "g5.xlarge"}) {
    CreateRequest plain = member(type, type);
    if (std::string(type) == "g5.xlarge") tell_rdma(plain.extra);
    const Machine machine = made(plain);
    const Value sent = calls_of("RunInstances").back();
    CHECK(sent["NetworkInterface.1.InterfaceType"].is_null());
    CHECK(sent["Placement.GroupName"].is_null());
    CHECK(leave(machine, plain.tag) == 1);
  }
  CHECK(asked("CreatePlacementGroup") == 1);
  CHECK(alive() == 0);
}

TEST_CASE_METHOD(Gang, "aws: without public addresses each network card has its EFA") {
  if (!here) return;
  say("public_address", false);
  const CreateRequest request = fast("many");
  const Machine machine = made(request);
  const Value sent = calls_of("RunInstances").back();
  for (int card = 0; card < 4; ++card) {
    const std::string at = "NetworkInterface." + std::to_string(card + 1) + ".";
    INFO(at);
    CHECK(sent.text(at + "NetworkCardIndex") == std::to_string(card));
    CHECK(sent.text(at + "DeviceIndex") == (card == 0 ? "0" : "1"));
    CHECK(sent.text(at + "InterfaceType") == (card == 0 ? "efa" : "efa-only"));
    CHECK_FALSE(sent.text(at + "SecurityGroupId.1").empty());
  }
  CHECK(sent["NetworkInterface.5.DeviceIndex"].is_null());
  // The same is sent by a process that knows nothing yet.
  const auto again = wait(fresh()->create(request, {}));
  REQUIRE(again);
  CHECK(again->id == machine.id);
  CHECK(leave(machine, request.tag) == 2);
  CHECK(alive() == 0);
}

TEST_CASE_METHOD(Gang, "aws: EFA alone, without a cluster, has a group of its own and no placement group") {
  if (!here) return;
  CreateRequest request = fast("alone");
  request.extra = Value();
  tell_rdma(request.extra);
  const Machine machine = made(request);
  CHECK(asked("CreatePlacementGroup") == 0);
  CHECK(asked("AuthorizeSecurityGroupEgress") == 1);
  CHECK(leave(machine, request.tag) == 1);
  CHECK(alive() == 0);
}

TEST_CASE_METHOD(Gang, "aws: a group of one's own serves a cluster, too; its placement group goes all the same") {
  if (!here) return;
  provider = make({"subnet"});
  const CreateRequest request = fast("own");
  const Machine machine = made(request);
  CHECK(asked("CreateSecurityGroup") == 0);
  CHECK(asked("CreatePlacementGroup") == 1);
  CHECK(leave(machine, request.tag) == 1);
  CHECK(alive() == 0);
}

TEST_CASE_METHOD(Gang, "aws: a rule that a crash has left out is made by the next send") {
  if (!here) return;
  const CreateRequest request = fast("first");
  fault("refuse", "AuthorizeSecurityGroupEgress");
  CHECK_FALSE(wait(provider->create(request, {})));
  CHECK(asked("RunInstances") == 0);
  provider = fresh();
  const Machine machine = made(request);
  CHECK(asked("CreateSecurityGroup") == 1);
  CHECK(asked("AuthorizeSecurityGroupIngress") == 1);
  CHECK(asked("AuthorizeSecurityGroupEgress") == 2);
  CHECK(leave(machine, request.tag) == 2);
}

namespace {

struct Zoned : Gang {
  void in_region(Value settings) {
    Value all = told["settings"];
    for (const char* name : {"zone", "subnet"}) all.as_object()->erase(name);
    all.set("regions", Value().set("us-east-1", std::move(settings)));
    told.set("settings", std::move(all));
    provider = make();
  }
  static Value both(const char* first, const char* second) { return Value(Value::Array{Value(first), Value(second)}); }
  std::vector<Offer> of_type(const std::string& type, bool spot = false) {
    std::vector<Offer> out;
    for (Offer& o : offers("any", spot))
      if (type_of(o) == type) out.push_back(std::move(o));
    std::sort(out.begin(), out.end(), [](const Offer& a, const Offer& b) { return a.id < b.id; });
    return out;
  }
  Result<Machine> rented(const Offer& offer, const std::string& token) {
    CreateRequest request = order(token, offer.spot);
    request.offer = offer;
    if (offer.spot) request.cap_micros_per_hour = offer.price_micros_per_hour;
    return wait(provider->create(request, {}));
  }
  std::string zone_of(const Result<Machine>& machine) {
    if (!machine) FAIL(machine.error().message);
    return wait(provider->describe(machine->id, {})).value().details.text("zone");
  }
};

}  // namespace

TEST_CASE_METHOD(Zoned, "aws: one region has several zones, of which the next is asked where one has nothing left") {
  if (!here) return;
  const bool by_subnet = GENERATE(true, false);
  INFO(by_subnet);
  if (by_subnet) in_region(Value().set("subnet", both("subnet-0aaaaaaaaaaaaaaa1", "subnet-0aaaaaaaaaaaaaaa2")));
  else in_region(Value().set("zone", both("us-east-1a", "us-east-1b")));
  control("set", Value().set("stock", Value().set("g5.xlarge@us-east-1a", 0)));
  const std::vector<Offer> both = of_type("g5.xlarge");
  REQUIRE(both.size() == 2);
  CHECK(both[0].id == "us-east-1/g5.xlarge");
  CHECK(both[1].id == "us-east-1/g5.xlarge@us-east-1b");
  CHECK(both[0].price_micros_per_hour == both[1].price_micros_per_hour);
  const auto none = rented(both[0], "first");
  REQUIRE_FALSE(none);
  CHECK(to_string(none.error().kind) == to_string(ErrorKind::capacity));
  provider = make();  // which has not asked where the subnets are
  const auto second = rented(both[1], "second");
  CHECK(zone_of(second) == "us-east-1b");
  CHECK(wait(provider->describe(second->id, {})).value().details.text("type") == "g5.xlarge");
  CHECK(asked("DescribeSubnets") == (by_subnet ? 2 : 0));
  in_region(Value().set("zone", "us-east-1a"));
  const auto gone = rented(both[1], "gone");
  REQUIRE_FALSE(gone);
  CHECK(gone.error().message.find("no longer name zone us-east-1b") != std::string::npos);
}

TEST_CASE_METHOD(Zoned, "aws: a spot machine is rented in the zone whose price was reported") {
  if (!here) return;
  control("set", Value().set("zone_prices", Value().set("us-east-1a", 1.5)));  // EC2 by itself takes that one
  in_region(Value(Value::Object{}));
  std::vector<Offer> all = of_type("g5.xlarge", true);
  REQUIRE(all.size() == 2);
  CHECK(all[0].id == "us-east-1/g5.xlarge@us-east-1a:spot");
  CHECK(all[1].id == "us-east-1/g5.xlarge@us-east-1b:spot");
  CHECK(all[0].price_micros_per_hour == all[1].price_micros_per_hour * 3 / 2);
  CHECK(zone_of(rented(all[1], "cheap")) == "us-east-1b");
  CHECK(zone_of(rented(all[0], "dear")) == "us-east-1a");
  REQUIRE(of_type("g5.xlarge").size() == 1);  // on demand EC2 chooses
  CHECK(of_type("g5.xlarge")[0].id == "us-east-1/g5.xlarge");
  CHECK(zone_of(rented(of_type("g5.xlarge")[0], "any")) == "us-east-1a");
  // Where the settings say which, its price alone counts.
  const Micros dear = all[0].price_micros_per_hour;
  for (const char* setting : {"zone", "subnet"}) {
    in_region(Value().set(setting, std::string(setting) == "zone" ? "us-east-1a" : "subnet-0aaaaaaaaaaaaaaa1"));
    all = of_type("g5.xlarge", true);
    REQUIRE(all.size() == 1);
    CHECK(all[0].id == "us-east-1/g5.xlarge:spot");
    CHECK(all[0].price_micros_per_hour == dear);
    CHECK(zone_of(rented(all[0], setting)) == "us-east-1a");
  }
}

TEST_CASE_METHOD(Zoned, "aws: zones and subnets that do not fit together are said") {
  if (!here) return;
  const auto refused = [this](Value settings) {
    in_region(std::move(settings));
    OfferQuery query;
    const auto found = wait(provider->offers(query, {}));
    REQUIRE_FALSE(found);
    return found.error().message;
  };
  CHECK(refused(Value().set("subnet", both("subnet-0aaaaaaaaaaaaaaa1", "subnet-0aaaaaaaaaaaaaaa1")))
            .find("two of the configured subnets are in zone us-east-1a") != std::string::npos);
  Value settings = told["settings"];
  Value three = Value().set("zone", "us-east-1a");
  three.set("subnet", both("subnet-0aaaaaaaaaaaaaaa1", "subnet-0aaaaaaaaaaaaaaa2"));
  settings.set("regions", Value().set("us-east-1", std::move(three)));
  std::ofstream(root + "/providers.json") << Value().set("aws", std::move(settings)).to_json();
  const auto none = make_providers(*loop, root + "/providers.json", root + "/home");
  REQUIRE_FALSE(none);
  CHECK(none.error().message.find("zone = us-east-1a and subnet = subnet-0aaaaaaaaaaaaaaa1, "
                                  "subnet-0aaaaaaaaaaaaaaa2 have different lengths") != std::string::npos);
}
