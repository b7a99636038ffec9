// Memory of the program that runs scripts, in use by scripts. The last owner of a Memory, on any thread, gives it back.
#pragma once

#include <cstddef>
#include <functional>
#include <utility>

namespace rille::host {

struct Memory {
  Memory(void* at, std::size_t bytes, std::function<void()> give_back)
      : data(static_cast<std::byte*>(at)), size(bytes), release(std::move(give_back)) {}
  ~Memory() {
    if (release) release();
  }
  Memory(const Memory&) = delete;

  std::byte* data;
  std::size_t size;
  std::function<void()> release;
};

}  // namespace rille::host
