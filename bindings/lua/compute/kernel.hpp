// Shared by the files that bind kernels. Loop thread only.
#pragma once

#include "bindings/lua/compute/tensor.hpp"
#include "runtime/compute/tensor/launch.hpp"

namespace rille::lua {

struct KernelHandle {
  std::shared_ptr<device::Kernel> kernel;
  std::shared_ptr<Graph> graph;  // graph of the device that made the kernel and launches it
};

int push_kernel(lua_State* L, KernelHandle handle);  // kernel_launch.cpp
int device_kernel(lua_State* L);                     // a device method, as is kernel_file
int device_kernel_file(lua_State* L);
int kernel_cubin(lua_State* L);  // a kernel method
void define_kernel(lua_State* L);

}  // namespace rille::lua
