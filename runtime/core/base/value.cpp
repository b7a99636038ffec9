#include "runtime/core/base/value.hpp"

#include <algorithm>
#include <cmath>

namespace rille {

const Value& Value::operator[](std::string_view key) const {
  static const Value null;
  if (const Object* object = as_object())
    if (auto it = object->find(key); it != object->end()) return it->second;
  return null;
}

Value& Value::set(std::string key, Value value) {
  if (!as_object()) data_ = Object{};
  Object& object = *as_object();
  const std::size_t before = object.size();
  // Keys usually arrive in ascending order, so try the end first.
  const auto at = object.try_emplace(object.end(), std::move(key), std::move(value));
  if (object.size() == before) at->second = std::move(value);
  return *this;
}

std::string Value::text(std::string_view key, std::string_view otherwise) const {
  const std::string* s = (*this)[key].as_string();
  return s ? *s : std::string(otherwise);
}

double Value::number(std::string_view key, double otherwise) const {
  const double* n = (*this)[key].as_number();
  return n ? *n : otherwise;
}

std::int64_t Value::integer(std::string_view key, std::int64_t otherwise) const {
  const double* n = (*this)[key].as_number();
  return n && std::fabs(*n) < 9.2e18 ? static_cast<std::int64_t>(*n) : otherwise;
}

bool Value::boolean(std::string_view key, bool otherwise) const {
  const bool* b = (*this)[key].as_bool();
  return b ? *b : otherwise;
}

Value error_to_value(const Error& e) {
  Value out;
  out.set("kind", to_string(e.kind)).set("message", e.message);
  auto put = [&out](const char* key, const std::string& text) {
    if (!text.empty()) out.set(key, text);
  };
  put("hint", e.hint);
  put("provider", e.provider);
  put("operation", e.operation);
  put("code", e.code);
  put("request_id", e.request_id);
  put("resource", e.resource);
  put("traceback", e.traceback);
  if (e.retryable) out.set("retryable", true);
  if (e.retry_after_ms >= 0) out.set("retry_after", static_cast<double>(e.retry_after_ms) / 1000);
  if (e.http_status) out.set("http_status", e.http_status);
  if (e.cause) out.set("cause", error_to_value(*e.cause));
  return out;
}

Error error_from_value(const Value& v) {
  Error e = make_error(error_kind_from(v.text("kind", "internal")), v.text("message"), v.text("hint"));
  e.provider = v.text("provider");
  e.operation = v.text("operation");
  e.code = v.text("code");
  e.request_id = v.text("request_id");
  e.resource = v.text("resource");
  e.traceback = v.text("traceback");
  e.retryable = v.boolean("retryable");
  if (const double* after = v["retry_after"].as_number()) e.retry_after_ms = std::llround(*after * 1000);
  e.http_status = static_cast<int>(v.integer("http_status"));
  if (v["cause"].as_object()) e.cause = std::make_shared<const Error>(error_from_value(v["cause"]));
  return e;
}

}  // namespace rille
