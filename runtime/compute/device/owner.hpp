// While an OwnedBy exists, memory that this thread allocates is counted under the given name; Device::memory_summary()
// and errors of kind memory list these names. A name must never be freed: use a literal or interned().
#pragma once

#include <string>

namespace rille::device {

class OwnedBy {
 public:
  explicit OwnedBy(const char* name);
  ~OwnedBy();
  OwnedBy(const OwnedBy&) = delete;
  OwnedBy& operator=(const OwnedBy&) = delete;
  static const char* said();  // the name set on this thread; null: none
  static const char* now();   // the name set on this thread; "other" if there is none

 private:
  const char* before_;
};

const char* interned(const std::string& name);  // returns a copy that is never freed; use it for few, short names

}  // namespace rille::device
