// Result<T>: a value or an Error.
// RILLE_TRY and RILLE_CHECK return the error to the caller: `RILLE_TRY(auto file, open(path));`,
// `RILLE_CHECK(sync(file));`.
// Inside coroutines use the CO_ forms. value() on an error and error() on a value are bugs (asserted).
#pragma once

#include <cassert>
#include <memory>
#include <optional>
#include <utility>

#include "runtime/core/base/error.hpp"

namespace rille {

namespace detail {
// Keeps the Error on the heap, so that a Result of a small value stays small. Copying an ErrorBox copies the Error.
struct ErrorBox {
  std::unique_ptr<Error> error;
  ErrorBox() = default;
  explicit ErrorBox(Error e) : error(std::make_unique<Error>(std::move(e))) {}
  ErrorBox(const ErrorBox& o) : error(o.error ? std::make_unique<Error>(*o.error) : nullptr) {}
  ErrorBox(ErrorBox&&) noexcept = default;
  ErrorBox& operator=(ErrorBox o) noexcept {
    error = std::move(o.error);
    return *this;
  }
};
}  // namespace detail

template <class T = void>
class [[nodiscard]] Result {
 public:
  using value_type = T;
  Result(T value) : value_(std::move(value)) {}      // NOLINT: implicit by design
  Result(Error error) : error_(std::move(error)) {}  // NOLINT
  bool ok() const { return !error_.error; }
  explicit operator bool() const { return ok(); }
  T& value() & {
    assert(ok());
    return *value_;
  }
  const T& value() const& {
    assert(ok());
    return *value_;
  }
  T&& value() && {
    assert(ok());
    return std::move(*value_);
  }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }
  Error& error() & {
    assert(!ok());
    return *error_.error;
  }
  const Error& error() const& {
    assert(!ok());
    return *error_.error;
  }
  Error&& error() && {
    assert(!ok());
    return std::move(*error_.error);
  }

 private:
  std::optional<T> value_;
  detail::ErrorBox error_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  using value_type = void;
  Result() = default;
  Result(Error error) : error_(std::move(error)) {}  // NOLINT
  bool ok() const { return !error_.error; }
  explicit operator bool() const { return ok(); }
  Error& error() & {
    assert(!ok());
    return *error_.error;
  }
  const Error& error() const& {
    assert(!ok());
    return *error_.error;
  }
  Error&& error() && {
    assert(!ok());
    return std::move(*error_.error);
  }

 private:
  detail::ErrorBox error_;
};

inline Result<void> success() { return {}; }

}  // namespace rille

#define RILLE_CONCAT_(a, b) a##b
#define RILLE_CONCAT(a, b) RILLE_CONCAT_(a, b)
#define RILLE_TRY_(ret, tmp, decl, ...) \
  auto tmp = (__VA_ARGS__);             \
  if (!tmp) ret std::move(tmp).error(); \
  decl = std::move(tmp).value()
// RILLE_TRY(declaration, expression): declaration = value, or return the error.
#define RILLE_TRY(decl, ...) RILLE_TRY_(return, RILLE_CONCAT(rille_try_, __LINE__), decl, __VA_ARGS__)
#define RILLE_CO_TRY(decl, ...) RILLE_TRY_(co_return, RILLE_CONCAT(rille_try_, __LINE__), decl, __VA_ARGS__)
// RILLE_CHECK(expression): return the expression's error, if it has one; otherwise continue.
#define RILLE_CHECK(...)                                                                          \
  do {                                                                                            \
    if (auto rille_check_ = (__VA_ARGS__); !rille_check_) return std::move(rille_check_).error(); \
  } while (false)
#define RILLE_CO_CHECK(...)                                                                          \
  do {                                                                                               \
    if (auto rille_check_ = (__VA_ARGS__); !rille_check_) co_return std::move(rille_check_).error(); \
  } while (false)
