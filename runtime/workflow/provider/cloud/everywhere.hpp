// Everywhere: base class of drivers for clouds with one API address for all locations and one key in every call. Loop
// thread only.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/core/net/credentials/chain.hpp"
#include "runtime/workflow/provider/cloud/first_boot.hpp"
#include "runtime/workflow/provider/cloud/regional.hpp"
#include "runtime/workflow/provider/providers.hpp"

namespace rille::provider::cloud {

class Everywhere : public RegionDriver {
 public:
  const std::string& region() const override { return everywhere_; }
  Async<Identity> check(CancelToken token) override {
    RILLE_CO_TRY(Identity out, co_await identity(token));
    RILLE_CO_TRY(const net::FoundKeys found, co_await chain_.get(token));
    out.from = found.from;
    co_return out;
  }

 protected:
  Everywhere(SshKeys keys, net::CredentialChain chain) : access_(std::move(keys)), chain_(std::move(chain)) {}
  // The key's identity; the caller fills in `from`.
  virtual Async<Identity> identity(CancelToken token) = 0;

  // Converts the account's machines whose tag begins with `prefix`; other machines are skipped.
  template <class T, class F>
  static Result<std::vector<Machine>> tagged(const std::vector<T>& all, std::string T::*tag, const std::string& prefix,
                                             F machine_of) {
    std::vector<Machine> out;
    for (const T& one : all) {
      if ((one.*tag).empty() || !(one.*tag).starts_with(prefix)) continue;
      RILLE_TRY(Machine m, machine_of(one));
      out.push_back(std::move(m));
    }
    return out;
  }

  // The bid for a whole machine, on markets where the bid is the price: 10 % above the current minimum, so that it is
  // not outbid at once, and at most the price that the lease has reserved.
  static Micros bid_of(const CreateRequest& request) {
    constexpr Micros above_percent = 10;
    const Micros asked = std::max<Micros>(request.offer.price_micros_per_hour, 0);
    const Micros above = std::max<Micros>(asked + asked * above_percent / 100, 1);
    return request.cap_micros_per_hour > 0 ? std::min(above, request.cap_micros_per_hour) : above;
  }

  const std::string everywhere_;
  Access access_;
  net::CredentialChain chain_;
};

// Makes a provider from one driver. `said`: the traits in the settings, which override `traits`.
template <class Driver, class Settings>
Result<std::unique_ptr<Provider>> make_everywhere(const char* name, Setup setup, Settings settings, const Value& said,
                                                  Traits traits) {
  RILLE_TRY(SshKeys keys, SshKeys::open(setup.config + "/ssh"));
  RILLE_TRY(traits, read_traits(said, std::move(traits)));
  std::vector<std::unique_ptr<RegionDriver>> drivers;
  drivers.push_back(std::make_unique<Driver>(setup.loop, std::move(keys), std::move(settings)));
  return make_regional(setup.loop, name, std::move(traits), std::move(drivers));
}

}  // namespace rille::provider::cloud
