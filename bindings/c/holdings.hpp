// What the host program and the scripts of a runtime hold of each other: buffers and tensors, functions of scripts, and
// release callbacks that are due. Handles and due releases: any thread. Functions: the runtime's thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "bindings/c/rille.h"
#include "bindings/host/memory.hpp"
#include "runtime/compute/tensor/tensor.hpp"
#include "runtime/core/base/result.hpp"

namespace rille::capi {

class Bridge;
struct Gate;

// Values behind numbers. A number is given out once: the upper half counts how often its place has been used.
template <class T>
class Slots {
 public:
  std::uint64_t add(T value) {
    if (free_.empty()) {
      slots_.emplace_back();
      free_.push_back(static_cast<std::uint32_t>(slots_.size() - 1));
    }
    const std::uint32_t place = free_.back();
    free_.pop_back();
    Slot& slot = slots_[place];
    slot.value = std::move(value);
    slot.holders = 1;
    return std::uint64_t{slot.use} << 32 | place;
  }
  T* find(std::uint64_t number) {
    Slot* slot = valid(number);
    return slot ? &slot->value : nullptr;
  }
  bool hold(std::uint64_t number) {
    Slot* slot = valid(number);
    if (slot) ++slot->holders;
    return slot != nullptr;
  }
  std::optional<T> drop(std::uint64_t number) {  // gives the value back if that was its last holder
    Slot* slot = valid(number);
    if (!slot || --slot->holders) return {};
    ++slot->use;
    free_.push_back(static_cast<std::uint32_t>(number));
    return std::move(slot->value);
  }
  template <class F>
  void each(F fn) {
    for (Slot& slot : slots_)
      if (slot.holders) fn(slot.value);
  }
  std::vector<T> take_all() {
    std::vector<T> out;
    each([&](T& value) { out.push_back(std::move(value)); });
    slots_.clear(), free_.clear();
    return out;
  }

 private:
  struct Slot {
    T value{};
    std::uint32_t use = 1, holders = 0;
  };
  Slot* valid(std::uint64_t number) {
    const auto place = static_cast<std::uint32_t>(number);
    if (place >= slots_.size()) return nullptr;
    Slot& slot = slots_[place];
    return slot.holders && slot.use == number >> 32 ? &slot : nullptr;
  }
  std::vector<Slot> slots_;
  std::vector<std::uint32_t> free_;
};

// A buffer, a tensor in memory of the host program (memory and dtype), or a tensor of a script (tensor).
struct Held {
  std::shared_ptr<host::Memory> memory;
  std::optional<DType> dtype;
  kernels::Dims shape;
  tensor::Tensor tensor;
  tensor::Tensor whole;                          // what was viewed: row-major
  std::shared_ptr<std::vector<std::byte>> copy;  // what was viewed, of a tensor on a GPU
};

struct ScriptFunction {
  Bridge* bridge = nullptr;  // null: the script has been freed, or the run has ended
  int ref = 0;               // in the registry of its Lua state
};

class Holdings : public std::enable_shared_from_this<Holdings> {
 public:
  explicit Holdings(std::shared_ptr<Gate> gate) : gate_(std::move(gate)) {}

  // The memory's last user, on any thread, makes `release` due.
  std::shared_ptr<host::Memory> wrap(void* data, std::size_t size, rille_release_function release, void* payload);
  void release_due();  // calls what is due. On the runtime's thread, outside of Lua
  void end();          // the runtime has ended: calls what is due; from now on the last user calls

  std::uint64_t add(Held held);
  Result<Held> find(rille_handle handle);  // a copy; `state`: no longer valid
  Result<> hold(rille_handle handle);
  std::optional<Held> drop(rille_handle handle);
  // Keeps what a view has made, as long as the handle.
  void keep_view(rille_handle handle, tensor::Tensor whole, std::shared_ptr<std::vector<std::byte>> copy);

  Result<ScriptFunction*> function(rille_script_function number);
  Slots<ScriptFunction> functions;

 private:
  struct Due {
    rille_release_function function;
    void *data, *payload;
    void call() const { function(data, payload); }
  };
  void due(Due one);

  std::shared_ptr<Gate> gate_;
  std::mutex mutex_;  // guards what follows
  Slots<Held> handles_;
  std::vector<Due> due_;
  std::atomic<bool> any_due_{false};  // read without the mutex, at each call
  bool ended_ = false;
};

}  // namespace rille::capi
