// The stand-in driver (tests/support/standin) under the real plug-in, and graphs on its device.
#pragma once

#include <dlfcn.h>

#include <cstdlib>
#include <thread>

#include "../../support/standin/control.hpp"
#include "../tensor/fixture.hpp"
#include "runtime/compute/device/cuda.hpp"

namespace rille::test {

// While it lives, the libraries' stand-ins decline half types.
struct NoHalf {
  NoHalf() { ::setenv("RILLE_TEST_NO_HALF", "1", 1); }
  ~NoHalf() { ::unsetenv("RILLE_TEST_NO_HALF"); }
};

// One at a time.
class Standin {
 public:
  explicit Standin(const standin::Options& options = {}) {
    ::setenv("RILLE_CUDA_DRIVER", RILLE_TEST_CUDA_DRIVER, 1);
    ::setenv("RILLE_CUDA_PLUGIN", RILLE_TEST_CUDA_PLUGIN, 1);
    ::setenv("RILLE_CUDA_PATH", RILLE_TEST_CUDA_TOOLKIT, 1);
    handle_ = ::dlopen(RILLE_TEST_CUDA_DRIVER, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!handle_) FAIL(::dlerror());
    reinterpret_cast<standin::Reset>(::dlsym(handle_, "standin_reset"))(&options);
  }

  ~Standin() { left(); }
  Standin(const Standin&) = delete;
  Standin& operator=(const Standin&) = delete;

  // When the last device is closed: its lane may be the one that closes it.
  standin::Report left() const {
    auto r = report();
    for (; r.contexts; r = report()) std::this_thread::yield();
    return r;
  }
  standin::Report report() const {
    standin::Report r;
    reinterpret_cast<standin::Tell>(::dlsym(handle_, "standin_report"))(&r);
    return r;
  }

  std::shared_ptr<device::CudaDevice> device(const char* name = "cuda:0") const {
    auto opened = device::CudaDevice::open(name);
    if (!opened) FAIL(opened.error().summary());
    return *opened;
  }

  std::shared_ptr<tensor::Graph> graph() const {
    auto g = tensor::Graph::create(device());
    if (!g) FAIL(g.error().summary());
    (*g)->manual_seed(7);
    return *g;
  }

 private:
  void* handle_ = nullptr;
};

}  // namespace rille::test
