// Options of a rent that only one provider supports: for which providers they are allowed, and where they are written.
#include "runtime/workflow/provider/rent_options.hpp"
#include "tests/unit/lease/cloud.hpp"

using namespace rille;
using namespace rille::lease;
using namespace rille::lease::test;

namespace {

// The cloud by the name of one that has reservations.
class Aws final : public provider::Provider {
 public:
  Aws(Loop& loop, Cloud& cloud, CloudProvider::Place place) : cloud_(loop, cloud, std::move(place)) {}
  const std::string& name() const override { return name_; }
  const provider::Traits& traits() const override { return cloud_.traits(); }
  Async<std::vector<provider::Offer>> offers(provider::OfferQuery query, CancelToken token) override {
    RILLE_CO_TRY(std::vector<provider::Offer> out, co_await cloud_.offers(std::move(query), std::move(token)));
    for (provider::Offer& o : out) o.provider = name_;
    co_return out;
  }
  Async<provider::Machine> create(provider::CreateRequest request, CancelToken token) override {
    return cloud_.create(std::move(request), std::move(token));
  }
  Async<provider::Machine> describe(std::string id, CancelToken token) override {
    return cloud_.describe(std::move(id), std::move(token));
  }
  Async<std::vector<provider::Machine>> list(std::string tag, CancelToken token) override {
    return cloud_.list(std::move(tag), std::move(token));
  }
  Async<> terminate(std::string id, CancelToken token) override {
    return cloud_.terminate(std::move(id), std::move(token));
  }
  Async<provider::Machine> resize(std::string id, std::string type, CancelToken token) override {
    return cloud_.resize(std::move(id), std::move(type), std::move(token));
  }

 private:
  CloudProvider cloud_;
  std::string name_ = "aws";
};

struct Named : World {
  Named() {
    CloudProvider::Place place = [this] { return this->place(); };
    (void)registry.add(std::make_unique<Aws>(*loop, cloud, place));
    run("r");
  }
  Result<Lease> rented(Value options) {
    auto r = rent(wanted("r", "box", std::move(options)));
    REQUIRE(r);
    return std::move(*r);
  }
};

Value of_aws() { return Value().set("provider", "aws").set("reservation", "cr-1"); }

}  // namespace

TEST_CASE("a reservation that a rent names is in the request that is journaled, and in that of the next machine") {
  Named w;
  const Result<Lease> made = w.rented(of_aws());
  if (!made) FAIL(made.error().summary());
  const Lease row = w.row(made->id);
  CHECK(row.provider == "aws");
  CHECK(row.request.extra == Value().set("reservation", "cr-1"));
  Replace another;
  another.id = row.id;
  another.generation = row.generation;
  another.fence = store::Fence("r", 1);
  Manager::Event quiet = [](const std::string&, Value) {};
  auto moved = w.drive(w.manager->replace(std::move(another), quiet, {}));
  REQUIRE(moved);
  REQUIRE(moved->ok());
  const Lease next = w.row(row.id);
  CHECK(next.generation == 2);
  CHECK(next.request.extra == Value().set("reservation", "cr-1"));
  REQUIRE(w.release(row.id)->ok());
}

TEST_CASE("a replacement that asks for what there is not leaves the machine as it is") {
  Named w;
  const Result<Lease> made = w.rented(of_aws());
  REQUIRE(made);
  Manager::Event quiet = [](const std::string&, Value) {};
  const auto refusal = [&](Value options) {
    Replace another;
    another.id = made->id;
    another.generation = made->generation;
    another.options = std::move(options);
    another.fence = store::Fence("r", 1);
    auto moved = w.drive(w.manager->replace(std::move(another), quiet, {}));
    REQUIRE(moved);
    REQUIRE_FALSE(moved->ok());
    return moved->error().message + ": " + moved->error().hint;
  };
  CHECK_THAT(refusal(Value().set("gpuu", "A100")), Catch::Contains("gpuu"));
  CHECK_THAT(refusal(Value().set("provider", "nowhere")), Catch::Contains("nowhere"));
  CHECK_THAT(refusal(Value().set("memory", "lots")), Catch::Contains("lots"));
  const Lease row = w.row(made->id);
  CHECK(row.state == "live");
  CHECK(row.generation == made->generation);
  CHECK(row.machine_id == made->machine_id);
  REQUIRE(w.release(row.id)->ok());
}

TEST_CASE("members of one cluster share a cluster name in their requests; another cluster has another name") {
  Named w;
  const auto rented = [&w](const std::string& box, const char* cluster) {
    auto r = w.rent(w.wanted("r", box, Value().set("provider", "aws").set("cluster", cluster)));
    REQUIRE(r);
    if (!r->ok()) FAIL(r->error().summary());
    return w.row((*r)->id);
  };
  const Lease one = rented("one", "gang"), two = rented("two", "gang"), other = rented("other", "crew");
  CHECK(provider::cluster_in(one.request).starts_with("rille-"));
  CHECK(provider::cluster_in(one.request) == provider::cluster_in(two.request));
  CHECK(provider::cluster_in(one.request) != provider::cluster_in(other.request));
  Replace another;
  another.id = one.id;
  another.generation = one.generation;
  another.fence = store::Fence("r", 1);
  Manager::Event quiet = [](const std::string&, Value) {};
  REQUIRE(w.drive(w.manager->replace(std::move(another), quiet, {}))->ok());
  CHECK(w.row(one.id).generation == 2);
  CHECK(provider::cluster_in(w.row(one.id).request) == provider::cluster_in(one.request));
  for (const Lease* each : {&one, &two, &other}) REQUIRE(w.release(each->id)->ok());
}

TEST_CASE("a network between machines that is asked for is ordered, and no other") {
  Named w;
  w.cloud.rdma = "efa";
  const auto ordered = [&w](const std::string& box, const char* interconnect) {
    Value options = Value().set("provider", "aws");
    if (*interconnect) options.set("interconnect", interconnect);
    auto r = w.rent(w.wanted("r", box, std::move(options)));
    REQUIRE(r);
    if (!r->ok()) FAIL(r->error().summary());
    return provider::wants_rdma(w.row((*r)->id).request);
  };
  CHECK(ordered("any", "rdma"));
  CHECK(ordered("that", "efa"));
  CHECK_FALSE(ordered("none", ""));
}

TEST_CASE("a rent that says nothing of the kind sends nothing of the kind") {
  Named w;
  const Result<Lease> made = w.rented(Value().set("provider", "aws"));
  REQUIRE(made);
  CHECK(w.row(made->id).request.extra.is_null());
  CHECK(w.row(made->id).request.to_value().to_json().find("extra") == std::string::npos);
}

TEST_CASE("a reserved machine costs what the provider reports, one on demand costs its offer's price") {
  Named w;
  const Result<Lease> own = w.rented(of_aws().set("price", 0.25));
  REQUIRE(own);
  CHECK(w.row(own->id).price_micros_per_hour == 250'000);
  REQUIRE(w.release(own->id)->ok());
  auto other = w.rent(w.wanted("r", "other", Value().set("provider", "aws").set("price", 0.25)));
  REQUIRE(other);
  REQUIRE(other->ok());
  CHECK(w.row((*other)->id).price_micros_per_hour == 1'000'000);
}

TEST_CASE("a resize keeps what a rent has said to its provider") {
  Named w;
  w.cloud.pass = [&w](std::int64_t us) { w.clock.us += us; };
  const Result<Lease> made = w.rented(of_aws());
  REQUIRE(made);
  auto resized = w.resize(made->id, Value().set("type", "large"));
  REQUIRE(resized);
  if (!*resized) FAIL(resized->error().summary());
  CHECK(w.row(made->id).options.text("reservation") == "cr-1");
}

TEST_CASE("an option of another provider is refused before anything is sent, and the error names that provider") {
  struct Wrong {
    Value options;
    const char *message, *hint;
  };
  const Wrong all[] = {
      {Value().set("reservation", "cr-1"), "this option belongs to one provider, which must be named too",
       "one of: slurm, aws, alibaba, gcp"},
      {Value().set("reservation", "cr-1").set("providers", Value::Array{"aws", "cloud"}),
       "this option belongs to one provider", "provider ="},
      {of_aws().set("provider", "cloud"), "cloud has no reservations", "supported by: slurm, aws, alibaba, gcp, azure"},
      {Value().set("provider", "aws").set("qos", "high"), "aws has no qos", "supported by: slurm"},
      {Value().set("provider", "aws").set("priority_class", "high"), "aws has no priority classes", "kubernetes"},
      {of_aws().set("reservation", 7), "reservation = 7: expected a name", "cr-"},
      {of_aws().set("reservation", ""), "expected a name", "cr-"},
      {of_aws().set("spot", true), "not possible for spot machines", "spot = true"}};
  for (const Wrong& wrong : all) {
    INFO(wrong.options.to_json());
    Named w;
    const Result<Lease> refused = w.rented(wrong.options);
    REQUIRE_FALSE(refused);
    CHECK(refused.error().kind == ErrorKind::invalid);
    CHECK_THAT(refused.error().message, Catch::Contains(wrong.message));
    CHECK_THAT(refused.error().hint, Catch::Contains(wrong.hint));
    CHECK(w.cloud.creates == 0);
  }
}
