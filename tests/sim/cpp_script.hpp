// Scripts whose code is C++, and the verbs that they are made of. A step's body is an effect that the world counts.
#pragma once

#include "tests/sim/world.hpp"
#include "tests/unit/engine/guest.hpp"

namespace rille::torture {

using engine::test::CppGuest;

struct Process {
  World& world;
  Run& run;
  CppGuest& guest;
};
using Main = CppGuest::Body (*)(Process);
// children: by the name with which they are asked for.
Script cpp_script(std::string name, std::string result, Main main, std::map<std::string, Main> children = {});

const std::vector<Script>& scripts();           // in worlds of any kind (scripts.cpp)
const std::vector<Script>& declared_scripts();  // in worlds where nothing is left to chance (declared_scripts.cpp)

// fails: the share of the body's attempts that do.
Async<Value> step(Process p, FiberId f, std::string name, Value result, double fails = 0);
// A machine, sooner or later: what is refused or lost on the way is asked for again under the next name.
Async<engine::LeaseView> rent(Process p, FiberId f, std::string name, Value options, int tries = 60);
// A volume, sooner or later.
Async<engine::VolumeView> volume(Process p, FiberId f, std::string name, bool keep);
Async<Value> call(Process p, FiberId f, const engine::LeaseView& box, std::string name, Value sim);
Value sim_of(const char* duration, Value result, const char* every = nullptr);
using Inner = std::function<Async<Value>(FiberId)>;
// A release that fails is the world's fault and not the script's: the next process tries again.
Async<Value> in_scope(Process p, FiberId f, std::string name, Inner body);
Async<Value> in_scope_with(Process p, FiberId f, std::string name, Inner body, Inner deferred);
// Rents and calls until the work is done, on however many machines.
Async<Value> work(Process p, FiberId f, std::string name, Value options, Value sim);
// A step that must not happen twice. Where its process died inside, the probe, if it has one, asks the world.
Async<Value> once(Process p, FiberId f, std::string name, Value result, bool probes);
Value cheap();
Value spot();

}  // namespace rille::torture
