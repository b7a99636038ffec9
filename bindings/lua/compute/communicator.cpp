// rille.communicator{ rank =, world =, address = } and the Communicator object; tensor/collective.hpp does the work.
#include "bindings/lua/compute/communicator.hpp"

#include "bindings/host/keys.hpp"
#include "runtime/compute/device/cuda.hpp"
#include "runtime/core/loop/thread_job.hpp"

namespace rille::lua {

// Rank 0 listens there, the others connect.
Result<> may_connect(lua_State* L, const std::string& address) {
  const Grants& grants = LuaHost::of(L).grants();
  if (grants.is_everything()) return {};
  RILLE_TRY(const collective::Address at, collective::parse_address(address));
  return grants.connect("rille.communicator", at.host, std::to_string(at.port));
}

namespace {

using tensor::Ranks;

// When a script ends, closing its communicator waits at most this long for other ranks.
constexpr std::int64_t patience_at_end_ms = 5000;

CommunicatorHandle& check_communicator(lua_State* L, const char* what) {
  tensor_state(L);
  auto& h = check_object<CommunicatorHandle>(L, 1, what);
  if (!h.ranks)
    raise(L, at_line(L, make_error(ErrorKind::state, fmt::format("{}: the communicator is closed", what),
                                   "make another with rille.communicator, at all ranks")));
  return h;
}

// Stops the wait for other ranks when the waiting fiber is destroyed.
struct CallOff {
  std::shared_ptr<collective::Stop> stop;
  ~CallOff() {
    if (stop)
      stop->now(make_error(ErrorKind::cancelled, "the script ended while a communicator was made",
                           "let the script wait until rille.communicator has returned"));
  }
};

Async<Ranks> meet(Loop& loop, collective::Options options, std::shared_ptr<device::CudaDevice> cuda) {
  auto stop = std::make_shared<collective::Stop>();
  CallOff at_end;
  at_end.stop = stop;
  std::function<Result<Ranks>()> job = [options, cuda, stop] {
    return cuda ? collective::Communicator::create_on(cuda, options, stop)
                : collective::Communicator::create(options, stop);
  };
  auto made = co_await thread_job(loop, std::move(job));
  at_end.stop.reset();
  co_return made;
}

int whole_option(lua_State* L, const char* key) {
  lua_getfield(L, 1, key);
  if (lua_isnil(L, -1)) {
    raise_invalid(L, fmt::format("rille.communicator: {} is missing ({})", key, script_position(L)),
                  "rille.communicator { rank = 0, world = 2, address = \"127.0.0.1:29500\" }");
  }
  const auto n = check_integer(L, -1, key);
  lua_pop(L, 1);
  return int(std::clamp<std::int64_t>(n, -1, 1 << 20));
}

std::shared_ptr<Graph> option_graph(lua_State* L) {
  lua_getfield(L, 1, "device");
  std::shared_ptr<Graph> found;
  if (lua_isnil(L, -1)) found = default_graph(L);
  else if (lua_type(L, -1) == LUA_TSTRING) found = value_or_raise(L, graph_on(L, lua_tostring(L, -1)));
  else found = device_graph(L, -1, "rille.communicator's device").shared_from_this();
  lua_pop(L, 1);
  return found;
}

int communicator(lua_State* L) {
  check_table(L, 1, "rille.communicator");
  check_options(L, 1, "rille.communicator", {"rank", "world", "address", "token", "device", "timeout", "transport"});
  collective::Options o;
  o.rank = whole_option(L, "rank");
  o.world = whole_option(L, "world");
  o.address = option_text(L, 1, "address").value_or("");
  o.token = option_text(L, 1, "token").value_or("");
  o.timeout_ms = option_duration_ms(L, 1, "timeout").value_or(o.timeout_ms);
  const std::string transport = option_text(L, 1, "transport").value_or("any");
  if (transport != "any" && transport != "tcp")
    raise_invalid(L, fmt::format("rille.communicator: transport = '{}'", transport), "use \"any\" or \"tcp\"");
  o.shared_memory = transport == "any";
  if (o.address.empty() && o.world > 1) {
    raise_invalid(L, fmt::format("rille.communicator: address is missing ({})", script_position(L)),
                  "give all ranks the address where rank 0 listens: address = \"10.0.0.1:29500\"");
  }
  return await_communicator(L, std::move(o), option_graph(L));
}

}  // namespace

int await_communicator(lua_State* L, collective::Options o, const std::shared_ptr<Graph>& g) {
  if (o.world > 1) value_or_raise(L, may_connect(L, o.address));
  auto cuda = std::dynamic_pointer_cast<device::CudaDevice>(g->device());
  return await(L, meet(LuaHost::of(L).loop(), o, std::move(cuda)), [g, o](lua_State* l, Ranks ranks) {
    std::weak_ptr<collective::Communicator> weak = ranks;
    tensor_state(l).at_close.push_back([weak] {
      if (const auto r = weak.lock()) r->hurry(patience_at_end_ms);
    });
    std::string text =
        fmt::format("rank {} of {}, {}, {}", ranks->rank(), ranks->world(), ranks->place(), ranks->transport());
    CommunicatorHandle made{std::move(ranks), g, std::move(text), o};
    made.options.listener = nullptr;
    push_object(l, std::move(made));
    return 1;
  });
}

std::vector<Tensor> check_tensors(lua_State* L, int index, const char* verb, const char* method) {
  if (test_tensor(L, index)) return {check_tensor(L, index, verb)};
  std::vector<Tensor> out;
  if (optimizer_parameters(L, index, out)) return out;
  if (!lua_istable(L, index)) {
    raise_invalid(L, fmt::format("{}: expected a tensor, got {} ({})", verb, describe(L, index), script_position(L)),
                  "a tensor, a list of tensors, or a module");
  }
  lua_getfield(L, index, method);
  if (lua_isfunction(L, -1)) {
    lua_pushvalue(L, index);
    lua_call(L, 1, 1);
  } else {
    lua_pop(L, 1);
    lua_pushvalue(L, index);
  }
  const int list = lua_gettop(L);
  for (std::size_t i = 1, n = lua_objlen(L, list); i <= n; ++i) {
    lua_rawgeti(L, list, static_cast<int>(i));
    if (lua_istable(L, -1)) lua_getfield(L, -1, "tensor");
    out.push_back(check_tensor(L, -1, verb));
    lua_settop(L, list);
  }
  lua_pop(L, 1);
  return out;
}

namespace {

collective::Reduce check_reduce(lua_State* L, int index) {
  if (lua_isnoneornil(L, index)) return collective::Reduce::sum;
  return value_or_raise(L, collective::parse_reduce(check_text(L, index, "a reduction")));
}

int check_rank(lua_State* L, int index, const char* what) {
  return int(std::clamp<std::int64_t>(check_integer(L, index, what), -1, 1 << 20));
}

// Leaves the tensor argument (index 2) as the result if the operation was started; else returns the error.
Result<int> given_back(lua_State* L, Result<void> done) {
  if (!done) return at_line(L, std::move(done).error());
  lua_pushvalue(L, 2);
  return 1;
}

Result<int> all_reduce(lua_State* L) {
  auto& h = check_communicator(L, "comm:all_reduce");
  return given_back(L,
                    tensor::all_reduce_(h.ranks, check_tensors(L, 2, "comm:all_reduce", "state"), check_reduce(L, 3)));
}

Result<int> broadcast(lua_State* L) {
  auto& h = check_communicator(L, "comm:broadcast");
  const int from = lua_isnoneornil(L, 3) ? 0 : check_rank(L, 3, "comm:broadcast's rank");
  return given_back(L, tensor::broadcast_(h.ranks, check_tensors(L, 2, "comm:broadcast", "state"), from));
}

Result<int> all_gather(lua_State* L) {
  auto& h = check_communicator(L, "comm:all_gather");
  return give(L, tensor::all_gather(h.ranks, check_tensor(L, 2, "comm:all_gather")));
}

Result<int> reduce_scatter(lua_State* L) {
  auto& h = check_communicator(L, "comm:reduce_scatter");
  return give(L, tensor::reduce_scatter(h.ranks, check_tensor(L, 2, "comm:reduce_scatter"), check_reduce(L, 3)));
}

Result<int> send(lua_State* L) {
  auto& h = check_communicator(L, "comm:send");
  const int to = check_rank(L, 3, "comm:send's rank");
  return given_back(L, tensor::send_to(h.ranks, check_tensor(L, 2, "comm:send"), to));
}

Result<int> receive(lua_State* L) {
  auto& h = check_communicator(L, "comm:recv");
  const int from = check_rank(L, 3, "comm:recv's rank");
  return given_back(L, tensor::receive_(h.ranks, check_tensor(L, 2, "comm:recv"), from));
}

Result<int> send_receive(lua_State* L) {
  auto& h = check_communicator(L, "comm:sendrecv");
  const int to = check_rank(L, 3, "comm:sendrecv's rank to send to");
  const int from = check_rank(L, 5, "comm:sendrecv's rank to receive from");
  const Tensor& sent = check_tensor(L, 2, "comm:sendrecv");
  auto done = tensor::sendrecv_(h.ranks, sent, to, check_tensor(L, 4, "comm:sendrecv"), from);
  if (!done) return at_line(L, std::move(done).error());
  lua_pushvalue(L, 4);
  return 1;
}

Result<int> average_gradients(lua_State* L) {
  auto& h = check_communicator(L, "comm:average_gradients");
  auto done = tensor::average_gradients(h.ranks, check_tensors(L, 2, "comm:average_gradients", "parameters"));
  if (!done) return at_line(L, std::move(done).error());
  return 0;
}

// Suspends the fiber until the graph's worker thread has executed all operations recorded so far.
int await_lane(lua_State* L, CommunicatorHandle& h, std::function<void()> then) {
  Completion done = begin_await(L);
  h.graph->synchronize([done, then = std::move(then)](Result<void> r) {
    if (then) then();
    if (r) done.post_finish([](lua_State*) { return 0; });
    else done.post_fail(std::move(r).error());
  });
  return end_await(L);
}

void refuse_tracing(lua_State* L, const CommunicatorHandle& h, const char* verb) {
  if (!h.graph->tracing()) return;
  raise(L, at_line(L, make_error(ErrorKind::state, fmt::format("{} inside a compiled function", verb),
                                 "call it outside: a compiled function must not wait")));
}

int barrier(lua_State* L) {
  auto& h = check_communicator(L, "comm:barrier");
  refuse_tracing(L, h, "comm:barrier");
  if (auto done = tensor::barrier(h.ranks, *h.graph); !done) raise(L, at_line(L, std::move(done).error()));
  return await_lane(L, h, {});
}

int close(lua_State* L) {
  auto& h = check_communicator(L, "comm:close");
  refuse_tracing(L, h, "comm:close");
  const Ranks ranks = std::exchange(h.ranks, nullptr);
  return await_lane(L, h, [ranks] { ranks->leave(); });
}

bool communicator_field(lua_State* L, std::string_view key) {
  auto& h = check_object<CommunicatorHandle>(L, 1, "communicator");
  if (key == "split") {  // comm:split is implemented in Lua: stdlib/device/split.lua
    get_registry(L, &key_rille);
    lua_getfield(L, -1, "device.split");
    lua_getfield(L, -1, "split");
    return true;
  }
  if (key != "rank" && key != "world" && key != "transport" && key != "device") return false;
  if (!h.ranks) lua_pushnil(L);
  else if (key == "rank") push(L, h.ranks->rank());
  else if (key == "world") push(L, h.ranks->world());
  else if (key == "transport") push(L, h.ranks->transport());
  else push(L, h.ranks->place());
  return true;
}

int communicator_to_string(lua_State* L) {
  const auto& h = check_object<CommunicatorHandle>(L, 1, "communicator");
  push(L, fmt::format("Communicator {}{}", h.text, h.ranks ? "" : " (closed)"));
  return 1;
}

}  // namespace

void define_communicator(lua_State* L) {
  define_class<CommunicatorHandle>(L, {.name = "Communicator",
                                       .methods = {{"all_reduce", bind<all_reduce>},
                                                   {"broadcast", bind<broadcast>},
                                                   {"all_gather", bind<all_gather>},
                                                   {"reduce_scatter", bind<reduce_scatter>},
                                                   {"send", bind<send>},
                                                   {"recv", bind<receive>},
                                                   {"sendrecv", bind<send_receive>},
                                                   {"average_gradients", bind<average_gradients>}},
                                       .async_methods = {{"barrier", bind<barrier>}, {"close", bind<close>}},
                                       .metamethods = {{"__tostring", bind<communicator_to_string>}},
                                       .field = communicator_field,
                                       .fields = {"rank", "world", "transport", "device", "split"}});
  lua_newtable(L);
  set_async(L, "communicator", bind<communicator>);
  add_words(L, 1);
}

}  // namespace rille::lua
