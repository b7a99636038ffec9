// Objects shared between the host program and the scripts of a runtime: buffers and tensors, functions of scripts, and
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

// Values by number. A number is used once: its lower half is a slot, its upper half counts how often the slot was used.
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
  std::optional<T> drop(std::uint64_t number) {  // returns the value when its last holder drops it
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

// A buffer, a tensor in the host program's memory (memory and dtype), or a tensor of a script (tensor).
struct Held {
  std::shared_ptr<host::Memory> memory;
  std::optional<DType> dtype;
  kernels::Dims shape;
  tensor::Tensor tensor;
  tensor::Tensor whole;                          // set by a view: the tensor in row-major order
  std::shared_ptr<std::vector<std::byte>> copy;  // set by a view of a tensor on a GPU: its values in host memory
};

struct ScriptFunction {
  Bridge* bridge = nullptr;  // null: the script has been freed, or the run has ended
  int ref = 0;               // reference in the registry of its Lua state
};

class Holdings : public std::enable_shared_from_this<Holdings> {
 public:
  explicit Holdings(std::shared_ptr<Gate> gate) : gate_(std::move(gate)) {}

  // When the last user of the memory ends, on any thread, `release` becomes due.
  std::shared_ptr<host::Memory> wrap(void* data, std::size_t size, rille_release_function release, void* payload);
  void release_due();  // calls the due callbacks. On the runtime's thread, outside of Lua
  // the runtime has ended: calls the due callbacks; later ones are called by the memory's last user
  void end();

  std::uint64_t add(Held held);
  Result<Held> find(rille_handle handle);  // returns a copy; `state`: the handle is no longer valid
  Result<> hold(rille_handle handle);
  std::optional<Held> drop(rille_handle handle);
  // Keeps the tensor or copy that a view has made until the handle is dropped.
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
  std::mutex mutex_;  // guards the members below
  Slots<Held> handles_;
  std::vector<Due> due_;
  std::atomic<bool> any_due_{false};  // read without the mutex, at each call
  bool ended_ = false;
};

}  // namespace rille::capi
