// Documents that describe offers, rents, machines and hosts, from services, journals, machines and people: each is read
// or refused with a reason; sizes and counts that are accepted are not negative.
#include "runtime/workflow/provider/cloud/ssh_from.hpp"
#include "runtime/workflow/provider/rent_options.hpp"
#include "runtime/workflow/provider/ssh/hosts.hpp"
#include "runtime/workflow/provider/types.hpp"
#include "tests/fuzz/fuzz.hpp"

using namespace rille;
using namespace rille::provider;

namespace {

template <class T>
void check(const Result<T>& read) {
  if (!read) fuzz_check(!read.error().message.empty(), "a refusal says why");
}

void check_all(const Value& v) {
  const Result<OfferQuery> query = OfferQuery::from_value(v);
  check(query);
  if (query) {
    fuzz_check(query->count >= 0 && query->gpu_memory_bytes >= 0, "counts and sizes are not negative");
    check(read_rent_options(v, *query));
  }
  const Result<Offer> offer = Offer::from_value(v);
  check(offer);
  if (offer) check(Offer::from_value(offer->to_value()));
  check(CreateRequest::from_value(v));
  check(Machine::from_value(v));
  (void)Billing::from_value(v);
  check(read_traits(v, {}));
  check(read_ssh_hosts(v));
  check(read_disk_prices(v));
  check(read_rates(v));
  check(read_size("disk", v));
  check(cloud::read_ssh_from("aws", v));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const Result<Value> v = Value::from_json(std::string_view(reinterpret_cast<const char*>(data), size));
  if (!v) return 0;
  check_all(*v);
  if (const Value::Object* fields = v->as_object())
    for (const auto& [name, field] : *fields) check_all(field);
  return 0;
}

std::vector<std::string> fuzz_seeds() {
  return {R"({"gpu":["H100","A100-80GB:8"],"count":2,"gpu_memory":"80GB","spot":true,"max_price":2.5,"region":"eu",
              "provider":"aws","cpus":4,"memory":"32GB","disk":"200GB","rank":"price_per_tflop","limit":5})",
          R"({"provider":"aws","type":"p5.48xlarge","region":"us-east-1","gpu":"H100","gpus":8,"gpu_memory_bytes":8e10,
              "cpus":192,"memory_bytes":2e12,"price":98.3,"spot":true,"currency":"USD","available":true})",
          R"({"hosts":["user@gpu1",{"address":"gpu2","name":"b","port":22,"identity":"/k","directory":"/d",
              "region":"r","slots":2,"price":1.25}],"options":["-o","X=y"]})",
          R"({"dead_man":"provider","spot_notice_s":120,"currency":"CNY","owned":true,"name_length":63})",
          R"({"aws":0.08,"gcp":0.04})",
          R"({"CNY":0.14})",
          R"("200GB")",
          R"(["10.0.0.0/8","::/0"])",
          R"({"id":"i-1","tag":"rille-x","state":"running","address":"10.0.0.1","created_us":1,"billing":{}})"};
}

std::vector<std::string> fuzz_words() {
  return {"-1",
          "1e300",
          "0.5",
          "null",
          "true",
          "[]",
          "{}",
          "\"\"",
          "\"any\"",
          "\"cpu\"",
          "\"H100:0\"",
          "\"H100:\"",
          "\"H100:-1\"",
          "\"H100:99999999999\"",
          "\"0GB\"",
          "\"1e9 EB\"",
          "\"10.0.0.0/33\"",
          "\"::/129\"",
          "\"-o\"",
          "\"a b@c;d\"",
          "\"\\u0000\"",
          "\"$num\":\"nan\""};
}
