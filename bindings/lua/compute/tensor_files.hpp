// Tensor files opened by scripts: a Lua table that reads a tensor from disk each time its field is accessed.
#pragma once

#include <string>

#include "bindings/lua/compute/tensor.hpp"
#include "runtime/compute/data/checkpoint_parts.hpp"

namespace rille::lua {

struct TensorFiles {
  using File = data::OpenFile;
  data::StatePart places;           // where each tensor lies in the files, by tensor name
  std::size_t unsettled_bytes = 0;  // bytes read since the graph was last synchronized
};

// Opens the file at a granted path; the memory of its parsed header counts while the file object lives.
Result<TensorFiles::File> open_counted(lua_State* L, const std::string& path);
// Pushes the table. Each access reads the tensor from disk again; an unknown name gives nil. A script that copies
// tensors one by one into parameters therefore holds only a few of the file's tensors in memory.
void push_tensor_files(lua_State* L, TensorFiles files);
TensorFiles* tensor_files(lua_State* L, int index);  // null: the value is not a table made by push_tensor_files
// Reads a tensor to the device of graph `g`. The files must contain `name`.
Result<Tensor> read_tensor(lua_State* L, TensorFiles& files, const std::string& name, Graph& g);
void add_tensor_file_natives(lua_State* L);

}  // namespace rille::lua
