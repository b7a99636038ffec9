// Reads values: item, totable, and the text that print shows. The calling fiber is suspended until the graph's worker
// thread has computed the values; other fibers continue.
#include <cmath>
#include <mutex>

#include "bindings/lua/compute/tensor.hpp"
#include "runtime/compute/device/owner.hpp"
#include "runtime/compute/tensor/owner.hpp"

namespace rille::lua {

namespace {

// A pending read of several tensors. The graphs' worker threads store the values; `done` is completed once.
struct Reading {
  std::vector<Tensor> tensors;  // used on the loop thread only
  std::vector<HostData> values;
  std::int64_t bytes = 0;
  MemoryHeld held;  // counts these bytes of values until they are pushed
  std::optional<Error> error;
  // Tensors still pending. The mutex guards left, values and error, because each device's worker thread writes them.
  std::size_t left = 0;
  std::mutex mutex;
  Graph::Modes modes;
  bool again = false;
  std::weak_ptr<lua_State*> main;
  TensorState* state = nullptr;  // valid while `main` has not expired
  Loop* loop = nullptr;
  Completion done;
  PushValues push;
  std::shared_ptr<Graph> target;  // if set, the only tensor is copied to this device's graph instead of read
  Tensor made;                    // result of the copy to `target`
};

// Adds a hint to an error that an earlier operation caused: it surfaces only when a value is read.
Error late(Error e, const Graph& graph) {
  if ((e.kind == ErrorKind::invalid || e.kind == ErrorKind::memory) && !graph.checks_numbers())
    e.hint += std::string(e.hint.empty() ? "" : ". ") +
              "It was found when a value was read: dev:check_numbers(fn) names the line that asked for it";
  return e;
}

void finish_reading(const std::shared_ptr<Reading>& r) {  // runs on the loop thread
  r->state->set_modes(r->modes);
  if (r->error) return r->done.fail(late(*r->error, *r->state->graph));
  Completion::Push push = [r](lua_State* L) { return r->push(L, std::move(r->values)); };
  r->done.finish(push);
}

void start_reading(const std::shared_ptr<Reading>& r);

// Stores the values of tensor `i`; runs on the worker thread of the tensor's graph.
void arrived(const std::shared_ptr<Reading>& r, std::size_t i, Result<HostData> data) {
  {
    const std::lock_guard lock(r->mutex);
    if (data) r->values[i] = std::move(*data);
    else if (!r->error) r->error = std::move(data).error();
    if (--r->left) return;
  }
  r->loop->post_from_thread([r] {
    auto main = r->main.lock();
    if (!main) return;
    if (r->error && r->error->kind == ErrorKind::memory && !r->again) {
      r->again = true;
      lua_gc(*main, LUA_GCCOLLECT, 0);
      return start_reading(r);
    }
    // Lua cannot collect while it allocates: a large table is given room before it is made.
    const auto& memory = LuaHost::of(*main).options().memory;
    if (memory && memory->room_bytes() < 4 * r->bytes) lua_gc(*main, LUA_GCCOLLECT, 0);
    r->tensors.clear();
    finish_reading(r);
  });
}

void start_reading(const std::shared_ptr<Reading>& r) {  // runs on the loop thread
  r->left = r->tensors.size();
  r->values.assign(r->tensors.size(), {});
  r->error.reset();
  if (r->target) {
    auto made = r->tensors[0].graph().send(
        r->tensors[0], *r->target,
        [r](Result<void> sent) {
          arrived(r, 0, sent ? Result<HostData>(HostData{}) : Result<HostData>(std::move(sent).error()));
        },
        r->again);
    if (made) r->made = std::move(*made);
    else arrived(r, 0, std::move(made).error());
    return;
  }
  r->bytes = 0;
  for (const Tensor& t : r->tensors) r->bytes += static_cast<std::int64_t>(t.size_bytes());
  auto held = MemoryHeld::take(LuaHost::of(*r->main.lock()).options().memory, MemoryUse::Part::tensors, r->bytes);
  if (!held) {
    r->left = 1;
    return arrived(r, 0, std::move(held).error());
  }
  r->held = std::move(*held);
  for (std::size_t i = 0; i < r->tensors.size(); ++i) {
    r->tensors[i].graph().read(
        r->tensors[i], [r, i](Result<HostData> data) { arrived(r, i, std::move(data)); }, r->again);
  }
}

void push_element(lua_State* L, const HostData& data, std::int64_t i) {
  if (data.dtype == DType::boolean) push(L, data.number(i) != 0);
  else push(L, data.number(i));
}

void push_nested(lua_State* L, const HostData& data, int dim, std::int64_t& at) {
  if (dim == data.shape.n) return push_element(L, data, at++);
  luaL_checkstack(L, 4, "a tensor's table");
  lua_createtable(L, static_cast<int>(std::min<std::int64_t>(data.shape[dim], 1 << 26)), 0);
  for (std::int64_t i = 0; i < data.shape[dim]; ++i) {
    push_nested(L, data, dim + 1, at);
    lua_rawseti(L, -2, static_cast<int>(i + 1));
  }
}

std::string number_text(const HostData& data, std::int64_t i) {
  if (data.dtype == DType::boolean) return data.number(i) != 0 ? "true" : "false";
  if (!is_floating(data.dtype)) return std::to_string(data.integer(i));
  const double number = data.number(i);
  return std::isnan(number) ? "nan" : fmt::format("{:.4g}", number);  // printf formats may give "-nan"
}

constexpr std::int64_t shown_at_ends = 3;

void nested_text(const HostData& data, int dim, std::int64_t at, std::size_t width, std::string& out) {
  if (dim == data.shape.n) {
    std::string text = number_text(data, at);
    out += std::string(width > text.size() ? width - text.size() : 0, ' ') + text;
    return;
  }
  std::int64_t n = data.shape[dim], stride = 1;
  for (int d = dim + 1; d < data.shape.n; ++d) stride *= data.shape[d];
  out += '[';
  bool last = dim == data.shape.n - 1;
  for (std::int64_t i = 0; i < n; ++i) {
    if (i > 0) out += last ? ", " : ",\n" + std::string(static_cast<std::size_t>(dim) + 1, ' ');
    if (n > 2 * shown_at_ends + 2 && i == shown_at_ends) {
      out += last ? "..., " : "...,\n" + std::string(static_cast<std::size_t>(dim) + 1, ' ');
      i = n - shown_at_ends;
    }
    nested_text(data, dim + 1, at + i * stride, width, out);
  }
  out += ']';
}

std::string value_text(const HostData& data, const std::string& head) {
  std::size_t width = 0;
  for (std::int64_t i = 0; i < std::min<std::int64_t>(data.shape.count(), 1000) && data.shape.n > 1; ++i)
    width = std::max(width, number_text(data, i).size());
  std::string out;
  nested_text(data, 0, 0, width, out);
  return out + (out.find('\n') != std::string::npos ? "\n" : "  ") + head;
}

int item(lua_State* L) {
  Tensor& t = check_self(L, "item", 1);
  if (t.count() != 1)
    raise(L, at_line(L, make_error(
                            ErrorKind::invalid,
                            fmt::format("item: {} has {} elements, not one", tensor::to_string(t.shape()), t.count()),
                            "t:totable() gives all values")));
  return await_values(L, {t}, [](lua_State* l, std::vector<HostData> v) {
    push_element(l, v[0], 0);
    return 1;
  });
}

int totable(lua_State* L) {
  return await_values(L, {check_self(L, "totable", 1)}, [](lua_State* l, std::vector<HostData> v) {
    std::int64_t at = 0;
    push_nested(l, v[0], 0, at);
    return 1;
  });
}

int tensor_bytes(lua_State* L) {
  return await_values(L, {check_self(L, "bytes", 1).detach()}, [](lua_State* l, std::vector<HostData> v) {
    push(l, std::string_view(reinterpret_cast<const char*>(v[0].bytes.data()), v[0].bytes.size()));
    return 1;
  });
}

int text(lua_State* L) {
  if (Tensor* t = test_tensor(L, 1); t && !*t) {
    push(L, true);  // first result true: the method did not suspend, and the Lua wrapper returns the second result
    push(L, "Tensor (freed)");
    return 2;
  }
  Tensor& t = check_tensor(L, 1, "print");
  std::string head = fmt::format("{}{} {}", name_of(t.dtype()), tensor::to_string(t.shape()), t.device()->name());
  return await_values(L, {t}, [head](lua_State* l, std::vector<HostData> v) {
    push(l, value_text(v[0], head));
    return 1;
  });
}

// Returns the result of a method that may suspend but did not need to.
int at_once(lua_State* L, Result<Tensor> t) {
  Tensor made = value_or_raise(L, t ? std::move(t) : Result<Tensor>(at_line(L, std::move(t).error())));
  push(L, true);
  return 1 + push_tensor(L, std::move(made));
}

int await_reading(lua_State* L, const std::shared_ptr<Reading>& r);

// t:to("bf16"), t:to(device), t:to("cuda:0"). Copies between two GPUs directly if they support it, else through host
// memory.
int to(lua_State* L) {
  const Tensor t = check_self(L, "to", 2);
  std::string name;
  if (lua_type(L, 2) == LUA_TSTRING) {
    name = lua_tostring(L, 2);
    const bool device = name == "cpu" || name.starts_with("cuda");
    if (!device) {
      auto dtype = parse_dtype(name);
      if (!dtype) {
        Error e = std::move(dtype).error();
        e.message = fmt::format("to: '{}' is neither a device nor an element type", name);
        e.hint = "devices: \"cpu\", \"cuda:0\"; types: " + e.hint;
        raise(L, at_line(L, std::move(e)));
      }
      return at_once(L, tensor::cast(t, *dtype));
    }
  } else {
    name = device_graph(L, 2, "to").device()->name();
  }
  const auto target = value_or_raise(L, graph_on(L, name));
  if (target.get() == &t.graph()) return at_once(L, t);
  if (!t.is_leaf()) {
    raise(L, at_line(L, make_error(
                            ErrorKind::state,
                            fmt::format("to: a tensor that is part of a gradient computation cannot move from {} to {}",
                                        t.device()->name(), name),
                            "move t:detach()")));
  }
  if (t.device()->sends_to(*target->device())) {
    auto r = std::make_shared<Reading>();
    r->tensors = {t.detach()};
    r->target = target;
    r->push = [made = &r->made, grad = t.requires_grad()](lua_State* l, std::vector<HostData>) {
      if (grad) value_or_raise(l, made->set_requires_grad(true));
      return push_tensor(l, std::move(*made));
    };
    return await_reading(L, r);
  }
  const char* const owner = tensor::owner_of_copy(t);
  return await_values(
      L, {t.detach()}, [target, owner, grad = t.requires_grad()](lua_State* l, std::vector<HostData> v) {
        auto made = [&] {
          const device::OwnedBy by(owner);
          return tensor::from_bytes(*target, v[0].shape, v[0].dtype, v[0].bytes.data(), v[0].bytes.size());
        }();
        if (made && grad) value_or_raise(l, made->set_requires_grad(true));
        return push_tensor(l, value_or_raise(l, std::move(made)));
      });
}

int await_reading(lua_State* L, const std::shared_ptr<Reading>& r) {
  TensorState& state = tensor_state(L);
  if (state.tracing())
    raise(L,
          at_line(L, make_error(
                         ErrorKind::state, "a value is read inside a compiled function",
                         "no values exist while its operations are recorded: return the tensor and read it outside")));
  r->done = begin_await(L);
  r->main = state.main;
  r->state = &state;
  r->loop = &LuaHost::of(L).loop();
  r->modes = state.modes();
  if (r->tensors.empty()) finish_reading(r);
  else start_reading(r);
  state.set_modes({});  // other fibers run while this one is suspended, and they need the default modes
  return end_await(L);
}

}  // namespace

int await_values(lua_State* L, std::vector<Tensor> tensors, PushValues push) {
  auto r = std::make_shared<Reading>();
  r->tensors = std::move(tensors);
  r->push = std::move(push);
  return await_reading(L, r);
}

std::vector<Function> read_methods() {
  return {{"item", bind<item>},
          {"totable", bind<totable>},
          {"bytes", bind<tensor_bytes>},
          {"text", bind<text>},
          {"to", bind<to>}};
}

void add_read_natives(lua_State* L) { set_async(L, "text", bind<text>); }

}  // namespace rille::lua
