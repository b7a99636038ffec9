// The values of rille.hpp: errors, shared memory, functions of scripts, and data. Included by rille.hpp.
#pragma once

#include <rille.h>

#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace rille {
inline namespace cpp {  // so that no name collides with the library's own if it is linked statically

class Error : public std::exception {
 public:
  explicit Error(rille_error* owned) : error_(owned, &rille_error_free) { remember(); }
  Error(rille_kind kind, const std::string& message, const std::string& hint = "")
      : Error(rille_error_create(kind, message.c_str(), hint.c_str())) {}

  const char* what() const noexcept override { return what_->c_str(); }  // message and hint
  rille_kind kind() const { return rille_error_kind(error_.get()); }
  const char* kind_name() const { return rille_error_kind_name(error_.get()); }
  std::string message() const { return rille_error_message(error_.get()); }
  std::string hint() const { return rille_error_hint(error_.get()); }
  std::string code() const { return rille_error_code(error_.get()); }
  std::string traceback() const { return rille_error_traceback(error_.get()); }
  bool retryable() const { return rille_error_retryable(error_.get()) != 0; }
  std::string json() const { return rille_error_to_json(error_.get()); }
  const rille_error* get() const { return error_.get(); }

  // An owned error with the kind, message and hint of a borrowed one.
  static Error copy_of(const rille_error* error) {
    return Error(rille_error_kind(error), rille_error_message(error), rille_error_hint(error));
  }

 private:
  void remember() {
    const std::string hint = rille_error_hint(error_.get());
    what_ = std::make_shared<std::string>(rille_error_message(error_.get()) + (hint.empty() ? "" : "\nhint: " + hint));
  }
  std::shared_ptr<rille_error> error_;
  std::shared_ptr<std::string> what_;
};

inline void check(rille_error* error) {
  if (error) throw Error(error);
}

namespace detail {

template <class T, void (*free)(T*)>
struct Free {
  void operator()(T* object) const { free(object); }
};
template <class T, void (*free)(T*)>
using Owned = std::unique_ptr<T, Free<T, free>>;

inline std::string taken(char* text) {
  std::unique_ptr<char, decltype(&rille_free)> owned(text, &rille_free);
  return text ? std::string(text) : std::string();
}

}  // namespace detail

class Value;
using List = std::vector<Value>;
using Fields = std::map<std::string, Value>;

// Memory shared between the program and scripts: a buffer or a tensor of the CPU. Copies share the same memory.
class Memory {
 public:
  Memory() = default;
  // The program's memory, without a copy. `release` is called once when neither side uses it any more.
  static Memory buffer(rille_runtime* runtime, void* data, std::size_t size, std::function<void()> release = {}) {
    auto* owned = new std::function<void()>(std::move(release));
    rille_handle handle = 0;
    rille_error* error = rille_buffer_wrap(runtime, data, size, &released, owned, &handle);
    if (error) delete owned;
    check(error);
    return Memory(runtime, handle);
  }
  static Memory tensor(rille_runtime* runtime, void* data, const char* dtype, const std::vector<std::int64_t>& shape,
                       std::function<void()> release = {}) {
    auto* owned = new std::function<void()>(std::move(release));
    rille_handle handle = 0;
    rille_error* error = rille_tensor_wrap(runtime, data, dtype, shape.data(), shape.size(), &released, owned, &handle);
    if (error) delete owned;
    check(error);
    return Memory(runtime, handle);
  }
  // Holds a borrowed handle until the last copy of this object is destroyed.
  static Memory held(rille_runtime* runtime, rille_handle handle) {
    check(rille_handle_hold(runtime, handle));
    return Memory(runtime, handle);
  }

  explicit operator bool() const { return shared_ != nullptr; }
  rille_handle handle() const { return shared_ ? shared_->handle : 0; }
  // Address, size, and for a tensor its dtype and shape; computes a tensor first.
  rille_view view() const {
    rille_view view{};
    view.struct_size = sizeof view;
    if (!shared_) throw Error(RILLE_STATE, "this Memory is empty");
    check(rille_handle_view(shared_->runtime, shared_->handle, &view));
    return view;
  }
  template <class T>
  T* data() const {
    return static_cast<T*>(view().data);
  }

 private:
  struct Shared {
    rille_runtime* runtime;
    rille_handle handle;
    ~Shared() { rille_handle_drop(runtime, handle); }
  };
  static void released(void*, void* payload) {
    const std::unique_ptr<std::function<void()>> owned(static_cast<std::function<void()>*>(payload));
    if (*owned) (*owned)();
  }
  Memory(rille_runtime* runtime, rille_handle handle) : shared_(new Shared{runtime, handle}) {}
  std::shared_ptr<Shared> shared_;
};

// A function of a script. Copies share one function, which the last copy drops.
class Function {
 public:
  Function() = default;
  // `keep` (the function's script) lives as long as this function.
  Function(rille_runtime* runtime, rille_script_function owned, std::shared_ptr<void> keep = {})
      : shared_(new Shared{runtime, owned, std::move(keep)}) {}
  static Function held(rille_runtime* runtime, rille_script_function function) {
    check(rille_script_function_hold(runtime, function));
    return Function(runtime, function);
  }
  explicit operator bool() const { return shared_ != nullptr; }
  rille_script_function get() const { return shared_ ? shared_->function : 0; }

  // Calls the function and waits for its end; the function itself cannot wait. Returns its first result.
  template <class... Arguments>
  Value operator()(Arguments&&... arguments) const;
  // Returns `results` values.
  List call(const List& arguments, std::size_t results) const;
  // Calls the function in a fiber of its own, which may wait. `done` is called in the turn in which the fiber has
  // ended, with a null pointer or the error. Returns the number for Script::cancel.
  std::uint64_t begin(const List& arguments, std::function<void(std::exception_ptr, List)> done) const;

 private:
  struct Shared {
    rille_runtime* runtime;
    rille_script_function function;
    std::shared_ptr<void> keep;
    ~Shared() { rille_script_function_drop(runtime, function); }
  };
  std::shared_ptr<Shared> shared_;
};

// nil, a boolean, a number, a string of any bytes, a table, memory, or a function.
class Value {
 public:
  struct Table;
  Value() = default;
  Value(std::nullptr_t) {}     // NOLINT: implicit, so that literals convert
  Value(bool b) : data_(b) {}  // NOLINT
  template <class T, std::enable_if_t<std::is_arithmetic_v<T> && !std::is_same_v<T, bool>, int> = 0>
  Value(T n) {  // NOLINT
    if constexpr (std::is_integral_v<T>) data_ = static_cast<std::int64_t>(n);
    else data_ = static_cast<double>(n);
  }
  Value(std::string s) : data_(std::make_shared<std::string>(std::move(s))) {}  // NOLINT
  Value(std::string_view s) : Value(std::string(s)) {}                          // NOLINT
  Value(const char* s) : Value(std::string(s)) {}                               // NOLINT
  Value(List items);                                                            // NOLINT
  Value(Fields fields);                                                         // NOLINT
  Value(Memory m) : data_(std::move(m)) {}                                      // NOLINT
  Value(Function f) : data_(std::move(f)) {}                                    // NOLINT

  bool is_nil() const { return data_.index() == 0; }
  explicit operator bool() const { return !is_nil() && !(data_.index() == 1 && !std::get<bool>(data_)); }
  bool boolean() const { return get<bool>("a boolean"); }
  double number() const {
    if (const auto* whole = std::get_if<std::int64_t>(&data_)) return static_cast<double>(*whole);
    return get<double>("a number");
  }
  const std::string& text() const { return *get<std::shared_ptr<std::string>>("a string"); }
  const Memory& memory() const { return get<Memory>("a buffer or a tensor"); }
  const Function& function() const { return get<Function>("a function"); }
  const List& items() const;                               // t[1] .. t[n]
  const Fields& fields() const;                            // t.name
  const Value& operator[](std::size_t index) const;        // counts from 0; nil beyond the end
  const Value& operator[](const std::string& name) const;  // nil if there is no such field

  // Copies a borrowed value: bytes are copied, handles and functions held.
  static Value from(rille_runtime* runtime, const rille_value& value);
  // The result borrows from this object and from `space`, which must outlive it.
  struct Space {
    std::deque<std::vector<rille_value>> items;
    std::deque<std::vector<rille_field>> fields;
    std::deque<rille_table> tables;
  };
  rille_value lend(Space& space) const;

 private:
  template <class T>
  const T& get(const char* wanted) const {
    if (const T* found = std::get_if<T>(&data_)) return *found;
    throw Error(RILLE_INVALID, std::string("expected ") + wanted + ", got " + kind_name());
  }
  const char* kind_name() const {
    static const char* const names[] = {"nil",      "a boolean", "a number", "a number",
                                        "a string", "a table",   "memory",   "a function"};
    return names[data_.index()];
  }
  std::variant<std::monostate, bool, double, std::int64_t, std::shared_ptr<std::string>, std::shared_ptr<Table>, Memory,
               Function>
      data_;
};

struct Value::Table {
  List items;
  Fields fields;
};

inline Value::Value(List items) : data_(std::make_shared<Table>(Table{std::move(items), {}})) {}
inline Value::Value(Fields fields) : data_(std::make_shared<Table>(Table{{}, std::move(fields)})) {}
inline const List& Value::items() const { return get<std::shared_ptr<Table>>("a table")->items; }
inline const Fields& Value::fields() const { return get<std::shared_ptr<Table>>("a table")->fields; }

inline const Value& Value::operator[](std::size_t index) const {
  static const Value nil;
  return index < items().size() ? items()[index] : nil;
}

inline const Value& Value::operator[](const std::string& name) const {
  static const Value nil;
  const auto found = fields().find(name);
  return found == fields().end() ? nil : found->second;
}

inline Value Value::from(rille_runtime* runtime, const rille_value& value) {
  switch (value.kind) {
    case RILLE_VALUE_BOOL: return value.as.boolean != 0;
    case RILLE_VALUE_NUMBER: return value.as.number;
    case RILLE_VALUE_INTEGER: return value.as.integer;
    case RILLE_VALUE_BYTES: return std::string(value.as.bytes.data, value.as.bytes.size);
    case RILLE_VALUE_HANDLE: return Memory::held(runtime, value.as.handle);
    case RILLE_VALUE_FUNCTION: return Function::held(runtime, value.as.function);
    case RILLE_VALUE_TABLE: {
      auto table = std::make_shared<Table>();
      for (std::size_t i = 0; i < value.as.table->item_count; ++i)
        table->items.push_back(from(runtime, value.as.table->items[i]));
      for (std::size_t i = 0; i < value.as.table->field_count; ++i) {
        const rille_field& field = value.as.table->fields[i];
        table->fields.emplace(std::string(field.name, field.name_size), from(runtime, field.value));
      }
      Value out;
      out.data_ = std::move(table);
      return out;
    }
    default: return nullptr;
  }
}

inline rille_value Value::lend(Space& space) const {
  rille_value out{};
  out.kind = RILLE_VALUE_NIL;
  if (const auto* b = std::get_if<bool>(&data_)) {
    out.kind = RILLE_VALUE_BOOL, out.as.boolean = *b;
  } else if (const auto* n = std::get_if<double>(&data_)) {
    out.kind = RILLE_VALUE_NUMBER, out.as.number = *n;
  } else if (const auto* whole = std::get_if<std::int64_t>(&data_)) {
    out.kind = RILLE_VALUE_INTEGER, out.as.integer = *whole;
  } else if (const auto* text = std::get_if<std::shared_ptr<std::string>>(&data_)) {
    out.kind = RILLE_VALUE_BYTES, out.as.bytes.data = (*text)->data(), out.as.bytes.size = (*text)->size();
  } else if (const auto* memory = std::get_if<Memory>(&data_)) {
    out.kind = RILLE_VALUE_HANDLE, out.as.handle = memory->handle();
  } else if (const auto* function = std::get_if<Function>(&data_)) {
    out.kind = RILLE_VALUE_FUNCTION, out.as.function = function->get();
  } else if (const auto* table = std::get_if<std::shared_ptr<Table>>(&data_)) {
    std::vector<rille_value> items;
    for (const Value& item : (*table)->items) items.push_back(item.lend(space));
    std::vector<rille_field> fields;
    for (const auto& [name, value] : (*table)->fields) fields.push_back({name.data(), name.size(), value.lend(space)});
    const auto& kept_items = space.items.emplace_back(std::move(items));
    const auto& kept_fields = space.fields.emplace_back(std::move(fields));
    space.tables.push_back({kept_items.data(), kept_items.size(), kept_fields.data(), kept_fields.size()});
    out.kind = RILLE_VALUE_TABLE, out.as.table = &space.tables.back();
  }
  return out;
}

namespace detail {

inline std::vector<rille_value> lent(const List& values, Value::Space& space) {
  std::vector<rille_value> out;
  out.reserve(values.size());
  for (const Value& v : values) out.push_back(v.lend(space));
  return out;
}

inline List taken(rille_runtime* runtime, const rille_value* values, std::size_t count) {
  List out;
  out.reserve(count);
  for (std::size_t i = 0; i < count; ++i) out.push_back(Value::from(runtime, values[i]));
  return out;
}

}  // namespace detail

inline List Function::call(const List& arguments, std::size_t results) const {
  if (!shared_) throw Error(RILLE_STATE, "this Function is empty");
  Value::Space space;
  const std::vector<rille_value> lent = detail::lent(arguments, space);
  std::vector<rille_value> got(results);
  check(rille_script_call(shared_->runtime, shared_->function, lent.data(), lent.size(), got.data(), results));
  return detail::taken(shared_->runtime, got.data(), results);
}

template <class... Arguments>
Value Function::operator()(Arguments&&... arguments) const {
  return std::move(call(List{Value(std::forward<Arguments>(arguments))...}, 1)[0]);
}

inline std::uint64_t Function::begin(const List& arguments, std::function<void(std::exception_ptr, List)> done) const {
  if (!shared_) throw Error(RILLE_STATE, "this Function is empty");
  struct Waiting {
    rille_runtime* runtime;
    std::function<void(std::exception_ptr, List)> done;
  };
  auto waiting = std::make_unique<Waiting>(Waiting{shared_->runtime, std::move(done)});
  Value::Space space;
  const std::vector<rille_value> lent = detail::lent(arguments, space);
  std::uint64_t number = 0;
  const auto ended = [](const rille_error* error, const rille_value* values, std::size_t count, void* payload) {
    const std::unique_ptr<Waiting> w(static_cast<Waiting*>(payload));
    if (!w->done) return;
    if (error) w->done(std::make_exception_ptr(Error::copy_of(error)), {});
    else w->done(nullptr, detail::taken(w->runtime, values, count));
  };
  check(
      rille_script_begin(shared_->runtime, shared_->function, lent.data(), lent.size(), ended, waiting.get(), &number));
  waiting.release();  // `ended` frees it
  return number;
}

}  // namespace cpp
}  // namespace rille
