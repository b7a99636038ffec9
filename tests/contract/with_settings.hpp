// WithSettings: the provider with other settings than the fake's, and a look at what it was sent.
#pragma once

#include <string>
#include <utility>

#include "tests/contract/fake.hpp"

namespace rille::provider {

struct WithSettings : Fake {
  void say(const std::string& name, Value value) {
    Value settings = told["settings"];
    settings.set(name, std::move(value));
    told.set("settings", std::move(settings));
    provider = make();
  }
  CreateRequest order_of(const std::string& token, const std::string& gpu) {
    CreateRequest request = order(token);
    request.offer = offers(gpu).front();
    return request;
  }
  bool was_sent(const std::string& text) {
    const Value state = control("state");
    for (const Value& call : *state["calls"].as_array())
      if (call["parameters"].to_json().find(text) != std::string::npos) return true;
    return false;
  }
  std::size_t asked(const std::string& operation) {
    std::size_t n = 0;
    const Value state = control("state");
    for (const Value& call : *state["calls"].as_array()) n += call.text("operation") == operation;
    return n;
  }
  void end(const std::string& id) {
    REQUIRE(wait(provider->terminate(id, {})));
    until(id, MachineState::gone);
  }
};

}  // namespace rille::provider
