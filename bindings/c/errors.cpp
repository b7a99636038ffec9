// rille_error: an Error that the host program owns.
#include <cstdlib>
#include <cstring>

#include "bindings/c/internal.hpp"
#include "bindings/host/bind.hpp"

namespace rille::capi {

namespace {
// The error that is returned when memory is exhausted. It is made at load time and never freed or written.
rille_error* reserve() {
  static rille_error* error = [] {
    auto* e = new rille_error;
    e->error = make_error(ErrorKind::memory, "out of memory", "free some, or lower the limits of the runs");
    e->json = error_to_value(e->error).to_json();
    return e;
  }();
  return error;
}
[[maybe_unused]] rille_error* const made_at_load = reserve();
}  // namespace

rille_error* give(Error error) noexcept {
  try {
    auto made = std::make_unique<rille_error>();
    made->error = std::move(error);
    return made.release();
  } catch (const std::bad_alloc&) { return reserve(); }
}

rille_error* give_exception(const std::exception& e) noexcept {
  try {
    return give(host::error_from_exception(e));
  } catch (const std::exception&) { return reserve(); }
}

Error take(rille_error* error) noexcept {
  if (!error)
    return make_error(ErrorKind::cancelled, "the host program dropped the call without giving it a result",
                      "in the host program, end each call with rille_call_return_* or rille_call_fail");
  if (error == reserve()) return error->error;
  Error out = std::move(error->error);
  delete error;
  return out;
}

std::unique_ptr<rille_error> hold(Error error) {
  auto held = std::make_unique<rille_error>();
  held->error = std::move(error);
  return held;
}

char* give_text(const std::string& text) {
  auto* out = static_cast<char*>(std::malloc(text.size() + 1));
  if (!out) throw std::bad_alloc();
  std::memcpy(out, text.c_str(), text.size() + 1);
  return out;
}

}  // namespace rille::capi

using namespace rille;

#define RILLE_TEXT_OF(x) #x
#define RILLE_TEXT(x) RILLE_TEXT_OF(x)
static_assert(std::string_view(RILLE_VERSION) ==
              RILLE_TEXT(RILLE_VERSION_MAJOR) "." RILLE_TEXT(RILLE_VERSION_MINOR) "." RILLE_TEXT(RILLE_VERSION_PATCH));

const char* rille_version(void) { return RILLE_VERSION; }
int rille_abi_check(int abi_version) { return abi_version == RILLE_ABI_VERSION; }
void rille_free(void* text) { std::free(text); }

rille_error* rille_error_create(rille_kind kind, const char* message, const char* hint) {
  return capi::guarded([&]() -> Result<> {
    bool known = kind >= RILLE_INVALID && kind <= RILLE_DENIED;
    return make_error(known ? static_cast<ErrorKind>(kind) : ErrorKind::internal, message ? message : "",
                      hint ? hint : "");
  });
}

static_assert(RILLE_INTERNAL == static_cast<int>(ErrorKind::internal) &&
              RILLE_DENIED == static_cast<int>(ErrorKind::denied) &&
              RILLE_STATE == static_cast<int>(ErrorKind::state) &&
              RILLE_DIVERGENCE == static_cast<int>(ErrorKind::divergence));

rille_kind rille_error_kind(const rille_error* e) {
  return e ? static_cast<rille_kind>(e->error.kind) : RILLE_INTERNAL;
}
// the name ends in a zero byte, because it is a string literal
const char* rille_error_kind_name(const rille_error* e) { return e ? to_string(e->error.kind).data() : ""; }
const char* rille_error_message(const rille_error* e) { return e ? e->error.message.c_str() : ""; }
const char* rille_error_hint(const rille_error* e) { return e ? e->error.hint.c_str() : ""; }
const char* rille_error_code(const rille_error* e) { return e ? e->error.code.c_str() : ""; }
const char* rille_error_traceback(const rille_error* e) { return e ? e->error.traceback.c_str() : ""; }
int rille_error_retryable(const rille_error* e) { return e && e->error.retryable; }
int64_t rille_error_retry_after_ms(const rille_error* e) { return e ? e->error.retry_after_ms : -1; }
int rille_error_http_status(const rille_error* e) { return e ? e->error.http_status : 0; }

const char* rille_error_field(const rille_error* e, const char* name) {
  struct Field {
    const char* name;
    const std::string Error::*text;
  };
  static constexpr Field fields[] = {
      {"message", &Error::message},       {"hint", &Error::hint},         {"code", &Error::code},
      {"traceback", &Error::traceback},   {"provider", &Error::provider}, {"operation", &Error::operation},
      {"request_id", &Error::request_id}, {"resource", &Error::resource}};
  for (const Field& f : fields)
    if (e && name && std::strcmp(name, f.name) == 0) return (e->error.*f.text).c_str();
  return nullptr;
}

// The next two functions create their result once and cache it in the error, although errors are handed out as const.
const rille_error* rille_error_cause(const rille_error* e) {
  if (!e || !e->error.cause) return nullptr;
  auto* kept = const_cast<rille_error*>(e);
  try {
    if (!kept->cause) kept->cause = capi::hold(*e->error.cause);
  } catch (const std::bad_alloc&) { return nullptr; }
  return kept->cause.get();
}

const char* rille_error_to_json(const rille_error* e) {
  if (!e) return "null";
  auto* kept = const_cast<rille_error*>(e);
  try {
    if (kept->json.empty()) kept->json = error_to_value(e->error).to_json();
  } catch (const std::bad_alloc&) { return "{\"kind\":\"memory\",\"message\":\"out of memory\"}"; }
  return kept->json.c_str();
}

void rille_error_free(rille_error* e) {
  if (e) (void)capi::take(e);
}
