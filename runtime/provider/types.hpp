// The words of renting: what is asked for, what is offered, what is ordered, what one has. Plain values. All but
// secrets may appear in the journal, so none of these holds one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/channel_spec.hpp"
#include "runtime/base/units.hpp"

namespace rille::provider {

// Who ends a machine whose runner is lost for ever.
enum class DeadMan { provider, guest, credential, none };
std::string_view to_string(DeadMan who);

struct Traits {
  std::int64_t token_lifetime_ms = 0;   // how long a create token is remembered; 0: tokens are ignored
  std::int64_t create_timeout_ms = 60'000;  // how long after it was sent a create call may still take effect
  std::int64_t visibility_lag_ms = 0;   // how late a created machine may appear in list and describe
  std::int64_t billing_unit_s = 1, billing_minimum_s = 0;
  DeadMan dead_man = DeadMan::none;
  std::int64_t spot_notice_s = 0;       // warning before a spot machine is taken away; 0: none
  std::string currency = "USD";
};

struct OfferQuery {
  std::string gpu = "any";              // "any": also none; "cpu": none; else a model, as in "A100"
  int count = 0;                        // GPUs per machine; 0: any number
  bool spot = false;
  std::optional<Micros> max_price_micros_per_hour;
  std::string region;                   // "": anywhere
  int vcpus = 0;                        // at least
  std::int64_t memory_bytes = 0;        // at least

  // Fields gpu ("A100", "A100:8"), count, spot, max_price (dollars per hour), region, vcpus, memory ("32GB").
  // Null gives the defaults. invalid: an unknown field, with the nearest known one; a wrong type.
  static Result<OfferQuery> from_value(const Value& value);
  static const std::vector<std::string>& fields();  // for callers that mix the query with their own options
  // Whether gpu asks for none or does not mind having none.
  bool accepts_no_gpu() const;
};

struct Offer {
  std::string provider, id;             // the id means something to the provider only
  std::string gpu;                      // model; "" without GPUs
  int gpu_count = 0;
  std::int64_t gpu_memory_bytes = 0;    // of one
  int vcpus = 0;
  std::int64_t memory_bytes = 0;
  std::string region;
  bool spot = false;
  Micros price_micros_per_hour = 0;

  Value to_value() const;              // as journaled
  Value view() const;                  // as people see it: price_per_hour in dollars
  static Result<Offer> from_value(const Value& value);
  // Whether it satisfies the query, price included.
  bool matches(const OfferQuery& query) const;
};

// What is journaled before it is sent, and sent exactly so again after a crash.
struct CreateRequest {
  Offer offer;
  std::string tag;                      // derived by the lease layer; set in the create call itself
  std::string token;                    // the same token gives the same machine
  std::int64_t expires_wall_us = 0;     // absolute; 0: none
  std::int64_t orphan_after_ms = 30 * 60 * 1000;
  std::int64_t hold_ms = 12 * 3'600'000;  // not sent: how long it is kept for a run that stands still
  std::int64_t disk_bytes = 0;          // 0: the provider's default
  Value extra;                          // what only one provider understands

  Value to_value() const;
  static Result<CreateRequest> from_value(const Value& value);
};

enum class MachineState { pending, live, terminating, gone };
std::string_view to_string(MachineState state);

struct Machine {
  std::string id;
  MachineState state = MachineState::gone;
  std::string tag;
  std::int64_t created_wall_us = 0, expires_wall_us = 0;
  ChannelSpec channel;                  // meaningful once live
  Value details;                        // address, region, .. for people

  Value to_value() const;
  static Result<Machine> from_value(const Value& value);
};

}  // namespace rille::provider
