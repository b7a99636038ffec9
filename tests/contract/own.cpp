// What only one provider has.
#include "runtime/workflow/provider/outcome.hpp"
#include "tests/contract/fake.hpp"

using namespace rille;
using namespace rille::provider;

namespace {

struct OwnOfAws : Fake {
  const bool here = fake_name() == "aws" && variable("RILLE_FAKE_FILE", "").empty();  // not moto

  std::size_t asked(const std::string& operation) {
    std::size_t n = 0;
    const Value state = control("state");
    for (const Value& call : *state["calls"].as_array()) n += call.text("operation") == operation;
    return n;
  }
};

}  // namespace

TEST_CASE_METHOD(OwnOfAws, "aws: in China's regions prices are in yuan, and on demand they are not known") {
  if (!here) return;
  Value settings = told["settings"];
  settings.set("regions", Value::Array{"cn-north-1"}).set("zone", "cn-north-1a");
  told.set("settings", std::move(settings));
  provider = make();
  for (const bool spot : {false, true}) {
    const std::vector<Offer> some = offers("T4", spot);
    REQUIRE_FALSE(some.empty());
    for (const Offer& o : some) {
      CHECK(o.currency == "CNY");
      CHECK((o.price_micros_per_hour == price_unknown) == !spot);
      CHECK(o.dollars() == price_unknown);
    }
  }
  CHECK(asked("GetProducts") == 0);
}

TEST_CASE_METHOD(OwnOfAws, "aws: keys without the right to read prices get offers without prices, and the reason") {
  if (!here) return;
  fault("auth", "GetProducts", 100);
  OfferQuery query;
  query.gpu = "T4";
  query.left_out = std::make_shared<LeftOut>();
  const auto found = wait(provider->offers(query, {}));
  if (!found) FAIL(found.error().message);
  REQUIRE_FALSE(found->empty());
  for (const Offer& o : *found) CHECK(o.price_micros_per_hour == price_unknown);
  REQUIRE(query.left_out->unasked.size() == 1);
  CHECK(query.left_out->unasked.front().problem->message.find("cost is not known: ") != std::string::npos);
}

TEST_CASE_METHOD(OwnOfAws, "aws: machines that save up credit bill no more than their price") {
  if (!here) return;
  OfferQuery query;
  query.gpu = "cpu";
  query.vcpus = 8;
  const auto found = wait(provider->offers(query, {}));
  REQUIRE((found && !found->empty()));
  CreateRequest request = order("credit");
  for (const Offer& o : *found)
    if (o.id.find("/t3.") != std::string::npos) request.offer = o;
  REQUIRE(request.offer.gpu_count == 0);
  const auto made = wait(provider->create(request, {}));
  if (!made) FAIL(made.error().message);
  const Value state = control("state");
  std::string credit;
  for (const Value& call : *state["calls"].as_array())
    if (call.text("operation") == "RunInstances") credit = call["parameters"].text("CreditSpecification.CpuCredits");
  CHECK(credit == "standard");
}

TEST_CASE_METHOD(Fake, "alibaba: a type whose price cannot be read is left out, and a note says so") {
  if (fake_name() != "alibaba") return;
  OfferQuery query;
  query.gpu = "any";
  const auto all = wait(provider->offers(query, {}));
  REQUIRE(all.ok());
  provider = make();  // which knows no price yet
  fault("refuse", "DescribePrice", 1000, Value().set("where", "InstanceType=ecs.gn7e-c16g1.4xlarge"));
  query.left_out = std::make_shared<LeftOut>();
  const auto some = wait(provider->offers(query, {}));
  if (!some) FAIL(some.error().message);
  CHECK(some->size() < all->size());
  REQUIRE_FALSE(query.left_out->unasked.empty());
  CHECK(query.left_out->unasked.front().problem->message.starts_with("what 1 of its types cost is not known: "));
}

TEST_CASE_METHOD(Fake, "what was rented in a region that the settings name no more is watched and released") {
  struct Cloud {
    const char *one, *another;  // regions
    bool divided = false;       // machines are in parts of the account that the settings name
  };
  const std::map<std::string, Cloud> all{
      {"aws", {"eu-west-1", "us-west-2"}},         {"alibaba", {"cn-beijing", "cn-shanghai"}},
      {"tencent", {"ap-nanjing", "ap-chengdu"}},   {"huawei", {"cn-east-3", "cn-south-1", true}},
      {"gcp", {"us-west4", "europe-west9", true}}, {"azure", {"uksouth", "ukwest", true}}};
  const auto mine = all.find(fake_name());
  if (mine == all.end() || !variable("RILLE_FAKE_FILE", "").empty()) return;  // not moto
  const auto moved_to = [&](const Value& settings) {
    std::ofstream(root + "/moved.json") << Value().set(fake_name(), settings).to_json();
    auto providers = make_providers(*loop, root + "/moved.json", root + "/home");
    if (!providers) FAIL(providers.error().message);
    return std::move(providers->front());
  };
  const CreateRequest request = order("moved");
  const auto made = wait(provider->create(request, {}));
  if (!made) FAIL(made.error().message);
  const std::string region = made->id.substr(0, made->id.find('/'));
  Value settings = told["settings"];
  settings.set("regions", Value::Array{Value(region == mine->second.one ? mine->second.another : mine->second.one)});
  const std::unique_ptr<Provider> moved = moved_to(settings);
  const auto found = wait(moved->describe(made->id, {}));
  if (!found) FAIL(found.error().message);
  CHECK(found->tag == request.tag);
  const auto listed = wait(moved->list_in(region, request.tag, {}));
  if (!listed) FAIL(listed.error().message);
  REQUIRE(listed->machines.size() == 1);
  CHECK(listed->machines[0].id == made->id);
  const auto again = wait(moved->create(request, {}));
  REQUIRE_FALSE(again);  // nothing new there
  CHECK(again.error().kind == ErrorKind::config);
  CHECK_FALSE(wait(moved->describe("nowhere-1" + made->id.substr(region.size()), {})));

  // What is not found there is gone, unless it may be in another part of the account.
  std::string other = made->id;
  other.back() = other.back() == 'a' ? 'b' : 'a';
  const std::unique_ptr<Provider> fresh = moved_to(settings);
  const auto whether = [](const auto& r) { return r ? Result<>() : Result<>(r.error()); };
  for (const Result<>& r : {whether(wait(fresh->describe(other, {}))), whether(wait(fresh->terminate(other, {}))),
                            whether(wait(fresh->list_in(region, "rille-0123456789ab-other", {})))}) {
    CHECK(r.ok() == !mine->second.divided);
    if (r) continue;
    INFO(r.error().message);
    CHECK(to_string(r.error().kind) == to_string(ErrorKind::config));
    CHECK(r.error().hint.find("restore it") == 0);
  }

  // By a process that has not seen it before; and what has ended since is gone.
  REQUIRE(wait(fresh->terminate(made->id, {})));
  until(made->id, MachineState::gone);
  const auto gone = wait(fresh->describe(made->id, {}));
  if (!gone) FAIL(gone.error().message);
  CHECK(gone->state == MachineState::gone);
  CHECK(wait(fresh->list_in(region, request.tag, {})));
  CHECK(wait(fresh->terminate(made->id, {})));
  CHECK(alive() == 0);
}

TEST_CASE_METHOD(OwnOfAws, "aws: an image's own disk is the one that is ordered, whatever its device is called") {
  if (!here) return;
  Value settings = told["settings"];
  settings.set("image", "ami-0b1b2c3d4e5f60718");
  told.set("settings", settings);
  provider = make();
  const auto made = wait(provider->create(order("root"), {}));
  if (!made) FAIL(made.error().message);
  std::size_t disks = 0;
  const Value state = control("state");
  for (const Value& thing : *state["objects"].as_array()) disks += thing.text("kind") == "disk";
  CHECK(disks == 1);
  REQUIRE(wait(provider->terminate(made->id, {})));
  until(made->id, MachineState::gone);
  settings.set("image", "ami-0cccccccccccccccc");
  told.set("settings", settings);
  provider = make();
  const auto none = wait(provider->create(order("none"), {}));
  REQUIRE_FALSE(none);
  CHECK_THAT(none.error().message, Catch::Contains("ami-0cccccccccccccccc"));
  CHECK(alive() == 0);
}

// Of those that answer a create before it is done: what is asked until it is, and how that is refused.
TEST_CASE_METHOD(Fake, "a create that was accepted: a refusal of what is asked then leaves it open, and it is found") {
  struct Asked {
    const char *operation, *denied, *expired;
  };
  const std::map<std::string, Asked> all{{"gcp", {"getOperation", "forbidden", "authError"}},
                                         {"huawei", {"showJob", "APIGW.0302", "APIGW.0301"}}};
  const auto mine = all.find(fake_name());
  if (mine == all.end()) return;
  for (const int status : {403, 401}) {
    INFO(status);
    const CreateRequest request = order("accepted-" + std::to_string(status));
    const std::size_t before = machines_made();
    fault("auth", mine->second.operation, 10,
          Value().set("status", status).set("code", status == 403 ? mine->second.denied : mine->second.expired));
    const auto open = wait(provider->create(request, {}));
    REQUIRE_FALSE(open);
    INFO(open.error().message);
    CHECK(to_string(open.error().kind) == to_string(ErrorKind::network));
    CHECK_FALSE(is_definitive(open.error()));  // no other offer is tried
    REQUIRE(open.error().cause);
    CHECK(to_string(open.error().cause->kind) == to_string(ErrorKind::auth));
    CHECK(open.error().cause->http_status == status);
    control("calm");
    CHECK(machines_made() == before + 1);
    end_by_tag(request.tag);
  }
  CHECK(alive() == 0);
}

TEST_CASE_METHOD(OwnOfAws, "aws: a spot order's request bears the tag as well; another order has none") {
  if (!here) return;
  for (const bool spot : {true, false}) {
    const CreateRequest request = order(spot ? "spot" : "other", spot);
    const auto made = wait(provider->create(request, {}));
    if (!made) FAIL(made.error().message);
    const Value state = control("state");
    std::vector<std::string> tagged;
    for (const Value& call : *state["calls"].as_array())
      for (int n = 1; call.text("operation") == "RunInstances" && call.text("token") == request.token && n < 10; ++n) {
        const std::string at = "TagSpecification." + std::to_string(n) + ".";
        if (call["parameters"].text(at + "Tag.1.Value") == request.tag)
          tagged.push_back(call["parameters"].text(at + "ResourceType"));
      }
    const std::vector<std::string> all{"instance", "volume", "network-interface", "spot-instances-request"};
    CHECK(tagged == std::vector<std::string>(all.begin(), all.end() - (spot ? 0 : 1)));
    REQUIRE(wait(provider->terminate(made->id, {})));
    until(made->id, MachineState::gone);
  }
}

TEST_CASE_METHOD(Fake, "azure: prices that cannot be asked are an error, and no empty list") {
  if (fake_name() != "azure") return;
  fault("page", "retailPrices", 1'000);
  OfferQuery query;
  query.gpu = "A100";
  const auto none = wait(provider->offers(query, {}));
  REQUIRE_FALSE(none);
  CHECK(to_string(none.error().kind) == to_string(ErrorKind::network));
  control("calm");
  CHECK_FALSE(offers().empty());
}

TEST_CASE_METHOD(Fake, "azure: a price that cannot be asked leaves its size out, and that is said") {
  if (fake_name() != "azure") return;
  fault("page", "retailPrices", 1'000, Value().set("where", "NC24ads_A100"));
  OfferQuery query;
  query.gpu = "any";
  query.left_out = std::make_shared<LeftOut>();
  const auto some = wait(provider->offers(query, {}));
  REQUIRE(some);
  CHECK_FALSE(some->empty());
  REQUIRE_FALSE(query.left_out->unasked.empty());
  CHECK(query.left_out->unasked[0].problem->message.find("is not known") != std::string::npos);
}

TEST_CASE_METHOD(Fake, "azure: the most for a spot machine has five decimals") {
  if (fake_name() != "azure") return;
  CreateRequest request = order("most", true);
  request.cap_micros_per_hour = 9'123'451;
  const auto made = wait(provider->create(request, {}));
  if (!made) FAIL(made.error().message);
  CHECK(control("state").to_json().find("\"maxPrice\":9.12346}") != std::string::npos);
}

// Of those that report an error with the status of a success: what is not known to be a refusal is none.
TEST_CASE_METHOD(Fake, "a create that ended with an error of theirs, or an unknown one, is left open and found") {
  const std::map<std::string, std::vector<std::string>> all{
      {"runpod", {"INTERNAL_SERVER_ERROR", "SOMETHING_NEW"}},
      {"tencent", {"InternalError.TradeUnknownError", "InternalServerError.X", "FailedOperation.New"}}};
  const auto mine = all.find(fake_name());
  if (mine == all.end()) return;
  for (const std::string& code : mine->second) {
    INFO(code);
    Value error, body;
    if (fake_name() == "tencent") {
      error.set("Code", code).set("Message", "something went wrong");
      body.set("Response", Value().set("Error", error).set("RequestId", "r-1"));
    } else {
      error.set("message", "Something went wrong").set("extensions", Value().set("code", code));
      body.set("errors", Value::Array{error});
    }
    const CreateRequest request = order("open" + std::to_string(code.size()), true);
    const std::size_t before = machines_made();
    for (const Value& operation : *told["creates"].as_array())
      fault("unreadable_after", *operation.as_string(), 1, Value().set("body", body.to_json()));
    const auto open = wait(provider->create(request, {}));
    control("calm");
    REQUIRE_FALSE(open);
    INFO(open.error().message);
    CHECK(open.error().code == code);
    CHECK_FALSE(is_definitive(open.error()));
    const auto found = wait(provider->list(request.tag, {}));
    REQUIRE(found);
    REQUIRE(found->size() == 1);
    CHECK(machines_made() == before + 1);
    REQUIRE(wait(provider->terminate(found->front().id, {})));
    until(found->front().id, MachineState::gone);
  }
}

TEST_CASE_METHOD(Fake, "gcp: a machine ends at an instant, which a request that is sent again names as well") {
  if (fake_name() != "gcp") return;
  CreateRequest request = order("ends");
  REQUIRE(wait(provider->create(request, {})));
  const Value machine = (*control("state")["machines"].as_array())[0];
  CHECK(machine.number("expires") == static_cast<double>(request.expires_wall_us / 1'000'000 + 300));

  request = order("later");
  request.expires_wall_us = loop->clock().wall_us() + 121LL * 86'400 * 1'000'000;
  const auto refused = wait(provider->create(request, {}));
  REQUIRE_FALSE(refused);
  CHECK(refused.error().kind == ErrorKind::invalid);
  CHECK(refused.error().message.find("120 days") != std::string::npos);
  CHECK(machines_made() == 1);
}

TEST_CASE_METHOD(Fake, "alibaba: a notice without a time counts from when it was not there yet") {
  if (fake_name() != "alibaba") return;
  const auto made = wait(provider->create(order("notice", true), {}));
  if (!made) FAIL(made.error().message);
  until(made->id, MachineState::live);
  CHECK(wait(provider->describe(made->id, {}))->notice_wall_us == 0);
  const std::int64_t calm_us = loop->clock().wall_us(), notice_us = 300LL * 1'000'000;
  (void)wait(sleep_for(*loop, 5));
  control("reclaim", Value().set("id", (*control("state")["machines"].as_array())[0].text("id")));
  const auto told_of = wait(provider->describe(made->id, {}));
  REQUIRE(told_of);
  CHECK(told_of->notice_wall_us > 0);
  CHECK(told_of->notice_wall_us <= calm_us + notice_us);
  CHECK(wait(provider->describe(made->id, {}))->notice_wall_us == told_of->notice_wall_us);  // it stands
}

TEST_CASE_METHOD(Fake, "tencent: the account's currency is what the settings say") {
  if (fake_name() != "tencent") return;
  for (const Offer& o : offers()) CHECK(o.currency == "CNY");
  Value settings = told["settings"];
  settings.set("currency", "USD");
  told.set("settings", settings);
  provider = make();
  CHECK(provider->traits().currency == "USD");
  const std::vector<Offer> some = offers();
  REQUIRE_FALSE(some.empty());
  for (const Offer& o : some) CHECK(o.dollars() == o.price_micros_per_hour);
  std::ofstream(root + "/wrong.json") << Value().set("tencent", settings.set("currency", "EUR")).to_json();
  const auto wrong = make_providers(*loop, root + "/wrong.json", root + "/home");
  REQUIRE_FALSE(wrong);
  CHECK(wrong.error().kind == ErrorKind::config);
  CHECK(wrong.error().message.find("currency = \"EUR\"") != std::string::npos);

  Value mixed = settings, regions = Value::Object{};
  regions.set("ap-guangzhou", Value().set("currency", "USD")).set("ap-singapore", Value::Object{});
  mixed.set("currency", "CNY").set("regions", regions);
  std::ofstream(root + "/mixed.json") << Value().set("tencent", mixed).to_json();
  const auto two = make_providers(*loop, root + "/mixed.json", root + "/home");
  REQUIRE_FALSE(two);
  CHECK(two.error().kind == ErrorKind::config);
  CHECK(two.error().message.find("ap-singapore") != std::string::npos);
  regions.set("ap-singapore", Value().set("currency", "USD"));
  std::ofstream(root + "/one.json") << Value().set("tencent", mixed.set("regions", regions)).to_json();
  const auto one = make_providers(*loop, root + "/one.json", root + "/home");
  REQUIRE(one);
  CHECK(one->front()->traits().currency == "USD");
}

TEST_CASE_METHOD(Fake, "kubernetes: a pod that is evicted lives until its grace is over, and has a notice") {
  if (fake_name() != "kubernetes") return;
  const auto made = wait(provider->create(order("evicted"), {}));
  if (!made) FAIL(made.error().message);
  until(made->id, MachineState::live);
  CHECK(wait(provider->describe(made->id, {}))->notice_wall_us == 0);
  const double before_s = control("state").number("now");
  control("reclaim", Value().set("id", made->id).set("in_seconds", 30));
  const auto described = wait(provider->describe(made->id, {}));
  REQUIRE(described);
  CHECK(described->state == MachineState::live);
  CHECK(static_cast<double>(described->notice_wall_us) / 1e6 >= before_s + 29);  // reported in whole seconds
  CHECK(described->details.text("evicted") == "PreemptionByScheduler");
  const auto listed = wait(provider->list(made->tag, {}));
  REQUIRE(listed);
  REQUIRE(listed->size() == 1);
  CHECK(listed->front().notice_wall_us == described->notice_wall_us);
  advance(40);
  CHECK(wait(provider->describe(made->id, {}))->state == MachineState::gone);
  REQUIRE(wait(provider->terminate(made->id, {})));
}

TEST_CASE_METHOD(OwnOfAws, "aws: V100 has the image with the older driver, newer GPUs that with the open one") {
  if (!here) return;
  provider = make({"image"});
  const std::map<std::string, std::string> images{{"V100", "ami-0d1b2c3d4e5f60718"}, {"T4", "ami-0a1b2c3d4e5f60718"}};
  for (const auto& [gpu, image] : images) {
    CreateRequest request = order(gpu);
    request.offer = offers(gpu).front();
    const auto made = wait(provider->create(request, {}));
    if (!made) FAIL(made.error().message);
    const Value state = control("state");
    const Value::Array& calls = *state["calls"].as_array();
    const auto run = std::find_if(calls.rbegin(), calls.rend(),
                                  [](const Value& c) { return c.text("operation") == "RunInstances"; });
    REQUIRE(run != calls.rend());
    CHECK((*run)["parameters"].text("ImageId") == image);
    REQUIRE(wait(provider->terminate(made->id, {})));
    until(made->id, MachineState::gone);
  }
}

TEST_CASE_METHOD(Fake, "azure, gcp: a machine with NVIDIA's GPUs starts from an image that has their driver") {
  const std::map<std::string, std::pair<std::string, std::string>> images{
      {"azure", {"ubuntu-hpc", "ubuntu-24_04-lts"}},
      {"gcp", {"family/common-cu129-ubuntu-2204-nvidia-580", "family/ubuntu-2404-lts-amd64"}}};
  const auto usual = images.find(fake_name());
  if (usual == images.end()) return;
  Value settings = told["settings"];
  settings.as_object()->erase("image");
  told.set("settings", settings);
  provider = make();
  const auto ordered = [this](const std::string& image) {
    return control("state")["calls"].to_json().find(image) != std::string::npos;
  };
  CreateRequest request = order("driver");
  const std::vector<Offer> gpus = offers("T4");
  REQUIRE_FALSE(gpus.empty());
  request.offer = gpus.front();
  const auto made = wait(provider->create(request, {}));
  if (!made) FAIL(made.error().message);
  CHECK(ordered(usual->second.first));
  CHECK_FALSE(ordered(usual->second.second));
  CreateRequest other = order("plain");
  const std::vector<Offer> plain = offers("cpu");
  REQUIRE_FALSE(plain.empty());
  other.offer = plain.front();
  const auto without = wait(provider->create(other, {}));
  if (!without) FAIL(without.error().message);
  CHECK(ordered(usual->second.second));
  for (const std::string& id : {made->id, without->id}) {
    REQUIRE(wait(provider->terminate(id, {})));
    until(id, MachineState::gone);
  }
}
