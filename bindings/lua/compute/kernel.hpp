// Binds user-written GPU kernels to Lua. Loop thread only.
#pragma once

#include "bindings/lua/compute/tensor.hpp"
#include "runtime/compute/tensor/launch.hpp"

namespace rille::lua {

struct KernelHandle {
  std::shared_ptr<device::Kernel> kernel;
  std::shared_ptr<Graph> graph;  // graph of the device that made the kernel and launches it
};

int push_kernel(lua_State* L, KernelHandle handle);  // defined in kernel_launch.cpp
int device_kernel(lua_State* L);                     // the method dev:kernel
int device_kernel_file(lua_State* L);
int kernel_cubin(lua_State* L);  // the method kernel:cubin
int kernel_ptx(lua_State* L);    // the method kernel:ptx
int kernel_sass(lua_State* L);   // the method kernel:sass
void define_kernel(lua_State* L);

}  // namespace rille::lua
