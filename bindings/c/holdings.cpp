#include "bindings/c/holdings.hpp"

#include <fmt/format.h>

#include "bindings/c/bridge.hpp"
#include "bindings/c/internal.hpp"
#include "runtime/compute/tensor/ops.hpp"

namespace rille::capi {

std::shared_ptr<host::Memory> Holdings::wrap(void* data, std::size_t size, rille_release_function release,
                                             void* payload) {
  std::function<void()> give_back;
  if (release) give_back = [self = shared_from_this(), one = Due{release, data, payload}] { self->due(one); };
  return std::make_shared<host::Memory>(data, size, std::move(give_back));
}

// Only queues the callback, because the last user may be Lua's garbage collector or a computing thread.
void Holdings::due(Due one) {
  std::unique_lock lock(mutex_);
  if (ended_) {
    lock.unlock();
    return one.call();
  }
  due_.push_back(one);
  any_due_.store(true);
  const bool first = due_.size() == 1;  // otherwise the loop has been woken already
  lock.unlock();
  std::lock_guard gate(gate_->mutex);
  if (first && gate_->loop) gate_->loop->post_from_thread([self = shared_from_this()] { self->release_due(); });
}

void Holdings::release_due() {
  if (!any_due_.load()) return;
  std::unique_lock lock(mutex_);
  any_due_.store(false);
  const std::vector<Due> now = std::exchange(due_, {});
  lock.unlock();
  for (const Due& one : now) one.call();
}

void Holdings::end() {
  std::vector<Held> handles;
  {
    std::lock_guard lock(mutex_);
    handles = handles_.take_all();
  }
  handles.clear();
  {
    std::lock_guard lock(mutex_);
    ended_ = true;
  }
  release_due();
}

std::uint64_t Holdings::add(Held held) {
  std::lock_guard lock(mutex_);
  return handles_.add(std::move(held));
}

namespace {

Error invalid_number(const char* what) {
  return make_error(ErrorKind::state, fmt::format("this {} is no longer valid", what),
                    fmt::format("it was dropped, or lent for one call only: hold what is used longer (rille_{}_hold)",
                                *what == 'h' ? "handle" : "script_function"));
}

}  // namespace

Result<Held> Holdings::find(rille_handle handle) {
  std::lock_guard lock(mutex_);
  if (const Held* held = handles_.find(handle)) return *held;
  return invalid_number("handle");
}

Result<> Holdings::hold(rille_handle handle) {
  std::lock_guard lock(mutex_);
  return handles_.hold(handle) ? Result<>() : invalid_number("handle");
}

std::optional<Held> Holdings::drop(rille_handle handle) {
  std::lock_guard lock(mutex_);
  return handles_.drop(handle);
}

void Holdings::keep_view(rille_handle handle, tensor::Tensor whole, std::shared_ptr<std::vector<std::byte>> bytes) {
  std::lock_guard lock(mutex_);
  if (Held* held = handles_.find(handle)) {
    held->whole = std::move(whole);
    held->copy = std::move(bytes);
  }
}

Result<ScriptFunction*> Holdings::function(rille_script_function number) {
  ScriptFunction* f = functions.find(number);
  if (!f) return invalid_number("function");
  if (!f->bridge)
    return make_error(ErrorKind::state, "this function's script has been freed, or its run has ended",
                      "drop the function with rille_script_function_drop");
  return f;
}

namespace {

// Any thread.
Result<> check_process(const rille_runtime* rt, const char* function) {
  if (!rt) return null_argument(function, "runtime");
  return rt->fork_mark.in_child() ? check_call(rt) : Result<>();
}

Result<> wrap_memory(rille_runtime* rt, const char* function, void* data, rille_handle* handle) {
  RILLE_CHECK(check_process(rt, function));
  if (!data || !handle) return null_argument(function, data ? "handle" : "data");
  return {};
}

Result<> fill_view(rille_runtime& rt, rille_handle handle, const Held& held, rille_view& view) {
  view.dtype = nullptr;
  view.rank = 0;
  kernels::Dims shape;
  if (held.tensor) {
    shape = held.tensor.shape();
    view.dtype = name_of(held.tensor.dtype());
    view.size = held.tensor.size_bytes();
    if (held.copy) {
      view.data = held.copy->data();
    } else {
      RILLE_TRY(tensor::Viewed seen, tensor::view_blocking(held.whole ? held.whole : held.tensor));
      view.data = seen.data;
      rt.holdings->keep_view(handle, std::move(seen.whole), std::move(seen.copy));
    }
  } else {
    view.data = held.memory->data;
    view.size = held.memory->size;
    shape = held.shape;
    if (held.dtype) view.dtype = name_of(*held.dtype);
  }
  if (view.dtype) view.rank = static_cast<size_t>(shape.n);
  for (int i = 0; i < shape.n && view.dtype; ++i) view.shape[i] = shape[i];
  return {};
}

}  // namespace
}  // namespace rille::capi

using namespace rille;
using namespace rille::capi;

rille_error* rille_buffer_wrap(rille_runtime* rt, void* data, size_t size, rille_release_function release,
                               void* payload, rille_handle* handle) {
  if (handle) *handle = 0;
  return guarded([&]() -> Result<> {
    RILLE_CHECK(wrap_memory(rt, "rille_buffer_wrap", data, handle));
    Held held;
    held.memory = rt->holdings->wrap(data, size, release, payload);
    *handle = rt->holdings->add(std::move(held));
    return {};
  });
}

rille_error* rille_tensor_wrap(rille_runtime* rt, void* data, const char* dtype, const int64_t* shape, size_t rank,
                               rille_release_function release, void* payload, rille_handle* handle) {
  if (handle) *handle = 0;
  return guarded([&]() -> Result<> {
    RILLE_CHECK(wrap_memory(rt, "rille_tensor_wrap", data, handle));
    if (!dtype || (!shape && rank)) return null_argument("rille_tensor_wrap", dtype ? "shape" : "dtype");
    if (rank > 8) return make_error(ErrorKind::invalid, fmt::format("rank = {}: expected at most 8", rank));
    Held held;
    RILLE_TRY(held.dtype, parse_dtype(dtype));
    RILLE_TRY(held.shape, tensor::make_dims(std::vector<std::int64_t>(shape, shape + rank)));
    RILLE_CHECK(tensor::check_dims(held.shape));
    const std::size_t element = size_bytes(*held.dtype);
    if (reinterpret_cast<std::uintptr_t>(data) % element)
      return make_error(ErrorKind::invalid, fmt::format("the memory of a tensor of {} does not begin at a multiple of "
                                                        "{} bytes",
                                                        dtype, element));
    held.memory = rt->holdings->wrap(data, static_cast<std::size_t>(held.shape.count()) * element, release, payload);
    *handle = rt->holdings->add(std::move(held));
    return {};
  });
}

rille_error* rille_handle_view(rille_runtime* rt, rille_handle handle, rille_view* view) {
  return guarded([&]() -> Result<> {
    RILLE_CHECK(check_call(rt));
    if (!view) return null_argument("rille_handle_view", "view");
    if (view->struct_size < offsetof(rille_view, shape))
      return make_error(ErrorKind::invalid, "rille_view.struct_size is not set",
                        "set it to sizeof(rille_view) before the call");
    rille_view seen{};
    seen.struct_size = view->struct_size;
    RILLE_TRY(const Held held, rt->holdings->find(handle));
    RILLE_CHECK(fill_view(*rt, handle, held, seen));
    std::memcpy(view, &seen, std::min(view->struct_size, sizeof seen));
    return {};
  });
}

rille_error* rille_handle_hold(rille_runtime* rt, rille_handle handle) {
  return guarded([&]() -> Result<> {
    RILLE_CHECK(check_process(rt, "rille_handle_hold"));
    return rt->holdings->hold(handle);
  });
}

void rille_handle_drop(rille_runtime* rt, rille_handle handle) {
  if (!rt || rt->fork_mark.in_child()) return;
  try {
    std::optional<Held> last = rt->holdings->drop(handle);
    if (!last || !last->tensor || rt->owner.load() == std::this_thread::get_id()) return;
    // only the runtime's thread may destroy a tensor of a script
    rt->loop->post_from_thread([held = std::make_shared<Held>(std::move(*last))] {});
  } catch (const std::exception&) {}
}

rille_error* rille_script_function_hold(rille_runtime* rt, rille_script_function function) {
  return guarded([&]() -> Result<> {
    RILLE_CHECK(check_call(rt));
    RILLE_CHECK(rt->holdings->function(function));
    rt->holdings->functions.hold(function);
    return {};
  });
}

void rille_script_function_drop(rille_runtime* rt, rille_script_function function) {
  if (!rt || left_to_owner(rt, [rt, function] { rille_script_function_drop(rt, function); })) return;
  std::optional<ScriptFunction> last = rt->holdings->functions.drop(function);
  if (last && last->bridge) luaL_unref(last->bridge->host().lua(), LUA_REGISTRYINDEX, last->ref);
}
