#include "runtime/compute/device/owner.hpp"

#include <mutex>
#include <set>
#include <utility>

namespace rille::device {

namespace {
thread_local const char* current = nullptr;
}

OwnedBy::OwnedBy(const char* name) : before_(std::exchange(current, name)) {}
OwnedBy::~OwnedBy() { current = before_; }
const char* OwnedBy::said() { return current; }
const char* OwnedBy::now() { return current ? current : "other"; }

const char* interned(const std::string& name) {
  static std::mutex mutex;
  static std::set<std::string> names;
  const std::lock_guard lock(mutex);
  return names.insert(name).first->c_str();
}

}  // namespace rille::device
