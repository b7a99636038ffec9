// Objects: C++ values in userdata, one class per C++ type. Type checks compare metatables (12 ns). Reading an unknown
// method or field raises with "did you mean". Each object gets a creation number, so that tables keyed by objects
// iterate in the order of creation.
//
//   static const char* class_name... :
//   define_class<Handle>(L, {.name = "Fiber", .methods = {{"wait", bind<wait>}}, .field = field});
//   push_object(L, Handle{...});    Handle& h = check_object<Handle>(L, 1, "handle");
//
// The finalizer runs ~T on the loop thread, inside the garbage collector: it must not wait or call Lua.
#pragma once

#include <new>
#include <utility>
#include <vector>

#include "bindings/host/lua.hpp"
#include "runtime/core/base/value.hpp"

namespace rille::host {

struct ClassSpec {
  const char* name;  // class name, such as "Instance"
  std::vector<Function> methods;
  std::vector<Function> async_methods;  // methods that may wait; set_async wraps them
  std::vector<Function> metamethods;    // such as __tostring or __add; not __index, __gc, __metatable
  // Pushes the field `key` of the object at index 1 and returns true; returns false if there is no such field. Null:
  // the class has no fields.
  bool (*field)(lua_State* L, std::string_view key) = nullptr;
  // Handles object[key] for a key at index 2 that is not a string, and pushes one result. Null: the class has no
  // elements.
  lua_CFunction element = nullptr;
  std::vector<const char*> fields;  // names of the fields, for "did you mean" and completion
  // Turns the object at `index` into data for args, journal and agents. Null: the class cannot be serialized.
  Result<Value> (*encode)(lua_State* L, int index) = nullptr;
};

namespace detail {
struct ObjectHeader {
  std::uint64_t number;
};
constexpr std::size_t object_offset(std::size_t align) { return (sizeof(ObjectHeader) + align - 1) / align * align; }
template <class T>
inline char class_key = 0;
void define_class(lua_State* L, const void* key, const ClassSpec& spec, lua_CFunction gc);
void define_later(lua_State* L, const void* key, lua_CFunction define);
void* new_object(lua_State* L, const void* key, std::size_t size);  // pushes the new object, without a metatable
void finish_object(lua_State* L, const void* key);  // sets the metatable of the object on top of the stack
// null if the value at `index` is not an object of this class
void* test_object(lua_State* L, int index, const void* key);
[[noreturn]] void wrong_object(lua_State* L, int index, const void* key, const char* what);
}  // namespace detail

// The methods and fields of the object at `index`; empty if the value is not one of Rille's objects.
std::vector<std::string> object_names(lua_State* L, int index);

template <class T>
void define_class(lua_State* L, const ClassSpec& spec) {
  detail::define_class(L, &detail::class_key<T>, spec, [](lua_State* l) -> int {
    auto* p = static_cast<char*>(lua_touserdata(l, 1));
    std::launder(reinterpret_cast<T*>(p + detail::object_offset(alignof(T))))->~T();
    return 0;
  });
}

// For a class with many methods: `define`, which calls define_class<T>, is called when the first object is made.
template <class T>
void define_class_later(lua_State* L, lua_CFunction define) {
  detail::define_later(L, &detail::class_key<T>, define);
}

template <class T>
T& push_object(lua_State* L, T value) {
  static_assert(alignof(T) <= 16);
  void* p = detail::new_object(L, &detail::class_key<T>, detail::object_offset(alignof(T)) + sizeof(T));
  T* object = new (static_cast<char*>(p) + detail::object_offset(alignof(T))) T(std::move(value));
  detail::finish_object(L, &detail::class_key<T>);  // once this returns, the garbage collector may call ~T
  return *object;
}

template <class T>
T* test_object(lua_State* L, int index) {
  auto* p = static_cast<char*>(detail::test_object(L, index, &detail::class_key<T>));
  return p ? std::launder(reinterpret_cast<T*>(p + detail::object_offset(alignof(T)))) : nullptr;
}

template <class T>
T& check_object(lua_State* L, int index, const char* what) {
  if (T* object = test_object<T>(L, index)) return *object;
  detail::wrong_object(L, index, &detail::class_key<T>, what);
}

// The creation number of the object at `index`; empty if the value is not one of Rille's objects.
std::optional<std::uint64_t> object_number(lua_State* L, int index);

}  // namespace rille::host
