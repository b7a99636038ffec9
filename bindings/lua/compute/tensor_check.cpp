// Reads the arguments of tensor methods: tensors, dimensions that count from 1, and options; raises errors with
// hints. Also remembers for each freed tensor the line that freed it, for error messages.
#include "bindings/lua/compute/tensor_check.hpp"

#include <algorithm>
#include <cmath>

#include "runtime/core/base/did_you_mean.hpp"

namespace rille::lua {

namespace {

char freed_key;

// Pushes the table of freed tensors, which maps a tensor to a text with its shape and the line that freed it. The
// table's keys are weak.
void push_freed(lua_State* L) {
  get_registry(L, &freed_key);
  if (!lua_isnil(L, -1)) return;
  lua_pop(L, 1);
  lua_newtable(L);
  lua_newtable(L);
  set_field(L, "__mode", "k");
  lua_setmetatable(L, -2);
  lua_pushvalue(L, -1);
  set_registry(L, &freed_key);
}

std::string freed_text(lua_State* L, int index) {
  lua_pushvalue(L, index);
  push_freed(L);
  lua_insert(L, -2);
  lua_rawget(L, -2);
  const char* known = lua_tostring(L, -1);
  const std::string text = known ? known : "the tensor was freed";
  lua_pop(L, 2);
  return text;
}

}  // namespace

int free_tensor(lua_State* L) {
  Tensor& t = check_object<Tensor>(L, 1, "free");
  check_end(L, 1, "free");
  if (!t) return 0;
  push_freed(L);
  lua_pushvalue(L, 1);
  push(L, fmt::format("the tensor {}{} was freed at {}", name_of(t.dtype()), tensor::to_string(t.shape()),
                      script_position(L)));
  lua_rawset(L, -3);
  t.free();
  return 0;
}

namespace {

const char* way_to_a_tensor(lua_State* L, int index) {
  switch (lua_type(L, index)) {
    case LUA_TTABLE: return "this is a list, not a tensor: dev:tensor(list) makes a tensor of it";
    case LUA_TNUMBER: return "dev:tensor(3) makes a tensor of a number";
    case LUA_TNIL: return "this variable is nil: check that it was set and that its name is spelt right";
    case LUA_TNONE: return "an argument is missing, or a dot stands where a colon belongs: x:matmul(y)";
    case LUA_TFUNCTION: return "this is a function: call it with parentheses, as in x:sum()";
    default: return "";
  }
}

// Rille's equivalents of PyTorch names that are too different for the "did you mean" hint to find.
struct Word {
  std::string_view theirs;
  const char* ours;
};
constexpr Word words[] = {{"T", "x:transpose(1, 2)"},
                          {"mT", "x:transpose(-2, -1)"},
                          {"t", "x:transpose(1, 2)"},
                          {"cuda", "x:to(\"cuda:0\")"},
                          {"cpu", "x:to(\"cpu\")"},
                          {"float", "x:to(\"f32\")"},
                          {"double", "x:to(\"f64\")"},
                          {"half", "x:to(\"f16\")"},
                          {"bfloat16", "x:to(\"bf16\")"},
                          {"long", "x:to(\"i64\")"},
                          {"int", "x:to(\"i32\")"},
                          {"bool", "x:to(\"bool\")"},
                          {"byte", "x:to(\"u8\")"},
                          {"type", "x:to(\"f32\"); x.dtype says which it is"},
                          {"type_as", "x:to(y.dtype)"},
                          {"numpy", "x:totable()"},
                          {"tolist", "x:totable()"},
                          {"data", "x:detach()"},
                          {"ndim", "x:dim()"},
                          {"nelement", "x:numel()"},
                          {"mm", "x:matmul(y)"},
                          {"bmm", "x:matmul(y)"},
                          {"mv", "x:matmul(y)"},
                          {"dot", "(x * y):sum()"},
                          {"view_as", "x:view(y:shape())"},
                          {"reshape_as", "x:reshape(y:shape())"},
                          {"sub_", "x:add_(y, -1)"},
                          {"div_", "x:mul_(1 / n)"},
                          {"is_cuda", "x.device"},
                          {"zero_grad", "opt:zero_grad()"},
                          {"concat", "x:cat({ y }, dim)"}};

}  // namespace

const char* word_of_torch(std::string_view name) {
  for (const auto& word : words)
    if (word.theirs == name) return word.ours;
  return nullptr;
}

void not_a_tensor(lua_State* L, int index, const char* what) {
  const bool dot = index == 1 && !lua_isuserdata(L, 1) && !lua_istable(L, 2) && !lua_isuserdata(L, 2);
  raise(L,
        at_line(L, make_error(ErrorKind::invalid, fmt::format("{}: expected Tensor, got {}", what, describe(L, index)),
                              dot ? "methods are called with a colon: x:sum()" : way_to_a_tensor(L, index))));
}

Tensor& check_tensor(lua_State* L, int index, const char* what) {
  Tensor* const t = test_tensor(L, index);
  if (!t) not_a_tensor(L, index, what);
  if (!*t) raise(L, at_line(L, make_error(ErrorKind::state, fmt::format("{}: {}", what, freed_text(L, index)))));
  return *t;
}

namespace {

// Hints for methods that scripts call with more arguments than the method takes.
constexpr Word more_words[] = {
    {"round", "(x * 100):round() / 100 keeps two decimals"},
    {"log", "x:log() / math.log(base); log2 and log10 are methods"},
    {"div", "x:floor_divide(y) rounds down, (x / y):trunc() towards zero"},
    {"div_", "x:copy_(x:floor_divide(y)) rounds down, x:copy_((x / y):trunc()) towards zero"},
    {"mul", "x:mul(y):mul(z): one after the other"},
    {"matmul", "a:matmul(b):matmul(c): one after the other"},
    {"cumsum", "from the end: x:flip(d):cumsum(d):flip(d); in another type: x:to(\"f64\"):cumsum(d)"},
    {"softmax", "in another type: x:to(\"f32\"):softmax(-1)"},
    {"log_softmax", "in another type: x:to(\"f32\"):log_softmax(-1)"},
    {"sum", "several dimensions are a list: x:sum({ 1, 2 }, { keepdim = true })"},
    {"mean", "several dimensions are a list: x:mean({ 1, 2 }, { keepdim = true })"},
    {"fft", "another size: x:pad or x:narrow before it; another scale: a product after it"},
    {"ifft", "another size: x:pad or x:narrow before it; another scale: a product after it"},
    {"fft2", "another size: x:pad or x:narrow before it; another scale: a product after it"},
    {"ifft2", "another size: x:pad or x:narrow before it; another scale: a product after it"},
    {"rfft2", "another size: x:pad or x:narrow before it"},
    {"to", "one after the other: x:to(\"f16\"):to(\"cuda:0\")"},
    {"transpose", "more than two dimensions: x:permute(3, 1, 2)"},
    {"squeeze", "one after the other: x:squeeze(3):squeeze(1)"},
    {"cat", "the others are a list: x:cat({ y, z }, 1)"},
    {"stack", "the others are a list: x:stack({ y, z }, 1)"}};

}  // namespace

void check_end(lua_State* L, int last, const char* what) {
  for (int i = last + 1; i <= lua_gettop(L); ++i) {
    if (lua_isnil(L, i)) continue;
    const std::string takes = last == 1   ? "no argument"
                              : last == 2 ? "one argument"
                                          : fmt::format("{} arguments", last - 1);
    const char* hint = "this argument would have no effect: leave it out";
    for (const auto& word : more_words)
      if (word.theirs == what) hint = word.ours;
    raise_invalid(L,
                  fmt::format("{}: takes {} after the tensor, got {}{} ({})", what, takes, describe(L, i),
                              last == 1 ? "" : " as well", script_position(L)),
                  hint);
  }
}

Tensor& check_self(lua_State* L, const char* what, int last) {
  Tensor& t = check_tensor(L, 1, what);
  check_end(L, last, what);
  return t;
}

std::vector<Tensor> check_tensors(lua_State* L, int index, const char* what) {
  if (!lua_istable(L, index)) return {check_tensor(L, index, what)};
  check_known(L, index, what, {}, true);
  std::vector<Tensor> out;
  for (std::size_t i = 1, n = lua_objlen(L, index); i <= n; ++i) {
    lua_rawgeti(L, index, static_cast<int>(i));
    out.push_back(check_tensor(L, -1, what));
    lua_pop(L, 1);
  }
  return out;
}

int dim_from(lua_State* L, double n, const char* what) {
  if (n != std::floor(n) || n == 0 || std::fabs(n) > 9)
    raise_invalid(L, fmt::format("{}: {} is not a dimension ({})", what, n, script_position(L)),
                  "dimensions count from 1; -1 is the last");
  return static_cast<int>(n > 0 ? n - 1 : n);
}

int check_dim(lua_State* L, int index, const char* what) { return dim_from(L, check_number(L, index, what), what); }

namespace {

// Returns the first key that is not a number of the table at `index`, if the table has one.
std::optional<std::string> name_in(lua_State* L, int index) {
  lua_pushnil(L);
  while (lua_next(L, index)) {
    lua_pop(L, 1);
    if (lua_type(L, -1) == LUA_TNUMBER) continue;
    std::string name = lua_type(L, -1) == LUA_TSTRING ? lua_tostring(L, -1) : describe(L, -1);
    lua_pop(L, 1);
    return name;
  }
  return std::nullopt;
}

}  // namespace

void options_may_stand_first(lua_State* L, int index, const char* what) {
  if (!lua_istable(L, index) || !name_in(L, index)) return;
  if (lua_objlen(L, index) || !lua_isnoneornil(L, index + 1))
    raise_invalid(
        L, fmt::format("{}: '{}' was found among the dimensions ({})", what, *name_in(L, index), script_position(L)),
        "put options into a separate table, after the dimensions");
  lua_settop(L, index);
  lua_pushnil(L);
  lua_insert(L, index);
}

std::vector<int> check_dims(lua_State* L, int index, const char* what) {
  std::vector<int> out;
  if (lua_isnoneornil(L, index)) return out;
  if (!lua_istable(L, index)) return {check_dim(L, index, what)};
  if (const auto name = name_in(L, index))
    raise_invalid(L, fmt::format("{}: '{}' was found among the dimensions ({})", what, *name, script_position(L)),
                  "dimensions are a list of numbers");
  for (std::size_t i = 1, n = lua_objlen(L, index); i <= n; ++i) {
    lua_rawgeti(L, index, static_cast<int>(i));
    out.push_back(check_dim(L, -1, what));
    lua_pop(L, 1);
  }
  return out;
}

Dims check_shape(lua_State* L, int index, const char* what) {
  std::vector<std::int64_t> sizes;
  if (lua_istable(L, index)) {
    for (std::size_t i = 1, n = lua_objlen(L, index); i <= n; ++i) {
      lua_rawgeti(L, index, static_cast<int>(i));
      sizes.push_back(check_integer(L, -1, what));
      lua_pop(L, 1);
    }
  } else {
    for (int i = index; i <= lua_gettop(L); ++i) sizes.push_back(check_integer(L, i, what));
  }
  if (sizes.size() > kernels::max_rank)
    raise_invalid(L, fmt::format("{}: {} dimensions; at most {} are possible", what, sizes.size(), kernels::max_rank));
  Dims dims;
  for (std::int64_t s : sizes) dims.push(s);
  return dims;
}

Dims check_sizes(lua_State* L, int index, const char* what) {
  if (lua_istable(L, index)) {
    check_known(L, index, what, {}, true);
    check_end(L, index, what);
  }
  return check_shape(L, index, what);
}

void push_shape(lua_State* L, const Dims& dims) {
  lua_createtable(L, dims.n, 0);
  for (int i = 0; i < dims.n; ++i) {
    push(L, dims[i]);
    lua_rawseti(L, -2, i + 1);
  }
}

void check_known(lua_State* L, int index, const char* verb, const std::vector<std::string>& known, bool positions) {
  lua_pushnil(L);
  while (lua_next(L, index)) {
    lua_pop(L, 1);
    if (positions && lua_type(L, -1) == LUA_TNUMBER) continue;
    std::string key = lua_type(L, -1) == LUA_TSTRING ? lua_tostring(L, -1) : describe(L, -1);
    if (std::find(known.begin(), known.end(), key) != known.end()) continue;
    std::string near = did_you_mean(key, known), list;
    for (const std::string& k : known) list += (list.empty() ? "" : ", ") + k;
    raise_invalid(L, fmt::format("{}: unknown option '{}' ({})", verb, key, script_position(L)),
                  known.empty()  ? "it has no options"
                  : near.empty() ? "the options are: " + list
                                 : fmt::format("did you mean '{}'?", near));
  }
}

DType option_dtype(lua_State* L, int index, DType otherwise) {
  auto name = option_text(L, index, "dtype");
  return name ? value_or_raise(L, parse_dtype(*name)) : otherwise;
}

std::uint64_t check_seed(lua_State* L, int index, const char* what) {
  double n = check_number(L, index, what);
  if (n < 0 || n != std::floor(n) || n > 9007199254740992.0)
    raise_invalid(L, fmt::format("{}: {} is not a valid seed", what, n), "seeds are whole numbers from 0 to 2^53");
  return static_cast<std::uint64_t>(n);
}

namespace {

int check_names(lua_State* L) {  // check_names(options, verb, list of names): raises if the options have another name
  if (lua_isnoneornil(L, 1)) return 0;
  check_table(L, 1, lua_tostring(L, 2));
  std::vector<std::string> known;
  for (std::size_t i = 1, n = lua_objlen(L, 3); i <= n; ++i) {
    lua_rawgeti(L, 3, static_cast<int>(i));
    known.emplace_back(lua_tostring(L, -1));
    lua_pop(L, 1);
  }
  check_known(L, 1, lua_tostring(L, 2), known, false);
  return 0;
}

// check_callable(value, verb, example): raises unless the value is a function or a callable table
int check_callable(lua_State* L) {
  if (lua_isfunction(L, 1)) return 0;
  if (luaL_getmetafield(L, 1, "__call")) return 0;
  raise_invalid(
      L, fmt::format("{}: expected a function, got {} ({})", lua_tostring(L, 2), describe(L, 1), script_position(L)),
      lua_tostring(L, 3));
}

}  // namespace

void add_check_natives(lua_State* L) {
  set_functions(L, {{"check_options", bind<check_names>}, {"check_callable", bind<check_callable>}});
}

}  // namespace rille::lua
