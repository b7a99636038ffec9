#include "runtime/compute/device/cuda/trace.hpp"

#include <cstdlib>
#include <mutex>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "runtime/compute/device/cuda/card.hpp"
#include "runtime/compute/device/cuda/symbols.hpp"
#include "runtime/core/base/error.hpp"

namespace rille::device::cuda {

namespace {

using namespace cupti;

struct Library {
#define RILLE_MEMBER(name, parameters) Status(*name) parameters = nullptr;
  RILLE_CUPTI(RILLE_MEMBER)
#undef RILLE_MEMBER
  bool whole = false, registered = false;

  Library() {
    Symbols found(CudaPart::cupti);
#define RILLE_FIND(name, parameters) found.find(name, #name);
    RILLE_CUPTI(RILLE_FIND)
#undef RILLE_FIND
    whole = found.whole();
  }
};

Library& library() {
  static Library l;
  return l;
}

constexpr int kinds[] = {kind_external, kind_driver, kind_runtime, kind_kernel, kind_copy, kind_fill};
constexpr std::size_t buffer_bytes = 4u << 20;

struct Seen {
  int kind;
  std::uint32_t correlation;
  const std::string* name;
  std::int64_t ns, bytes;
};

// Records of the running trace. CUPTI reports a kernel's call number in a separate record, before or after the kernel's
// timing record.
struct Records {
  std::mutex mutex;
  const Card* card = nullptr;  // null: no trace runs, records that come late are dropped
  std::vector<Seen> seen;
  std::unordered_map<std::uint32_t, std::uint64_t> call_of;
  std::set<std::string> names;
};
Records& records() {
  static Records r;
  return r;
}

void read(Records& r, const int* record) {
  if (*record == kind_external) {
    const auto& e = *reinterpret_cast<const External*>(record);
    if (e.external_kind == external_kind) r.call_of[e.correlation] = e.id;
  } else if (*record == kind_kernel) {
    const auto& k = *reinterpret_cast<const Kernel*>(record);
    if (int(k.device) != r.card->device) return;
    r.seen.push_back(
        {kind_kernel, k.correlation, &*r.names.insert(k.name ? k.name : "?").first, std::int64_t(k.end - k.start), 0});
  } else if (*record == kind_copy || *record == kind_fill) {
    const auto& m = *reinterpret_cast<const Move*>(record);
    if (int(m.device) != r.card->device) return;
    static constexpr const char* ways[] = {"copy", "copy in", "copy out", "copy", "copy",          "copy",
                                           "copy", "copy",    "copy",     "copy", "copy to a peer"};
    const char* const name = *record == kind_fill ? "fill" : m.how < std::size(ways) ? ways[m.how] : "copy";
    r.seen.push_back(
        {*record, m.correlation, &*r.names.insert(name).first, std::int64_t(m.end - m.start), std::int64_t(m.bytes)});
  }
}

void request(std::uint8_t** buffer, std::size_t* bytes, std::size_t* records_max) {
  *buffer = static_cast<std::uint8_t*>(std::aligned_alloc(64, buffer_bytes));
  *bytes = *buffer ? buffer_bytes : 0;
  *records_max = 0;
}

void complete(CUcontext, std::uint32_t, std::uint8_t* buffer, std::size_t, std::size_t valid) {
  Records& r = records();
  const std::lock_guard lock(r.mutex);
  for (int* record = nullptr; r.card && library().cuptiActivityGetNextRecord(buffer, valid, &record) == 0;)
    read(r, record);
  std::free(buffer);
}

bool said(Status status, const char* doing, Failure& f) {
  if (status == 0) return true;
  const char* text = nullptr;
  library().cuptiGetResultString(status, &text);
  return refuse(f, int(ErrorKind::device),
                "install a CUPTI that fits the NVIDIA driver, or run without profiling this GPU", "CUPTI: %s: %s",
                doing, text ? text : "?");
}

void disable() {
  for (const int kind : kinds) library().cuptiActivityDisable(kind);
}

}  // namespace

bool start_trace(Card& card, Failure& f) {
  Library& l = library();
  if (left_out(CudaPart::cupti))
    return refuse(f, int(ErrorKind::device),
                  "remove cupti from the environment variable RILLE_CUDA_WITHOUT, or profile without GPU times",
                  "RILLE_CUDA_WITHOUT excludes CUPTI");
  if (!l.whole)
    return refuse(f, int(ErrorKind::device),
                  "install CUPTI of this GPU's CUDA version, or run without profiling this GPU",
                  "CUPTI cannot be used here: %s", load_part(CudaPart::cupti).why.c_str());
  Records& r = records();
  {
    const std::lock_guard lock(r.mutex);
    if (r.card)
      return refuse(f, int(ErrorKind::device), "end the other profile first",
                    "another device is being profiled: only one can be at a time");
    r.card = &card;
    r.seen.clear();
    r.call_of.clear();
  }
  bool good = l.registered || said(l.cuptiActivityRegisterCallbacks(request, complete), "asking for records", f);
  l.registered = good;
  for (const int kind : kinds) good = good && said(l.cuptiActivityEnable(kind), "asking for records", f);
  if (good) return true;
  disable();
  const std::lock_guard lock(r.mutex);
  r.card = nullptr;
  return false;
}

void trace_call(std::uint64_t id) {
  std::uint64_t last = 0;
  if (id) library().cuptiActivityPushExternalCorrelationId(external_kind, id);
  else library().cuptiActivityPopExternalCorrelationId(external_kind, &last);
}

bool stop_trace(Card& card, void (*each)(void*, const TraceRecord*), void* to, Failure& f) {
  const bool settled = card.settle(f);
  const bool flushed = said(library().cuptiActivityFlushAll(flush_forced), "reading records", f);
  disable();
  Records& r = records();
  const std::lock_guard lock(r.mutex);
  for (const auto& s : r.seen) {
    const auto call = r.call_of.find(s.correlation);
    const TraceRecord record{call == r.call_of.end() ? 0 : call->second, s.name->c_str(), s.ns, s.bytes};
    if (settled && flushed) each(to, &record);
  }
  r.card = nullptr;
  r.seen.clear();
  r.call_of.clear();
  return settled && flushed;
}

void drop_trace(const Card& card) {
  Records& r = records();
  {
    const std::lock_guard lock(r.mutex);
    if (r.card != &card) return;
    r.card = nullptr;
  }
  disable();
}

}  // namespace rille::device::cuda
