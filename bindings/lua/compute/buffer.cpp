#include "bindings/lua/compute/buffer.hpp"

#include <algorithm>

namespace rille::lua {

namespace {

using SharedMemory = std::shared_ptr<Memory>;

Memory& check_buffer(lua_State* L, const char* what) { return *check_object<SharedMemory>(L, 1, what); }

// Reads a position that counts from 1, or backwards from -1.
std::size_t check_position(lua_State* L, int index, std::int64_t otherwise, std::size_t size, const char* what) {
  std::int64_t at = lua_isnoneornil(L, index) ? otherwise : check_integer(L, index, what);
  if (at < 0) at += static_cast<std::int64_t>(size) + 1;
  return static_cast<std::size_t>(std::clamp<std::int64_t>(at, 0, static_cast<std::int64_t>(size)));
}

// buffer:text(first, last): as string.sub
int buffer_text(lua_State* L) {
  Memory& m = check_buffer(L, "buffer:text");
  const std::size_t first = std::max<std::size_t>(1, check_position(L, 2, 1, m.size, "buffer:text")),
                    last = check_position(L, 3, -1, m.size, "buffer:text");
  if (first > last) push(L, std::string_view());
  else push(L, std::string_view(reinterpret_cast<const char*>(m.data) + first - 1, last - first + 1));
  return 1;
}

// buffer:tensor("f32", { 2, 3 })
Result<int> buffer_tensor(lua_State* L) {
  Memory& m = check_buffer(L, "buffer:tensor");
  RILLE_TRY(const DType dtype, parse_dtype(check_text(L, 2, "buffer:tensor")));
  const std::size_t element = size_bytes(dtype);
  Dims shape;
  if (lua_isnoneornil(L, 3)) shape.push(static_cast<std::int64_t>(m.size / element));
  else shape = check_shape(L, 3, "buffer:tensor");
  RILLE_CHECK(tensor::check_dims(shape));
  const std::size_t bytes = static_cast<std::size_t>(shape.count()) * element;
  if (bytes > m.size)
    return at_line(
        L, make_error(ErrorKind::invalid, fmt::format("buffer:tensor: {} {} has {} bytes, the buffer {}",
                                                      name_of(dtype), tensor::to_string(shape), bytes, m.size)));
  if (reinterpret_cast<std::uintptr_t>(m.data) % element)
    return at_line(L, make_error(ErrorKind::state, fmt::format("buffer:tensor: the memory does not begin at a multiple "
                                                               "of {} bytes",
                                                               element)));
  RILLE_TRY(const auto graph, graph_on(L, "cpu"));
  return give(L, tensor::from_memory(*graph, shape, dtype, m.data, check_object<SharedMemory>(L, 1, "buffer")));
}

int buffer_length(lua_State* L) {
  push(L, static_cast<std::int64_t>(check_buffer(L, "#buffer").size));
  return 1;
}

int buffer_to_string(lua_State* L) {
  push(L, fmt::format("Buffer of {} bytes", check_buffer(L, "buffer").size));
  return 1;
}

}  // namespace

void define_buffer(lua_State* L) {
  define_class<SharedMemory>(L,
                             {.name = "Buffer",
                              .methods = {{"text", bind<buffer_text>}, {"tensor", bind<buffer_tensor>}},
                              .metamethods = {{"__len", bind<buffer_length>}, {"__tostring", bind<buffer_to_string>}}});
}

void push_buffer(lua_State* L, std::shared_ptr<Memory> memory) { push_object<SharedMemory>(L, std::move(memory)); }

std::shared_ptr<Memory> test_buffer(lua_State* L, int index) {
  const SharedMemory* memory = test_object<SharedMemory>(L, index);
  return memory ? *memory : nullptr;
}

bool is_of_state(lua_State* L, const Tensor& t) {
  const TensorState& state = tensor_state(L);
  return std::any_of(state.graphs.begin(), state.graphs.end(), [&](const auto& g) { return g.get() == &t.graph(); });
}

}  // namespace rille::lua
