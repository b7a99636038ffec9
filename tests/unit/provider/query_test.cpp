#include <catch2/catch.hpp>
#include <limits>

#include "runtime/workflow/provider/addressed.hpp"
#include "runtime/workflow/provider/catalogue/known.hpp"
#include "runtime/workflow/provider/catalogue/rank.hpp"
#include "runtime/workflow/provider/local/local.hpp"
#include "runtime/workflow/provider/provider.hpp"
#include "runtime/workflow/provider/texts.hpp"

using namespace rille;
using namespace rille::provider;

namespace {
Result<OfferQuery> read_query(const char* json) { return OfferQuery::from_value(Value::from_json(json).value()); }
}  // namespace

TEST_CASE("a query reads every field and names the wrong ones") {
  auto q =
      read_query(R"({"gpu":"A100:8","spot":true,"max_price":1.5,"region":"eu","vcpus":4,"memory":"32GB"})").value();
  CHECK(q.gpu == "A100");
  CHECK(q.count == 8);
  CHECK(q.spot);
  CHECK(q.max_price_micros_per_hour == 1'500'000);
  CHECK(q.memory_bytes == 32'000'000'000);
  CHECK(OfferQuery::from_value(Value()).value().gpu == "any");

  auto misspelt = read_query(R"({"regoin":"eu"})");
  REQUIRE_FALSE(misspelt.ok());
  CHECK(misspelt.error().kind == ErrorKind::invalid);
  CHECK(misspelt.error().hint == "did you mean 'region'?");
  for (const char* bad : {R"({"gpu":7})", R"({"gpu":"A100:x"})", R"({"count":1.5})", R"({"spot":"yes"})",
                          R"({"max_price":"cheap"})", R"({"memory":true})", R"({"vcpus":-1})", "7"}) {
    INFO(bad);
    CHECK_FALSE(read_query(bad).ok());
  }
}

TEST_CASE("an offer matches what it satisfies") {
  Offer cpu;
  cpu.vcpus = 4;
  cpu.memory_bytes = 8'000'000'000;
  cpu.price_micros_per_hour = 100;
  CHECK(cpu.matches(read_query("{}").value()));
  CHECK(cpu.matches(read_query(R"({"gpu":"cpu"})").value()));
  CHECK_FALSE(cpu.matches(read_query(R"({"gpu":"A100"})").value()));
  CHECK_FALSE(cpu.matches(read_query(R"({"gpu":"any","count":1})").value()));
  CHECK_FALSE(cpu.matches(read_query(R"({"vcpus":5})").value()));
  Offer gpu = cpu;
  gpu.gpu = "NVIDIA A100-SXM4-80GB";
  gpu.gpu_count = 8;
  CHECK(gpu.matches(read_query(R"({"gpu":"a100"})").value()));
  CHECK_FALSE(gpu.matches(read_query(R"({"gpu":"A100:4"})").value()));
  CHECK_FALSE(gpu.matches(read_query(R"({"gpu":"cpu"})").value()));
  CHECK_FALSE(gpu.matches(read_query(R"({"max_price":0})").value()));
  CHECK(read_query(R"({"gpu":"cpu","gpu_memory":"1GB"})").error().hint.find("memory = ") != std::string::npos);
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

TEST_CASE("what rests in the journal is written without a Value, and is the same text") {
  CreateRequest request;
  CHECK(text_of(request) == request.to_value().to_json());
  Offer& o = request.offer;
  o.provider = "cloud", o.id = "type \"a\"", o.gpu = "H100", o.region = "z\xc3\xbcrich", o.currency = "CNY";
  o.gpu_vendor = "nvidia", o.interconnect = "nvlink", o.rdma = "efa", o.disk_kind = "nvme", o.driver = "550.54";
  o.cuda_max = "12.4";
  o.compliance = {"iso27001", "gdpr"};
  o.gpu_count = 8, o.vcpus = 96, o.memory_bytes = 1LL << 40, o.gpu_memory_bytes = 80LL << 30, o.spot = true;
  o.price_micros_per_hour = 12'345'678, o.reserved_1y_micros_per_hour = 7, o.reserved_3y_micros_per_hour = 0;
  o.billing.minimum_s = 60, o.billing.from_live = true;
  o.disk_bytes_max = 1LL << 44, o.disk_micros_per_gb_hour = 110, o.network_gbps = 3.2;
  request.tag = "rille-1", request.token = "t", request.expires_wall_us = 1'800'000'000'000'001;
  request.idle_after_ms = 60'000, request.idle_below = 0.05, request.disk_bytes = 5, request.cap_micros_per_hour = 9;
  request.extra.set("image", "x").set("a", Value::Array{1, 2});
  CHECK(text_of(request) == request.to_value().to_json());
  CHECK(request.to_value()["offer"].as_object()->size() == 24);  // every field
  Machine machine;
  CHECK(text_of(machine) == machine.to_value().to_json());
  machine.id = "i-1", machine.tag = "rille-1", machine.state = MachineState::live;
  machine.channel = {{"ssh", "host"}, "/var/rille"};
  machine.details.set("address", "10.0.0.1");
  machine.created_wall_us = 5, machine.expires_wall_us = 6, machine.notice_wall_us = 7;
  machine.price_micros_per_hour = 8;
  CHECK(text_of(machine) == machine.to_value().to_json());
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

TEST_CASE("a query reads the wishes that Rille itself sorts out") {
  auto q = read_query(R"({"regions":["eu","us"],"providers":"aws","compliance":["GDPR"],"interconnect":"NVLink",
                     "network_gbps":100,"rank":"price_per_gpu_gb","rates":{"CNY":0.14}})")
               .value();
  CHECK(q.regions == std::vector<std::string>{"eu", "us"});
  CHECK(q.providers == std::vector<std::string>{"aws"});
  CHECK(q.compliance == std::vector<std::string>{"gdpr"});
  CHECK(q.interconnect == "nvlink");
  CHECK(q.network_gbps == 100);
  CHECK(q.rank == Rank::price_per_gpu_gb);
  CHECK(q.rates == Rates{{"CNY", 0.14}});
  CHECK(read_query(R"({"gpu":"any"})").value().runnable);
  CHECK_FALSE(read_query("{}").value().runnable);

  const OfferQuery several = read_query(R"({"gpu":["H100","A100-80GB:8"],"gpu_memory":"40GB","gpu_vendor":"NVIDIA",
                                       "disk_kind":"nvme"})")
                                 .value();
  CHECK(several.gpus == std::vector<GpuWish>{{"H100", 0}, {"A100-80GB", 8}});
  CHECK((several.gpu == "any" && several.count == 0 && !several.runnable && !several.accepts_no_gpu()));
  CHECK((several.gpu_memory_bytes == 40'000'000'000 && several.gpu_vendor == "nvidia"));
  CHECK(several.disk_kind == "nvme");
  CHECK(several.shown_gpu() == "H100, A100-80GB:8");
  CHECK(several.counts().empty());
  CHECK(read_query(R"({"gpu":["H100","A100:8"],"count":2})").value().counts() == std::vector<int>{2, 8});
  CHECK(read_query(R"({"gpu":["A100:8"]})").value().shown_gpu() == "A100:8");
  const auto hint_of = [](const char* json) { return read_query(json).error().hint; };
  CHECK(hint_of(R"({"gpu_vendor":"nvidea"})") == "did you mean 'nvidia'?");
  CHECK(hint_of(R"({"interconnect":"nvlnk"})") == "did you mean 'nvlink'?");
  CHECK(hint_of(R"({"compliance":["gpdr"]})") == "did you mean 'gdpr'?");
  CHECK(hint_of(R"({"rank":"price_per_tflops"})") == "did you mean 'price_per_tflop'?");
  CHECK(hint_of(R"({"intreconnect":"nvlink"})") == "did you mean 'interconnect'?");
  for (const char* bad :
       {R"({"regions":7})", R"({"regions":["a",7]})", R"({"interconnect":1})", R"({"network_gbps":"fast"})",
        R"({"rates":{"CNY":-1}})", R"({"rates":{"CNY":"0.14"}})", R"({"rates":{"yuan":0.14}})",
        R"({"rates":{"USD":2}})", R"({"rates":["CNY"]})", R"({"rank":"tokens_per_dollar"})",
        R"({"tokens_per_second":{"H100":0}})", R"({"rank":"cheapest"})", R"({"gpu":[]})", R"({"gpu":["A100","any"]})",
        R"({"gpu":["A100",7]})", R"({"gpu_memory":40})", R"({"disk_kind":"ssd"})"}) {
    INFO(bad);
    CHECK_FALSE(read_query(bad).ok());
  }
}

TEST_CASE("gpu = any means a GPU that the plug-in runs, or this machine without one") {
  Offer o;
  o.provider = "aws";
  o.region = "us-east-1";
  const auto fits = [&o](const char* json) { return o.matches(read_query(json).value()); };
  CHECK(fits("{}"));
  CHECK_FALSE(fits(R"({"gpu":"any"})"));  // a processor in a cloud
  o.provider = "ssh";
  CHECK_FALSE(fits(R"({"gpu":"any"})"));  // a host of one's own without a GPU is "cpu"
  CHECK(fits(R"({"gpu":"cpu"})"));
  o.provider = "local";
  CHECK(fits(R"({"gpu":"any"})"));
  o.provider = "aws";
  o.gpu_count = 1;
  for (const auto& [model, runs] :
       {std::pair("T4", true), std::pair("A100 80GB", true), std::pair("B200", true), std::pair("RTX 5090", true),
        std::pair("V100", false), std::pair("P100", false), std::pair("MI300X", false), std::pair("", false)}) {
    INFO(model);
    o.gpu = model;
    CHECK(fits("{}"));
    CHECK(fits(R"({"gpu":"any"})") == runs);
  }
}

TEST_CASE("what the tables know of a type and a region is in its offer") {
  Offer p4;
  p4.provider = "aws";
  p4.region = "eu-central-1";
  p4.id = "eu-central-1/p4d.24xlarge:spot";
  p4.gpu = "A100";
  p4.gpu_count = 8;
  CHECK(p4.matches(
      read_query(R"({"interconnect":"nvswitch","network_gbps":400,"compliance":["gdpr","hipaa"]})").value()));
  CHECK(p4.matches(read_query(R"({"interconnect":"efa"})").value()));
  CHECK(p4.matches(read_query(R"({"interconnect":"nvlink"})").value()));
  CHECK_FALSE(p4.matches(read_query(R"({"interconnect":"infiniband"})").value()));
  CHECK_FALSE(p4.matches(read_query(R"({"network_gbps":401})").value()));
  CHECK_FALSE(p4.matches(read_query(R"({"compliance":"mlps3"})").value()));
  complete(p4);
  CHECK(p4.gpu_vendor == "nvidia");
  CHECK(p4.disk_kind == "nvme");
  CHECK(Offer::from_value(p4.to_value()).value().to_value() == p4.to_value());
  // What the provider said itself stays.
  Offer told = p4;
  told.interconnect = "pcie";
  complete(told);
  CHECK(told.interconnect == "pcie");
  CHECK(told.cuda_max.empty());
  Offer old = p4;
  old.gpu = "V100";
  complete(old);
  CHECK(old.cuda_max == "12.9");

  Offer london = p4;
  london.region = "eu-west-2";
  london.compliance.clear();
  complete(london);
  CHECK(london.compliance == std::vector<std::string>{"hipaa"});
  CHECK(compliance_of("alibaba", "cn-hangzhou") == std::vector<std::string>{"mlps3"});
  CHECK(compliance_of("alibaba", "cn-hongkong").empty());
  CHECK(compliance_of("vast", "Berlin, DE") == std::vector<std::string>{"gdpr"});
  CHECK(compliance_of("ssh", "eu-central-1").empty());
  // Before a driver's offer has its region, only its type is judged.
  Offer type;
  type.id = "p4d.24xlarge";
  type.gpu = "A100";
  type.gpu_count = 8;
  CHECK(type.matches(read_query(R"({"region":"eu-central-1","compliance":"gdpr","interconnect":"nvswitch"})").value()));
  CHECK_FALSE(type.matches(read_query(R"({"interconnect":"roce"})").value()));
  // Of the second and later zones of a region.
  Offer there = type;
  for (const auto& [provider, id] : {std::pair("gcp", "us-central1/a2-highgpu-8g@us-central1-b"),
                                     std::pair("aws", "us-east-1/p4d.24xlarge@us-east-1b:spot")}) {
    there.provider = provider;
    there.id = id;
    there.interconnect.clear();
    complete(there);
    INFO(id);
    CHECK(there.interconnect == "nvswitch");
  }
}

TEST_CASE("an offer of an old journal is read, and a new one has no more than it knows") {
  const Value old = Value::from_json(R"({"provider":"p","id":"x","gpu":"A100","gpu_count":1,"gpu_memory_bytes":1,
      "vcpus":2,"memory_bytes":3,"region":"r","spot":false,"price_micros_per_hour":4})")
                        .value();
  CHECK(Offer::from_value(old).value().to_value() == old);
}

TEST_CASE("what a public address costs is said in dollars per hour, also that it is nothing") {
  const AddressPrices told = read_address_prices(Value::from_json(R"({"aws":0.0045,"gcp":0})").value()).value();
  CHECK(told == AddressPrices{{"aws", 0.0045}, {"gcp", 0.0}});
  const auto refused = [](const char* json) { return read_address_prices(Value::from_json(json).value()).error(); };
  CHECK_THAT(refused(R"({"aws":-1})").message, Catch::Contains("address_price.aws = -1"));
  CHECK_THAT(refused(R"({"awz":0.005})").hint, Catch::Contains("aws"));
}

TEST_CASE("an offer fits by its GPUs' memory, maker and number, and by its disk") {
  Offer o;
  o.provider = o.id = "x";
  o.gpu = "A100", o.gpu_count = 8, o.gpu_memory_bytes = std::int64_t{80} << 30;
  const auto fits = [&o](const char* json) { return o.matches(read_query(json).value()); };
  CHECK(fits(R"({"gpu":["H100","A100-80GB:8"]})"));
  CHECK_FALSE(fits(R"({"gpu":["H100","A100:4"]})"));
  CHECK_FALSE(fits(R"({"gpu":["H100","T4"]})"));
  CHECK(fits(R"({"gpu_memory":"80GB"})"));
  CHECK_FALSE(fits(R"({"gpu_memory":"96GB"})"));
  CHECK(fits(R"({"gpu_vendor":"nvidia"})"));
  CHECK_FALSE(fits(R"({"gpu_vendor":"amd"})"));
  CHECK_FALSE(fits(R"({"disk_kind":"nvme"})"));  // what is not known does not fit
  o.disk_kind = "nvme";
  CHECK(fits(R"({"disk_kind":"nvme"})"));
  o.gpu = "", o.gpu_count = 0, o.gpu_memory_bytes = 0;
  CHECK(fits("{}"));
  for (const char* gpu : {R"({"gpu":["H100","T4"]})", R"({"gpu_memory":"1GB"})", R"({"gpu_vendor":"nvidia"})"})
    CHECK_FALSE(fits(gpu));
  o.gpu = "A10", o.gpu_count = 1, o.gpu_memory_bytes = std::int64_t{22'888} << 20;  // sold as 24 GB
  CHECK(fits(R"({"gpu_memory":"24GB"})"));
}

TEST_CASE("prices are converted by a given rate, and unknown prices rank last") {
  Offer yuan;
  yuan.provider = yuan.id = "y";
  yuan.price_micros_per_hour = 10'000'000;
  yuan.currency = "CNY";
  CHECK(yuan.dollars() == price_unknown);
  CHECK(yuan.dollars({{"CNY", 0.14}}) == 1'400'000);
  CHECK(yuan.from_dollars(1'400'000, {{"CNY", 0.14}}) == 10'000'000);
  CHECK(yuan.from_dollars(1, {}) == price_unknown);
  CHECK(convert(std::numeric_limits<Micros>::max(), 1e300) == price_unknown);
  CHECK_FALSE(yuan.matches(read_query(R"({"max_price":2})").value()));
  CHECK(yuan.matches(read_query(R"({"max_price":2,"rates":{"CNY":0.14}})").value()));
  CHECK(ranked_view(yuan, read_query(R"({"rates":{"CNY":0.14}})").value()).number("dollars_per_hour") == 1.4);

  Offer a100 = yuan, h100 = yuan, odd = yuan;
  a100.currency = h100.currency = odd.currency = "USD";
  a100.id = "a100", a100.gpu = "A100", a100.gpu_count = 8, a100.gpu_memory_bytes = 80'000'000'000;
  h100.id = "h100", h100.gpu = "H100", h100.gpu_count = 8, h100.gpu_memory_bytes = 80'000'000'000;
  odd.id = "odd", odd.gpu = "QQ7", odd.gpu_count = 8;
  a100.price_micros_per_hour = 20'000'000, h100.price_micros_per_hour = 30'000'000;
  const auto order = [&](const char* json) {
    std::vector<Offer> all{yuan, odd, h100, a100};
    sort_by_rank(all, read_query(json).value());
    std::string out;
    for (const Offer& o : all) (out += out.empty() ? "" : " ") += o.id;
    return out;
  };
  CHECK(order("{}") == "odd a100 h100 y");
  CHECK(order(R"({"rank":"price_per_tflop"})") == "h100 a100 y odd");
  CHECK(order(R"({"rank":"price_per_gpu_gb"})") == "a100 h100 y odd");
  CHECK(order(R"({"rank":"tokens_per_dollar","tokens_per_second":{"A100":4000}})") == "a100 y odd h100");
  const OfferQuery q = read_query(R"({"rank":"tokens_per_dollar","tokens_per_second":{"A100":4000}})").value();
  CHECK(ranked_view(a100, q).number("tokens_per_dollar") == Approx(4000.0 * 8 * 3600 / 20));
  CHECK(ranked_view(h100, q)["tokens_per_dollar"].is_null());
}
