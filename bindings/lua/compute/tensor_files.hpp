// Files of tensors as scripts see them: a table whose fields are read from the file when they are asked for.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "bindings/lua/compute/tensor.hpp"
#include "runtime/core/store/safetensors.hpp"

namespace rille::lua {

struct TensorFiles {
  using File = std::shared_ptr<const store::SafetensorsFile>;
  struct Place {
    File file;
    const store::TensorEntry* entry = nullptr;
  };
  std::map<std::string, Place> places;  // by the tensors' names
  std::size_t unsettled_bytes = 0;      // read since the graph has last caught up
};

TensorFiles tensors_of(TensorFiles::File file);
// Pushes the table. A tensor is made anew each time it is asked for; nil where there is none of that name. Whoever
// copies one after the other into parameters never has more than a few of them beside those.
void push_tensor_files(lua_State* L, TensorFiles files);
TensorFiles* tensor_files(lua_State* L, int index);  // of such a table; null: of another value
// Of a name that is there, made on that device.
Result<Tensor> read_tensor(lua_State* L, TensorFiles& files, const std::string& name, Graph& g);
void add_tensor_file_natives(lua_State* L);

}  // namespace rille::lua
