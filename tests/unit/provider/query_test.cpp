#include <catch2/catch.hpp>

#include "runtime/provider/provider.hpp"
#include "runtime/provider/local/local.hpp"

using namespace rille;
using namespace rille::provider;

namespace {
Result<OfferQuery> query(const char* json) { return OfferQuery::from_value(Value::from_json(json).value()); }
}  // namespace

TEST_CASE("a query reads every field and names the wrong ones") {
  auto q = query(R"({"gpu":"A100:8","spot":true,"max_price":1.5,"region":"eu","vcpus":4,"memory":"32GB"})").value();
  CHECK(q.gpu == "A100");
  CHECK(q.count == 8);
  CHECK(q.spot);
  CHECK(q.max_price_micros_per_hour == 1'500'000);
  CHECK(q.memory_bytes == 32'000'000'000);
  CHECK(OfferQuery::from_value(Value()).value().gpu == "any");

  auto misspelt = query(R"({"regoin":"eu"})");
  REQUIRE_FALSE(misspelt.ok());
  CHECK(misspelt.error().kind == ErrorKind::invalid);
  CHECK(misspelt.error().hint == "did you mean 'region'?");
  for (const char* bad : {R"({"gpu":7})", R"({"gpu":"A100:x"})", R"({"count":1.5})", R"({"spot":"yes"})",
                          R"({"max_price":"cheap"})", R"({"memory":true})", R"({"vcpus":-1})", "7"}) {
    INFO(bad);
    CHECK_FALSE(query(bad).ok());
  }
}

TEST_CASE("an offer matches what it satisfies") {
  Offer cpu;
  cpu.vcpus = 4;
  cpu.memory_bytes = 8'000'000'000;
  cpu.price_micros_per_hour = 100;
  CHECK(cpu.matches(query("{}").value()));
  CHECK(cpu.matches(query(R"({"gpu":"cpu"})").value()));
  CHECK_FALSE(cpu.matches(query(R"({"gpu":"A100"})").value()));
  CHECK_FALSE(cpu.matches(query(R"({"gpu":"any","count":1})").value()));
  CHECK_FALSE(cpu.matches(query(R"({"vcpus":5})").value()));
  Offer gpu = cpu;
  gpu.gpu = "NVIDIA A100-SXM4-80GB";
  gpu.gpu_count = 8;
  CHECK(gpu.matches(query(R"({"gpu":"a100"})").value()));
  CHECK_FALSE(gpu.matches(query(R"({"gpu":"A100:4"})").value()));
  CHECK_FALSE(gpu.matches(query(R"({"gpu":"cpu"})").value()));
  CHECK_FALSE(gpu.matches(query(R"({"max_price":0})").value()));
}

TEST_CASE("requests, offers and machines rest in the journal without loss") {
  CreateRequest request;
  request.offer.provider = "local";
  request.offer.id = "cpu";
  request.offer.price_micros_per_hour = 1;
  request.tag = "rille-1";
  request.token = "t";
  request.expires_wall_us = 1'800'000'000'000'001;
  CHECK(CreateRequest::from_value(request.to_value()).value().to_value() == request.to_value());
  CHECK_FALSE(CreateRequest::from_value(Value()).ok());
  Machine machine;
  machine.id = "i-1";
  machine.state = MachineState::terminating;
  machine.channel = {{"ssh", "host"}, "/var/rille"};
  CHECK(Machine::from_value(machine.to_value()).value().to_value() == machine.to_value());
  CHECK(ChannelSpec::from_value(machine.channel.to_value()).value() == machine.channel);
  CHECK_FALSE(ChannelSpec::from_value(Value()).ok());
}

TEST_CASE("an offer without a price, or with nonsense for one, is not free") {
  for (const char* price : {"null", "\"3.50\"", "-7", "{}"}) {
    Value offer = Value::from_json(R"({"provider": "p", "id": "x"})").value();
    offer.set("price_micros_per_hour", Value::from_json(price).value());
    CHECK(Offer::from_value(offer).value().dollars() == price_unknown);
  }
  Value silent = Value::from_json(R"({"provider": "p", "id": "x"})").value();
  CHECK(Offer::from_value(silent).value().dollars() == price_unknown);
}

TEST_CASE("a registry finds by name and suggests the nearest") {
  auto loop = Loop::create().value();
  Registry registry;
  CHECK(registry.add(make_local_provider(*loop, {"/tmp/none"})).ok());
  CHECK_FALSE(registry.add(make_local_provider(*loop, {"/tmp/none"})).ok());
  CHECK(registry.find("local").value()->name() == "local");
  auto missing = registry.find("locla");
  REQUIRE_FALSE(missing.ok());
  CHECK(missing.error().hint == "did you mean 'local'?");
}
