// C functions behind rille.train { communicator = }: they average gradients over the ranks, exchange plain data as
// text, and report this rank's error to the other ranks.
#include <algorithm>

#include "bindings/host/errors.hpp"
#include "bindings/lua/compute/communicator.hpp"

namespace rille::lua {

namespace {

struct Listener {
  std::shared_ptr<collective::Fd> fd;
};

char averaging_key;  // the address of this variable is the key in the Lua registry

// averaging_of(comm, { models and optimizers }): a parameter that several models share is averaged once
int averaging_of(lua_State* L) {
  auto& h = check_object<CommunicatorHandle>(L, 1, "rille.train's communicator");
  tensor_state(L);
  if (!h.ranks) {
    raise(L, at_line(L, make_error(ErrorKind::state, "rille.train's communicator is closed",
                                   "close the communicator only after rille.train has returned")));
  }
  Averaging made{h.ranks, {}};
  for (std::size_t i = 1, n = lua_objlen(L, 2); i <= n; ++i) {
    lua_rawgeti(L, 2, static_cast<int>(i));
    for (auto& p : check_tensors(L, lua_gettop(L), "rille.train", "parameters")) {
      const auto same = [&p](const Tensor& other) { return other.is(p); };
      if (std::none_of(made.parameters.begin(), made.parameters.end(), same)) made.parameters.push_back(std::move(p));
    }
    lua_pop(L, 1);
  }
  const auto count = made.parameters.size();
  push_object(L, std::move(made));
  push(L, static_cast<double>(count));
  return 2;
}

// averaging(result of averaging_of | nil): switches gradient averaging on, or off for nil
int set_averaging(lua_State* L) {
  lua_settop(L, 1);
  if (!lua_isnil(L, 1)) check_object<Averaging>(L, 1, "averaging");
  lua_pushlightuserdata(L, &averaging_key);
  lua_insert(L, 1);
  lua_rawset(L, LUA_REGISTRYINDEX);
  return 0;
}

// ranks_fail(comm, error): ends every rank's pending collective with `error`; the communicator is unusable afterwards
int ranks_fail(lua_State* L) {
  auto& h = check_object<CommunicatorHandle>(L, 1, "communicator");
  if (!h.ranks || h.ranks->world() == 1 || h.graph->tracing()) return 0;
  Error why = to_error(L, 2);
  why.message = fmt::format("rank {} failed: {}", h.ranks->rank(), why.message);
  why.resource.clear();  // a non-empty resource would mark the error as one received from another rank
  why.traceback.clear();
  h.ranks->stop(std::move(why));
  tensor::barrier(h.ranks, *h.graph).ok();  // the barrier notices the stop and passes `why` to the other ranks
  return 0;
}

// ranks_listen(comm) -> listener, address: the first rank of a group accepts the group's other ranks at this address
Result<int> ranks_listen(lua_State* L) {
  auto& h = check_object<CommunicatorHandle>(L, 1, "communicator");
  collective::Address at{h.ranks ? h.ranks->host() : std::string(), 0};
  if (at.host.empty() && h.options.world > 1) {
    RILLE_TRY(at, collective::parse_address(h.options.address));
    at.port = 0;
  }
  if (at.host.empty()) at.host = "127.0.0.1";
  RILLE_CHECK(LuaHost::of(L).grants().connect("comm:split", at.host, ""));
  RILLE_TRY(auto fd, collective::listen_at(at));
  at.port = collective::local_address(fd.get()).port;
  push_object(L, Listener{std::make_shared<collective::Fd>(std::move(fd))});
  push(L, collective::to_string(at));
  return 2;
}

// ranks_group(comm, rank, world, address, listener | nil) -> a new communicator between some of the ranks of `comm`
int ranks_group(lua_State* L) {
  auto& h = check_object<CommunicatorHandle>(L, 1, "communicator");
  collective::Options o = h.options;
  o.rank = static_cast<int>(check_integer(L, 2, "rank"));
  o.world = static_cast<int>(check_integer(L, 3, "world"));
  o.address = check_text(L, 4, "address");
  if (const auto* listener = test_object<Listener>(L, 5)) o.listener = listener->fd;
  return await_communicator(L, std::move(o), h.graph);
}

Result<int> plain_text(lua_State* L) {
  RILLE_TRY(const Value value, to_value(L, 1, "what ranks tell each other"));
  push(L, value.to_json());
  return 1;
}

Result<int> plain_value(lua_State* L) {
  RILLE_TRY(const Value value, Value::from_json(check_text(L, 1, "text")));
  push_value(L, value);
  return 1;
}

}  // namespace

const Averaging* averaging(lua_State* L) {
  lua_pushlightuserdata(L, &averaging_key);
  lua_rawget(L, LUA_REGISTRYINDEX);
  const auto* found = test_object<Averaging>(L, -1);
  lua_pop(L, 1);  // the Lua registry keeps the object alive after the pop
  return found;
}

void add_rank_natives(lua_State* L) {
  define_class<Averaging>(L, {.name = "Averaging"});
  define_class<Listener>(L, {.name = "Listener"});
  set_functions(L, {{"averaging_of", bind<averaging_of>},
                    {"averaging", bind<set_averaging>},
                    {"ranks_fail", bind<ranks_fail>},
                    {"ranks_listen", bind<ranks_listen>},
                    {"plain_text", bind<plain_text>},
                    {"plain_value", bind<plain_value>}});
  set_async(L, "ranks_group", bind<ranks_group>);
}

}  // namespace rille::lua
