// libcupti.so.13 for tests: reports the stand-in driver's requests and work as CUPTI records, in buffers of the
// plug-in. As with the library, a call's external id has a record of its own, only for calls made while the id is
// pushed on that thread, and only if records of calls are enabled too.
#include <dlfcn.h>

#include <cstdlib>
#include <cstring>
#include <deque>
#include <mutex>
#include <set>
#include <vector>

#include "runtime/compute/device/cuda/trace.hpp"
#include "standin/control.hpp"

namespace {

using namespace rille::device::cuda::cupti;
using rille::test::standin::Activity;

struct State {
  std::mutex mutex;
  std::set<int> enabled;
  std::vector<std::vector<std::uint8_t>> records;  // each of CUPTI's size
  Request request = nullptr;
  Complete complete = nullptr;
} state;
thread_local std::vector<std::uint64_t> external;
std::deque<std::string>& names = *new std::deque<std::string>;  // outlives the exit handlers

std::size_t bytes_of(int kind) {
  return kind == kind_kernel ? 224 : kind == kind_copy ? 96 : kind == kind_fill ? 88 : sizeof(External);
}

template <class T>
void keep(const T& record) {
  std::vector<std::uint8_t> bytes(bytes_of(record.kind));
  std::memcpy(bytes.data(), &record, sizeof record);
  state.records.push_back(std::move(bytes));
}

void watch(bool has_run, const Activity& a) {
  const std::lock_guard lock(state.mutex);
  const bool calls = state.enabled.contains(kind_driver) && state.enabled.contains(kind_external);
  if (!has_run) {
    if (calls && !external.empty()) keep(External{kind_external, external_kind, external.back(), a.correlation, 0});
    return;
  }
  if (!state.enabled.contains(a.kind)) return;
  if (a.kind == kind_kernel) {
    Kernel k{};
    k.kind = a.kind;
    k.start = a.start;
    k.end = a.end;
    k.device = a.device;
    k.correlation = a.correlation;
    k.name = names.emplace_back(a.name).c_str();
    return keep(k);
  }
  Move m{};
  m.kind = a.kind;
  m.how = a.how;
  m.bytes = a.bytes;
  m.start = a.start;
  m.end = a.end;
  m.device = a.device;
  m.correlation = a.correlation;
  keep(m);
}

bool attach(bool on) {
  const char* named = std::getenv("RILLE_CUDA_DRIVER");
  void* library = named ? ::dlopen(named, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD) : nullptr;
  const auto set = library ? reinterpret_cast<rille::test::standin::Watch>(::dlsym(library, "standin_watch")) : nullptr;
  if (set) set(on ? watch : nullptr);
  return set != nullptr;
}

}  // namespace

extern "C" {
#define API __attribute__((visibility("default"))) int

API cuptiActivityRegisterCallbacks(Request request, Complete complete) {
  state.request = request;
  state.complete = complete;
  return 0;
}
API cuptiActivityEnable(int kind) {
  const std::lock_guard lock(state.mutex);
  state.enabled.insert(kind);
  return attach(true) ? 0 : 15;  // CUPTI_ERROR_NOT_INITIALIZED
}
API cuptiActivityDisable(int kind) {
  const std::lock_guard lock(state.mutex);
  state.enabled.erase(kind);
  if (state.enabled.empty()) attach(false);
  return 0;
}
// Returns several buffers, each with a few records.
API cuptiActivityFlushAll(std::uint32_t) {
  std::vector<std::vector<std::uint8_t>> records;
  {
    const std::lock_guard lock(state.mutex);
    records.swap(state.records);
  }
  for (std::size_t i = 0; i < records.size();) {
    std::uint8_t* buffer = nullptr;
    std::size_t bytes = 0, most = 0, used = 0;
    state.request(&buffer, &bytes, &most);
    if (!buffer || reinterpret_cast<std::uintptr_t>(buffer) % 8) return 8;
    for (int n = 0; n < 5 && i < records.size() && used + records[i].size() <= bytes; ++n, ++i) {
      std::memcpy(buffer + used, records[i].data(), records[i].size());
      used += records[i].size();
    }
    state.complete(nullptr, 0, buffer, bytes, used);
  }
  return 0;
}
API cuptiActivityGetNextRecord(std::uint8_t* buffer, std::size_t valid, int** record) {
  std::uint8_t* next = buffer;
  if (*record) next = reinterpret_cast<std::uint8_t*>(*record) + bytes_of(**record);
  if (next >= buffer + valid) return 12;  // CUPTI_ERROR_MAX_LIMIT_REACHED
  *record = reinterpret_cast<int*>(next);
  return 0;
}
API cuptiActivityPushExternalCorrelationId(int kind, std::uint64_t id) {
  if (kind != external_kind) return 1;
  external.push_back(id);
  return 0;
}
API cuptiActivityPopExternalCorrelationId(int kind, std::uint64_t* last) {
  if (kind != external_kind || external.empty()) return 1;
  *last = external.back();
  external.pop_back();
  return 0;
}
API cuptiGetResultString(int, const char** text) {
  *text = "as the stand-in says";
  return 0;
}

}  // extern "C"
