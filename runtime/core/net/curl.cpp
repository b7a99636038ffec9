#include "runtime/core/net/curl.hpp"

#include <dlfcn.h>

namespace rille::net {

namespace {

struct Library {
  Curl curl{};
  Result<> loaded;

  Library() {
    void* handle = dlopen("libcurl.so.4", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!handle) {
      missing(dlerror());
      return;
    }
    auto find = [&](auto& function, const char* name) {
      function = reinterpret_cast<std::decay_t<decltype(function)>>(dlsym(handle, name));
      if (!function && loaded) missing(std::string("it has no ") + name);
    };
    find(curl.easy_cleanup, "curl_easy_cleanup");
    find(curl.easy_getinfo, "curl_easy_getinfo");
    find(curl.easy_init, "curl_easy_init");
    find(curl.easy_pause, "curl_easy_pause");
    find(curl.easy_setopt, "curl_easy_setopt");
    find(curl.easy_strerror, "curl_easy_strerror");
    find(curl.free, "curl_free");
    find(curl.getdate, "curl_getdate");
    find(curl.global_init, "curl_global_init");
    find(curl.multi_add_handle, "curl_multi_add_handle");
    find(curl.multi_assign, "curl_multi_assign");
    find(curl.multi_cleanup, "curl_multi_cleanup");
    find(curl.multi_info_read, "curl_multi_info_read");
    find(curl.multi_init, "curl_multi_init");
    find(curl.multi_remove_handle, "curl_multi_remove_handle");
    find(curl.multi_setopt, "curl_multi_setopt");
    find(curl.multi_socket_action, "curl_multi_socket_action");
    find(curl.multi_strerror, "curl_multi_strerror");
    find(curl.slist_append, "curl_slist_append");
    find(curl.slist_free_all, "curl_slist_free_all");
    find(curl.url, "curl_url");
    find(curl.url_cleanup, "curl_url_cleanup");
    find(curl.url_get, "curl_url_get");
    find(curl.url_set, "curl_url_set");
    if (loaded) curl.global_init(CURL_GLOBAL_DEFAULT);
  }

  void missing(const std::string& why) {
    loaded = make_error(ErrorKind::config, "libcurl cannot be loaded: " + why,
                        "install it (Debian: libcurl4); everything but http and https works without it");
  }
};

const Library& library() {
  static const Library once;  // static, because libcurl's global state is initialized once per process
  return once;
}

}  // namespace

Result<> load_curl() { return library().loaded; }
const Curl& curl() { return library().curl; }

}  // namespace rille::net
