// The words of renting: what is asked for, what is offered, what is ordered, what one has. Plain values. All but
// secrets may appear in the journal, so none of these holds one.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/core/base/channel_spec.hpp"
#include "runtime/core/base/units.hpp"
#include "runtime/workflow/provider/account.hpp"

namespace rille::provider {

// Who ends a machine whose runner is lost for ever.
enum class DeadMan { provider, guest, credential, none };
std::string_view to_string(DeadMan who);

struct Traits {
  std::int64_t token_lifetime_ms = 0;       // how long a create token is remembered; 0: tokens are ignored
  std::int64_t create_timeout_ms = 60'000;  // how long after it was sent a create call may still take effect
  std::int64_t visibility_lag_ms = 0;       // how late a created machine may appear in list and describe
  std::int64_t billing_unit_s = 1, billing_minimum_s = 0;  // for people; what counts is in each offer
  // How often the lease layer asks a live machine about a notice and its price; 0: never by itself.
  std::int64_t look_every_ms = 0;
  std::int64_t teardown_ms = 0;  // how long a machine may still be charged for after its expiry
  DeadMan dead_man = DeadMan::none;
  std::int64_t spot_notice_s = 0;  // warning before a spot machine is taken away; 0: none
  std::string currency = "USD";
  bool owned = false;  // its machines are the user's own, or paid for already: nothing is billed
};

// The same with what `v` says otherwise: an object of these fields, times in milliseconds or seconds as they are named,
// and dead_man = "provider", "guest", .. Null changes nothing. For what a provider's documents leave open, and for
// tests. config: names the field.
Result<Traits> read_traits(const Value& v, Traits otherwise);

// What comes first in a list of offers. Where a number is not known (the price, the GPU's speed) the offer comes last.
enum class Rank {
  price,              // dollars per hour
  price_per_tflop,    // per dense TFLOP/s of all its GPUs, in bfloat16, or half where a GPU has no bfloat16
  price_per_gpu_gb,   // per GB of GPU memory
  tokens_per_dollar,  // by what the asker has measured: OfferQuery::tokens_per_second
};
std::string_view to_string(Rank rank);

using Rates = std::map<std::string, double>;                    // dollars for one unit of a currency: {CNY = 0.14}
double rate_of(std::string_view currency, const Rates& rates);  // 0: nobody knows; 1 of "USD"

// What an answer leaves out. The copies of one question share it; loop thread only.
struct LeftOut {
  std::int64_t unpriced = 0;         // types that fit as well, whose price was not asked for: a call each
  std::vector<AskedRegion> unasked;  // those that did not answer, where others did; or not what things cost
};

// A model, and how many of it in one machine; 0: any number.
struct GpuWish {
  std::string model;
  int count = 0;
  friend bool operator==(const GpuWish&, const GpuWish&) = default;
};

struct OfferQuery {
  std::string gpu = "any";            // "any": also none; "cpu": none; else a model, as in "A100"
  bool runnable = false;              // "any" was said: a GPU that Rille's plug-in runs, or this machine without one
  int count = 0;                      // GPUs per machine; 0: any number
  std::vector<GpuWish> gpus;          // several: one of these; then `gpu` is "any", and `count` 0
  std::int64_t gpu_memory_bytes = 0;  // of each GPU, at least; a machine without one has none
  std::string gpu_vendor, disk_kind;  // "": any
  bool spot = false;
  std::optional<Micros> max_price_micros_per_hour;
  std::string region;                           // "": anywhere
  int vcpus = 0;                                // at least
  std::int64_t memory_bytes = 0;                // at least
  std::vector<std::string> regions, providers;  // one of these; none: any
  std::string interconnect;                     // "": any; what each means: catalogue/known.hpp
  std::vector<std::string> compliance;          // all of these tags
  double network_gbps = 0;                      // at least
  Rank rank = Rank::price;
  Rates rates;
  std::map<std::string, double> tokens_per_second;  // of one GPU of that model
  std::shared_ptr<LeftOut> left_out;                // where a driver says so; null: nobody reads it
  std::int64_t patience_ms = 30'000;  // for each part of an answer: one that is late does not take the others with it

  // Fields gpu ("A100", "A100:8", or a list of such), gpu_memory ("40GB"), gpu_vendor, disk_kind, count, spot,
  // max_price (dollars per hour), region, vcpus, memory ("32GB"), and those above by their names. Null gives the
  // defaults. invalid: an unknown field or word, with the nearest known one; a wrong type.
  static Result<OfferQuery> from_value(const Value& value);
  static const std::vector<std::string>& fields();  // for callers that mix the query with their own options
  // Whether gpu asks for none or does not mind having none.
  bool accepts_no_gpu() const;
  bool accepts_gpu(std::string_view model, std::int64_t memory_bytes) const;  // in any number
  bool accepts_count(std::string_view model, std::int64_t memory_bytes, int count) const;
  std::vector<int> counts() const;  // the numbers of GPUs that are asked for; none: any
  std::string shown_gpu() const;    // "A100:8", "H100, A100-80GB:8"
  bool accepts_region(std::string_view name) const;
  bool accepts_provider(std::string_view name) const;
};

// {"aws": 0.08}: dollars for a gigabyte of an ordered disk, per month, by provider.
using DiskPrices = std::map<std::string, double>;
Result<DiskPrices> read_disk_prices(const Value& value);

// {"CNY": 0.14}, of a query or the settings file. invalid: not a number above 0, not a currency.
Result<Rates> read_rates(const Value& value);

constexpr Micros price_unknown = -1;
// At that rate; price_unknown where either is not known, or beyond what is ever asked.
Micros convert(Micros amount, double rate);

// How time turns into money: started units of unit_s, at least minimum_s, and at least minimum_micros.
struct Billing {
  std::int64_t unit_s = 1, minimum_s = 0;
  Micros minimum_micros = 0;
  bool from_live = false;  // provisioning is free: time counts from the machine's being live
  friend bool operator==(const Billing&, const Billing&) = default;

  Value to_value() const;
  static Billing from_value(const Value& value);
};

struct Offer {
  std::string provider, id;  // the id means something to the provider only
  std::string gpu;           // model; "" without GPUs
  int gpu_count = 0;
  std::int64_t gpu_memory_bytes = 0;  // of one
  int vcpus = 0;
  std::int64_t memory_bytes = 0;
  std::string region;
  bool spot = false;
  Micros price_micros_per_hour = 0;  // in millionths of `currency`; price_unknown: the provider does not say
  std::string currency = "USD";
  // What an hour of it costs who is bound for a year, or three, whatever was paid in advance spread over the term.
  Micros reserved_1y_micros_per_hour = price_unknown, reserved_3y_micros_per_hour = price_unknown;
  Billing billing;
  std::int64_t disk_bytes_max = 0;     // what CreateRequest::disk_bytes may ask for; 0: no disk can be ordered
  Micros disk_micros_per_gb_hour = 0;  // of an ordered disk, which ends with its machine
  // What the driver was told, or a table knows (catalogue/known.hpp); "" and 0: nobody knows.
  std::string gpu_vendor;               // "nvidia", "amd", ..
  std::string interconnect;             // between its GPUs: "pcie", "nvlink", "nvswitch", "xgmi"
  std::string rdma;                     // between machines: "infiniband", "roce", "efa", "erdma"
  double network_gbps = 0;              // that it surely has
  std::string disk_kind;                // of the disk that comes with it: "nvme" in the machine, else "network"
  std::string driver, cuda_max;         // the GPUs' driver, and the newest CUDA that it runs: "550.54", "12.4"
  std::vector<std::string> compliance;  // tags of its provider's region

  // In micro-dollars, or price_unknown: nobody here knows what a yuan costs today, but for who gives a rate.
  Micros dollars(const Rates& rates = {}) const { return in_dollars(price_micros_per_hour, rates); }
  Micros in_dollars(Micros amount, const Rates& rates) const;
  Micros from_dollars(Micros amount, const Rates& rates) const;  // into its currency
  Micros disk_micros(std::int64_t bytes) const;  // per hour, in its currency, by the gigabyte that has begun
  Value to_value() const;                        // as journaled
  Value view() const;                            // as people see it: price_per_hour in dollars, absent when unknown
  static Result<Offer> from_value(const Value& value);
  // Whether it satisfies the query, price included.
  bool matches(const OfferQuery& query) const;
};

// What is journaled before it is sent, and sent exactly so again after a crash.
struct CreateRequest {
  Offer offer;
  std::string tag;                   // derived by the lease layer; set in the create call itself
  std::string token;                 // the same token gives the same machine
  std::int64_t expires_wall_us = 0;  // absolute; 0: none
  std::int64_t orphan_after_ms = 30 * 60 * 1000;
  std::int64_t idle_after_ms = 0;  // 0: however long nobody uses it
  double idle_below = 0.05;
  std::int64_t hold_ms = 12 * 3'600'000;  // not sent: how long it is kept for a run that stands still
  std::int64_t disk_bytes = 0;            // 0: the provider's default
  Micros cap_micros_per_hour = 0;         // of a spot machine: what it may cost at most, as reserved; 0: not told
  std::int64_t send_by_wall_us = 0;       // not journaled here: it is each send's own (base/send_by.hpp); 0: any time
  Value extra;                            // what only one provider understands

  Value to_value() const;
  static Result<CreateRequest> from_value(const Value& value);
  // What InstanceFile says about the machine's end.
  void tell_end(Value& instance_file) const;
};

enum class MachineState { pending, live, terminating, gone };
std::string_view to_string(MachineState state);

struct Machine {
  std::string id;
  MachineState state = MachineState::gone;
  std::string tag;
  std::int64_t created_wall_us = 0, expires_wall_us = 0;
  ChannelSpec channel;                           // meaningful once live
  Value details;                                 // address, region, .. for people
  std::int64_t notice_wall_us = 0;               // the provider will take it away then; 0: no notice
  Micros price_micros_per_hour = price_unknown;  // now, where prices move; unknown: as offered

  Value to_value() const;
  static Result<Machine> from_value(const Value& value);
};

// What a provider has charged for one machine, with its disks and addresses, exactly.
struct Bill {
  std::string machine_id, tag;
  std::int64_t from_us = 0, to_us = 0;  // when it began and ended; to_us 0: it goes on
  Micros micros = 0;                    // dollars
  bool final = false;                   // nothing will be added any more
};

// Those of these machines, and of all whose tag begins with `tag` and that ended after since_us.
struct BillQuery {
  std::vector<std::string> machines;
  std::string tag;
  std::int64_t since_us = 0;
};

}  // namespace rille::provider
