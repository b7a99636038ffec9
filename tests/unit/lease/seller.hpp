// Seller: a provider with one offer, which it says when the test wants. Its machines live at once and are never seen
// again: for tests of what comes before them.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "runtime/workflow/provider/provider.hpp"

namespace rille::lease::test {

class Seller : public provider::Provider {
 public:
  explicit Seller(std::string name, std::string gpu = "") : name_(std::move(name)), gpu_(std::move(gpu)) {
    traits_.dead_man = provider::DeadMan::provider;
  }
  const std::string& name() const final { return name_; }
  const provider::Traits& traits() const final { return traits_; }

  Async<std::vector<provider::Offer>> offers(provider::OfferQuery, CancelToken token) final {
    RILLE_CO_CHECK(co_await ready(std::move(token)));
    provider::Offer o;
    o.provider = name_;
    o.id = "one";
    o.gpu = gpu_;
    o.gpu_count = gpu_.empty() ? 0 : 1;
    o.price_micros_per_hour = 1;
    say(o);
    co_return std::vector<provider::Offer>{o};
  }
  Async<provider::Machine> create(provider::CreateRequest request, CancelToken) final {
    provider::Machine m;
    m.id = "m-" + std::to_string(++made);
    m.tag = request.tag;
    m.state = provider::MachineState::live;
    co_return m;
  }
  Async<provider::Machine> describe(std::string id, CancelToken) final {
    provider::Machine gone;
    gone.id = id;
    co_return gone;
  }
  Async<std::vector<provider::Machine>> list(std::string, CancelToken) final {
    co_return std::vector<provider::Machine>();
  }
  Async<> terminate(std::string, CancelToken) final { co_return success(); }

  int made = 0;

 private:
  virtual Async<> ready(CancelToken token) = 0;  // to say what it offers
  virtual void say(provider::Offer&) {}          // what else it says of its offer

  std::string name_, gpu_;
  provider::Traits traits_;
};

}  // namespace rille::lease::test
