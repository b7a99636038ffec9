#include "bindings/lua/compute/state.hpp"

#include <algorithm>
#include <set>

#include "bindings/lua/compute/snapshot.hpp"
#include "bindings/lua/compute/tensor_files.hpp"
#include "runtime/core/base/did_you_mean.hpp"

namespace rille::lua {

namespace {

// Replaces a list of { name =, tensor = } in place by a table from name to tensor.
void make_by_name(lua_State* L, int index) {
  const std::size_t n = lua_objlen(L, index);
  if (n == 0) return;
  lua_newtable(L);
  for (std::size_t i = 1; i <= n; ++i) {
    lua_rawgeti(L, index, static_cast<int>(i));
    if (lua_istable(L, -1)) {
      lua_getfield(L, -1, "name");
      lua_getfield(L, -2, "tensor");
      if (!lua_isnil(L, -2)) lua_rawset(L, -4);
      else lua_pop(L, 2);
    }
    lua_pop(L, 1);
  }
  lua_replace(L, index);
}

// A state to load from: its tensors' names, dtypes and shapes, known without reading the data.
struct Source {
  lua_State* L;
  int index;
  TensorFiles* files;  // null: the tensors are in a Lua table

  std::set<std::string> names() const {
    std::set<std::string> out;
    if (files) {
      for (const auto& [name, place] : files->places) out.insert(name);
      return out;
    }
    for (lua_pushnil(L); lua_next(L, index); lua_pop(L, 1))
      if (lua_type(L, -2) == LUA_TSTRING) out.insert(lua_tostring(L, -2));
    return out;
  }

  Result<std::pair<DType, Dims>> look(const std::string& name, const char* verb) const {
    if (files) {
      const data::StateTensor& place = files->places.at(name);
      RILLE_TRY(const DType dtype, type_of_format(place.dtype, name));
      RILLE_TRY(const Dims dims, tensor::make_dims(place.shape));
      return std::pair{dtype, dims};
    }
    const Tensor t = take(name);
    if (!t) return make_error(ErrorKind::invalid, fmt::format("{}: '{}' is not a tensor", verb, name));
    return std::pair{t.dtype(), t.shape()};
  }

  Tensor take(const std::string& name) const {  // the state is a Lua table
    lua_getfield(L, index, name.c_str());
    const Tensor* t = test_tensor(L, -1);
    Tensor out = t ? *t : Tensor{};
    lua_pop(L, 1);
    return out;
  }

  Result<Tensor> on(Graph& g, const std::string& name) const {
    if (files) return read_tensor(L, *files, name, g);
    Tensor t = take(name).detach();
    if (&t.graph() == &g) return t;
    RILLE_TRY(const HostData data, read_here(L, t));
    return tensor::from_bytes(g, data.shape, data.dtype, data.bytes.data(), data.bytes.size());
  }
};

std::string and_more(std::size_t n) { return n > 1 ? fmt::format(", and {} more", n - 1) : ""; }

Error missing_error(const StateOwner& owner, const std::vector<std::string>& missing,
                    const std::vector<std::string>& left) {
  const std::string near = did_you_mean(missing[0], left);
  return make_error(
      ErrorKind::state,
      fmt::format("{}: there is no {}'{}'{}", owner.verb, owner.what, missing[0], and_more(missing.size())),
      near.empty()
          ? owner.hint
          : fmt::format("the state has '{}', which {} does not have: perhaps it was renamed", near, owner.whose));
}

Error left_error(const StateOwner& owner, const std::vector<std::string>& left, const std::set<std::string>& known) {
  const std::string near = did_you_mean(left[0], {known.begin(), known.end()});
  return make_error(ErrorKind::state,
                    fmt::format("{}: the state has '{}'{}, which {} does not have", owner.verb, left[0],
                                and_more(left.size()), owner.whose),
                    (near.empty() ? "" : fmt::format("did you mean '{}'? ", near)) +
                        "{ strict = false } loads only the tensors that both have");
}

Result<void> compare(const StateOwner& owner, const StatePlace& place, DType dtype, const Dims& dims) {
  if (dims != place.tensor.shape())
    return make_error(ErrorKind::state,
                      fmt::format("{}: '{}' is {} in the state and {} in {}", owner.verb, place.name,
                                  tensor::to_string(dims), tensor::to_string(place.tensor.shape()), owner.whose),
                      owner.hint);
  if (is_floating(dtype) != is_floating(place.tensor.dtype()))
    return make_error(ErrorKind::state,
                      fmt::format("{}: '{}' is {} in the state and {} in {}", owner.verb, place.name, name_of(dtype),
                                  name_of(place.tensor.dtype()), owner.whose),
                      "only floating types are converted into each other: convert the tensor first with x:to(..)");
  return success();
}

void push_names(lua_State* L, const char* key, const std::vector<std::string>& names) {
  lua_newtable(L);
  for (std::size_t i = 0; i < names.size(); ++i) {
    push(L, names[i]);
    lua_rawseti(L, -2, static_cast<int>(i + 1));
  }
  lua_setfield(L, -2, key);
}

Result<void> take_all(lua_State* L, const StateOwner& owner, std::vector<StatePlace>& places, int index, bool strict,
                      std::vector<std::string>& missing, std::vector<std::string>& left) {
  const Source source{L, index, tensor_files(L, index)};
  const auto there = source.names();
  std::set<std::string> known;
  for (auto& place : places) {
    known.insert(place.name);
    if (there.contains(place.name)) continue;
    if (!place.otherwise.empty() && there.contains(place.otherwise)) place.name = place.otherwise;
    else missing.push_back(place.name);
  }
  std::set_difference(there.begin(), there.end(), known.begin(), known.end(), std::back_inserter(left));
  if (strict && !missing.empty()) return missing_error(owner, missing, left);
  if (strict && !left.empty()) return left_error(owner, left, known);
  std::erase_if(places, [&](const StatePlace& place) { return !there.contains(place.name); });
  for (const auto& place : places) {
    RILLE_TRY(const auto found, source.look(place.name, owner.verb));
    RILLE_CHECK(compare(owner, place, found.first, found.second));
  }
  for (auto& place : places) {
    Graph& g = place.tensor.graph();
    const tensor::NoGrad off(g);
    RILLE_TRY(const Tensor value, source.on(g, place.name));
    Tensor target = place.tensor.detach();
    RILLE_CHECK(tensor::copy_(target, value));
  }
  return success();
}

// load_state("model" or "ema", list of { name =, tensor = }, state, options) -> { missing, unexpected }
Result<int> native_load_state(lua_State* L) {
  tensor_state(L);
  const bool model = check_text(L, 1, "load_state") == "model";
  const StateOwner owner = model
                               ? StateOwner{"model:load_state", "the model", "parameter ",
                                            "the state belongs to another model: check layers, width and names"}
                               : StateOwner{"ema:load_state", "the average", "", "the state belongs to another model"};
  std::vector<StatePlace> places;
  for (std::size_t i = 1, n = lua_objlen(L, 2); i <= n; ++i) {
    lua_rawgeti(L, 2, static_cast<int>(i));
    lua_getfield(L, -1, "tensor");
    places.push_back({option_text(L, -2, "name").value_or(""), check_tensor(L, -1, owner.verb)});
    lua_pop(L, 2);
  }
  return load_state(L, owner, std::move(places), 3);
}

}  // namespace

Result<int> load_state(lua_State* L, const StateOwner& owner, std::vector<StatePlace> places, int index) {
  check_table(L, index, owner.verb);
  check_options(L, index + 1, owner.verb, {"strict"});
  const bool strict = !lua_istable(L, index + 1) || option_bool(L, index + 1, "strict", true);
  lua_settop(L, index + 1);
  make_by_name(L, index);
  std::vector<std::string> missing, left;
  if (auto done = take_all(L, owner, places, index, strict, missing, left); !done)
    return at_line(L, std::move(done).error());
  lua_newtable(L);
  push_names(L, "missing", missing);
  push_names(L, "unexpected", left);
  return 1;
}

void add_state_natives(lua_State* L) { set_functions(L, {{"load_state", bind<native_load_state>}}); }

}  // namespace rille::lua
