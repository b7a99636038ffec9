// The values of renting: query, offer, create request, machine. They may appear in the journal, so none holds a secret.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/core/base/channel_spec.hpp"
#include "runtime/core/base/money.hpp"
#include "runtime/workflow/provider/account.hpp"

namespace rille::provider {

// What ends a rented machine if the process that rented it never returns. guest: software on the machine itself.
enum class DeadMan { provider, guest, credential, none };
std::string_view to_string(DeadMan who);

struct Traits {
  // for how long a repeated create token returns the same machine; 0: tokens are ignored
  std::int64_t token_lifetime_ms = 0;
  std::int64_t create_timeout_ms = 60'000;  // a create call may still take effect this long after sending
  std::int64_t visibility_lag_ms = 0;       // a new machine appears in list and describe within this time
  std::int64_t billing_unit_s = 1, billing_minimum_s = 0;  // shown to people; costs use Offer::billing
  // How often the lease layer polls a live machine for a notice and its price; 0: never.
  std::int64_t look_every_ms = 0;
  std::int64_t teardown_ms = 0;  // how long a machine may still cost money after its expiry
  DeadMan dead_man = DeadMan::none;
  std::int64_t spot_notice_s = 0;  // warning before a spot machine is taken away; 0: none
  std::string currency = "USD";
  bool owned = false;  // the machines are the user's own or already paid for: nothing is billed
};

// Returns `otherwise` with the fields that the object `v` overrides. `v` has the names and units of Traits; dead_man is
// a string: "provider", "guest", .. A null `v` changes nothing. For traits that a provider does not document, and for
// tests. Error config: names the wrong field.
Result<Traits> read_traits(const Value& v, Traits otherwise);

// The order of a list of offers. An offer whose number (price, GPU speed) is unknown comes last.
enum class Rank {
  price,              // dollars per hour
  price_per_tflop,    // dollars per hour for each dense bfloat16 TFLOP/s (fp16 if a GPU has no bfloat16)
  price_per_gpu_gb,   // dollars per hour for each GB of GPU memory
  tokens_per_dollar,  // training tokens per dollar, from OfferQuery::tokens_per_second
};
std::string_view to_string(Rank rank);

using Rates = std::map<std::string, double>;                    // dollars for one unit of a currency: {CNY = 0.14}
double rate_of(std::string_view currency, const Rates& rates);  // dollars for one unit; "USD": 1, unknown: 0

// What a list of offers leaves out. All copies of one OfferQuery share one LeftOut. Loop thread only.
struct LeftOut {
  std::int64_t unpriced = 0;         // number of matching types left out, because each price would need a call
  std::vector<AskedRegion> unasked;  // regions that did not answer, or did not give prices
};

// A GPU model and how many of these GPUs a machine has; count 0: any number.
struct GpuWish {
  std::string model;
  int count = 0;
  friend bool operator==(const GpuWish&, const GpuWish&) = default;
};

struct OfferQuery {
  std::string gpu = "any";  // "any": with or without GPUs; "cpu": without GPUs; else a GPU model: "A100"
  // true if the caller wrote gpu = "any": accept only GPUs that the CUDA plug-in supports, or the local machine's CPU
  bool runnable = false;
  int count = 0;                      // GPUs per machine; 0: any number
  std::vector<GpuWish> gpus;          // several acceptable models; if not empty, `gpu` is "any" and `count` is 0
  std::int64_t gpu_memory_bytes = 0;  // minimum memory of each GPU; 0: no minimum
  std::string gpu_vendor, disk_kind;  // "": any vendor; "": any kind of disk
  bool spot = false;
  std::optional<Micros> max_price_micros_per_hour;
  std::string region;                           // "": any region
  int vcpus = 0;                                // minimum number; 0: no minimum
  std::int64_t memory_bytes = 0;                // minimum main memory; 0: no minimum
  std::vector<std::string> regions, providers;  // the offer is from one of these; empty: from any
  std::string interconnect;                     // "": any; catalogue/known.hpp lists the values
  std::vector<std::string> compliance;          // the region has all of these tags
  double network_gbps = 0;                      // minimum guaranteed network speed; 0: no minimum
  Rank rank = Rank::price;
  Rates rates;
  std::map<std::string, double> tokens_per_second;  // training speed of one GPU, by GPU model
  std::string zone;                                 // of the machine's volumes: no offer of another zone; "": any
  std::shared_ptr<LeftOut> left_out;                // drivers report here what they leave out; null: not reported
  std::int64_t patience_ms = 30'000;                // time limit of each call to a region; late regions are left out

  // Fields: gpu ("A100", "A100:8", or a list of these), gpu_memory ("40GB"), gpu_vendor, disk_kind, count, spot,
  // max_price (dollars per hour), region, vcpus, memory ("32GB"), and the other members by name. Null gives the
  // defaults. Error invalid: an unknown field or value (the error suggests the nearest known one), or a wrong type.
  static Result<OfferQuery> from_value(const Value& value);
  static const std::vector<std::string>& fields();  // the names of all fields
  // Whether a machine without a GPU may match.
  bool accepts_no_gpu() const;
  bool accepts_gpu(std::string_view model, std::int64_t memory_bytes) const;  // ignores the number of GPUs
  bool accepts_count(std::string_view model, std::int64_t memory_bytes, int count) const;
  std::vector<int> counts() const;  // the requested numbers of GPUs; empty: any
  std::string shown_gpu() const;    // the requested GPUs as text: "H100, A100-80GB:8"
  bool accepts_region(std::string_view name) const;
  bool accepts_provider(std::string_view name) const;
};

// {"aws": 0.08}: dollars per gigabyte and month of an ordered disk, by provider.
using DiskPrices = std::map<std::string, double>;
Result<DiskPrices> read_disk_prices(const Value& value);

// Reads {"CNY": 0.14}, from a query or the settings file. Error invalid: a number not above 0, an unknown currency.
Result<Rates> read_rates(const Value& value);

constexpr Micros price_unknown = -1;
// amount * rate; price_unknown if the amount or the rate is unknown, or the product overflows.
Micros convert(Micros amount, double rate);

// How a machine's time is billed: in units of unit_s seconds (a started unit counts in full), for at least minimum_s
// seconds and at least minimum_micros of money.
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
  std::string gpu;           // GPU model; "": no GPU
  int gpu_count = 0;
  std::int64_t gpu_memory_bytes = 0;  // memory of one GPU
  int vcpus = 0;
  std::int64_t memory_bytes = 0;
  std::string region;
  bool spot = false;
  Micros price_micros_per_hour = 0;  // in millionths of `currency`, or price_unknown
  std::string currency = "USD";
  // The hourly price with a one- or three-year commitment; advance payments are spread over the term.
  Micros reserved_1y_micros_per_hour = price_unknown, reserved_3y_micros_per_hour = price_unknown;
  Billing billing;
  std::int64_t disk_bytes_max = 0;  // limit of CreateRequest::disk_bytes; 0: no disk can be ordered
  // Price of an ordered disk, which is deleted with its machine, or of a volume; price_unknown: only of a volume.
  Micros disk_micros_per_gb_hour = 0;
  // The following fields are from the provider's API, else from the tables of catalogue/known.hpp; "" and 0: unknown.
  std::string gpu_vendor;               // "nvidia", "amd", ..
  std::string interconnect;             // between the machine's GPUs: "pcie", "nvlink", "nvswitch", "xgmi"
  std::string rdma;                     // between machines: "infiniband", "roce", "efa", "erdma"
  double network_gbps = 0;              // guaranteed network speed
  std::string disk_kind;                // of the included disk: "nvme" (local) or "network"
  std::string driver, cuda_max;         // the GPU driver, and the newest CUDA version it supports: "550.54", "12.4"
  std::vector<std::string> compliance;  // compliance tags of the region

  // The hourly price in micro-dollars; price_unknown if the currency is neither USD nor in `rates`.
  Micros dollars(const Rates& rates = {}) const { return in_dollars(price_micros_per_hour, rates); }
  Micros in_dollars(Micros amount, const Rates& rates) const;
  Micros from_dollars(Micros amount, const Rates& rates) const;  // the amount in the offer's currency
  Micros disk_micros(std::int64_t bytes) const;  // hourly price of a disk of that size, in the offer's currency
  Value to_value() const;                        // as journaled
  Value view() const;                            // for people: price_per_hour in dollars, absent if unknown
  static Result<Offer> from_value(const Value& value);
  // Whether this offer satisfies the query, including the price limit.
  bool matches(const OfferQuery& query) const;
};

// The arguments of a create call. They are journaled before the call is sent; after a crash it is sent again unchanged.
struct CreateRequest {
  Offer offer;
  std::string tag;                   // identifies the lease; the machine has it from the create call on
  std::string token;                 // a repeated create with this token returns the same machine
  std::int64_t expires_wall_us = 0;  // wall time at which the machine ends; 0: never
  std::int64_t orphan_after_ms = 30 * 60 * 1000;
  std::int64_t idle_after_ms = 0;  // 0: no idle limit
  double idle_below = 0.05;
  std::int64_t hold_ms = 12 * 3'600'000;  // not sent to the provider: how long the machine is kept for a suspended run
  std::int64_t disk_bytes = 0;            // size of the disk; 0: the provider's default
  Micros cap_micros_per_hour = 0;         // the spot price that the budget has reserved; 0: no limit
  std::int64_t send_by_wall_us = 0;  // latest time to send this request (base/send_by.hpp), not journaled; 0: any time
  Value extra;                       // options that only this provider has

  Value to_value() const;
  static Result<CreateRequest> from_value(const Value& value);
  // Writes into a machine.json object when and why the agent ends the machine.
  void tell_end(Value& instance_file) const;
};

enum class MachineState { pending, live, terminating, gone };
std::string_view to_string(MachineState state);

struct Machine {
  std::string id;
  MachineState state = MachineState::gone;
  std::string tag;
  std::int64_t created_wall_us = 0, expires_wall_us = 0;
  ChannelSpec channel;                           // how to reach the agent; set once the machine is live
  Value details;                                 // for people: address, region, ..
  std::int64_t notice_wall_us = 0;               // when the provider will take the machine away; 0: no notice
  Micros price_micros_per_hour = price_unknown;  // current spot price; price_unknown: the offer's price

  Value to_value() const;
  static Result<Machine> from_value(const Value& value);
};

// The provider's charges for one machine, including disks and addresses.
struct Bill {
  std::string machine_id, tag;
  std::int64_t from_us = 0, to_us = 0;  // billed period; to_us 0: the machine still runs
  Micros micros = 0;                    // millionths of a dollar
  bool final = false;                   // no further charges will be added
};

// Selects the bills of `machines`, and of all machines whose tag begins with `tag` and that ended after since_us.
struct BillQuery {
  std::vector<std::string> machines;
  std::string tag;
  std::int64_t since_us = 0;
};

}  // namespace rille::provider
