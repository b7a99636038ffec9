// The values of renting: query, offer, create request, machine. They may appear in the journal, so none holds a secret.
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

// What ends a machine whose runner is lost for good.
enum class DeadMan { provider, guest, credential, none };
std::string_view to_string(DeadMan who);

struct Traits {
  std::int64_t token_lifetime_ms = 0;       // how long the provider remembers a create token; 0: tokens are ignored
  std::int64_t create_timeout_ms = 60'000;  // a create call may still take effect this long after sending
  std::int64_t visibility_lag_ms = 0;       // a new machine appears in list and describe within this time
  std::int64_t billing_unit_s = 1, billing_minimum_s = 0;  // for people; each offer has its own Billing
  // How often the lease layer polls a live machine for a notice and its price; 0: never.
  std::int64_t look_every_ms = 0;
  std::int64_t teardown_ms = 0;  // how long a machine may still cost money after its expiry
  DeadMan dead_man = DeadMan::none;
  std::int64_t spot_notice_s = 0;  // warning before a spot machine is taken away; 0: none
  std::string currency = "USD";
  bool owned = false;  // the machines are the user's own or already paid for: nothing is billed
};

// `otherwise` with the fields that `v` overrides: an object with the names and units of Traits, and dead_man =
// "provider", "guest", .. Null changes nothing. For traits that a provider does not document, and for tests. config:
// names the field.
Result<Traits> read_traits(const Value& v, Traits otherwise);

// The order of a list of offers. An offer whose number (price, GPU speed) is unknown comes last.
enum class Rank {
  price,              // dollars per hour
  price_per_tflop,    // per dense TFLOP/s of all its GPUs, in bfloat16, or fp16 if a GPU has no bfloat16
  price_per_gpu_gb,   // per GB of GPU memory
  tokens_per_dollar,  // from OfferQuery::tokens_per_second
};
std::string_view to_string(Rank rank);

using Rates = std::map<std::string, double>;                    // dollars for one unit of a currency: {CNY = 0.14}
double rate_of(std::string_view currency, const Rates& rates);  // 0: unknown; 1 for "USD"

// What a list of offers omits. Shared by the copies of one query; loop thread only.
struct LeftOut {
  std::int64_t unpriced = 0;         // matching types whose price was not requested (one call each)
  std::vector<AskedRegion> unasked;  // regions that did not answer, or did not give prices
};

// A GPU model and its number per machine; 0: any number.
struct GpuWish {
  std::string model;
  int count = 0;
  friend bool operator==(const GpuWish&, const GpuWish&) = default;
};

struct OfferQuery {
  std::string gpu = "any";    // "any": with or without; "cpu": without; else a model, as in "A100"
  bool runnable = false;      // set by an explicit "any": a GPU that the CUDA plug-in supports, or this machine's CPU
  int count = 0;              // GPUs per machine; 0: any number
  std::vector<GpuWish> gpus;  // alternatives; then `gpu` is "any" and `count` 0
  std::int64_t gpu_memory_bytes = 0;  // of each GPU, at least
  std::string gpu_vendor, disk_kind;  // "": any
  bool spot = false;
  std::optional<Micros> max_price_micros_per_hour;
  std::string region;                           // "": anywhere
  int vcpus = 0;                                // at least
  std::int64_t memory_bytes = 0;                // at least
  std::vector<std::string> regions, providers;  // one of these; empty: any
  std::string interconnect;                     // "": any; the values: catalogue/known.hpp
  std::vector<std::string> compliance;          // all of these tags
  double network_gbps = 0;                      // at least
  Rank rank = Rank::price;
  Rates rates;
  std::map<std::string, double> tokens_per_second;  // of one GPU, by model
  std::shared_ptr<LeftOut> left_out;                // filled in by drivers; null: not wanted
  std::int64_t patience_ms = 30'000;                // per part of an answer: a late part does not delay the others

  // Fields: gpu ("A100", "A100:8", or a list of these), gpu_memory ("40GB"), gpu_vendor, disk_kind, count, spot,
  // max_price (dollars per hour), region, vcpus, memory ("32GB"), and the other members by name. Null gives the
  // defaults. invalid: an unknown field or value, with the nearest known one; a wrong type.
  static Result<OfferQuery> from_value(const Value& value);
  static const std::vector<std::string>& fields();  // for callers that add their own options
  // Whether a machine without a GPU may match.
  bool accepts_no_gpu() const;
  bool accepts_gpu(std::string_view model, std::int64_t memory_bytes) const;  // ignores the count
  bool accepts_count(std::string_view model, std::int64_t memory_bytes, int count) const;
  std::vector<int> counts() const;  // the requested numbers of GPUs; empty: any
  std::string shown_gpu() const;    // "A100:8", "H100, A100-80GB:8"
  bool accepts_region(std::string_view name) const;
  bool accepts_provider(std::string_view name) const;
};

// {"aws": 0.08}: dollars per gigabyte and month of an ordered disk, by provider.
using DiskPrices = std::map<std::string, double>;
Result<DiskPrices> read_disk_prices(const Value& value);

// {"CNY": 0.14}, from a query or the settings file. invalid: a number not above 0, an unknown currency.
Result<Rates> read_rates(const Value& value);

constexpr Micros price_unknown = -1;
// price_unknown if the amount or the rate is unknown, or the result overflows.
Micros convert(Micros amount, double rate);

// How time is billed: in started units of unit_s, at least minimum_s, and at least minimum_micros.
struct Billing {
  std::int64_t unit_s = 1, minimum_s = 0;
  Micros minimum_micros = 0;
  bool from_live = false;  // provisioning is free: time counts from the state live
  friend bool operator==(const Billing&, const Billing&) = default;

  Value to_value() const;
  static Billing from_value(const Value& value);
};

struct Offer {
  std::string provider, id;  // the id has a meaning only to the provider
  std::string gpu;           // model; "" without GPUs
  int gpu_count = 0;
  std::int64_t gpu_memory_bytes = 0;  // of one
  int vcpus = 0;
  std::int64_t memory_bytes = 0;
  std::string region;
  bool spot = false;
  Micros price_micros_per_hour = 0;  // in millionths of `currency`, or price_unknown
  std::string currency = "USD";
  // The hourly price with a one- or three-year commitment; advance payments are spread over the term.
  Micros reserved_1y_micros_per_hour = price_unknown, reserved_3y_micros_per_hour = price_unknown;
  Billing billing;
  std::int64_t disk_bytes_max = 0;     // limit of CreateRequest::disk_bytes; 0: no disk can be ordered
  Micros disk_micros_per_gb_hour = 0;  // of an ordered disk, which is deleted with its machine
  // From the provider's API, else from the tables of catalogue/known.hpp; "" and 0: unknown.
  std::string gpu_vendor;               // "nvidia", "amd", ..
  std::string interconnect;             // between its GPUs: "pcie", "nvlink", "nvswitch", "xgmi"
  std::string rdma;                     // between machines: "infiniband", "roce", "efa", "erdma"
  double network_gbps = 0;              // guaranteed
  std::string disk_kind;                // of the included disk: "nvme" (local) or "network"
  std::string driver, cuda_max;         // the GPU driver, and the newest CUDA version it supports: "550.54", "12.4"
  std::vector<std::string> compliance;  // tags of the region

  // In micro-dollars; price_unknown unless the currency is USD or `rates` has it.
  Micros dollars(const Rates& rates = {}) const { return in_dollars(price_micros_per_hour, rates); }
  Micros in_dollars(Micros amount, const Rates& rates) const;
  Micros from_dollars(Micros amount, const Rates& rates) const;  // into the offer's currency
  Micros disk_micros(std::int64_t bytes) const;  // per hour, in the offer's currency, per started gigabyte
  Value to_value() const;                        // as journaled
  Value view() const;                            // for people: price_per_hour in dollars, absent if unknown
  static Result<Offer> from_value(const Value& value);
  // Whether it satisfies the query, including the price.
  bool matches(const OfferQuery& query) const;
};

// Journaled before it is sent, and sent again unchanged after a crash.
struct CreateRequest {
  Offer offer;
  std::string tag;                   // derived by the lease layer; set by the create call itself
  std::string token;                 // the same token returns the same machine
  std::int64_t expires_wall_us = 0;  // absolute; 0: none
  std::int64_t orphan_after_ms = 30 * 60 * 1000;
  std::int64_t idle_after_ms = 0;  // 0: no idle limit
  double idle_below = 0.05;
  std::int64_t hold_ms = 12 * 3'600'000;  // not sent: how long it is kept for a suspended run
  std::int64_t disk_bytes = 0;            // 0: the provider's default
  Micros cap_micros_per_hour = 0;         // maximum price of a spot machine, as reserved; 0: none
  std::int64_t send_by_wall_us = 0;       // set anew for each send, not journaled here (base/send_by.hpp); 0: any time
  Value extra;                            // options of one provider only

  Value to_value() const;
  static Result<CreateRequest> from_value(const Value& value);
  // Sets the fields of InstanceFile about the machine's end.
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
  Value details;                                 // for people: address, region, ..
  std::int64_t notice_wall_us = 0;               // when the provider will take it away; 0: no notice
  Micros price_micros_per_hour = price_unknown;  // now, where prices move; unknown: as offered

  Value to_value() const;
  static Result<Machine> from_value(const Value& value);
};

// The exact charges of one machine, with its disks and addresses.
struct Bill {
  std::string machine_id, tag;
  std::int64_t from_us = 0, to_us = 0;  // to_us 0: still running
  Micros micros = 0;                    // dollars
  bool final = false;                   // no further charges will be added
};

// Selects `machines`, and all machines with the tag prefix `tag` that ended after since_us.
struct BillQuery {
  std::vector<std::string> machines;
  std::string tag;
  std::int64_t since_us = 0;
};

}  // namespace rille::provider
