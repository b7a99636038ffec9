// libcurl, loaded at the first request: loading it also loads some thirty libraries, which takes half of the start-up
// time of `rille`, and most runs send no request. Types and constants come from curl.h; call the function curl_x as
// curl().x. Thread-safe.
#pragma once

#define CURL_DISABLE_TYPECHECK
#include <curl/curl.h>

#include "runtime/core/base/result.hpp"

namespace rille::net {

struct Curl {
  decltype(&::curl_easy_cleanup) easy_cleanup;
  decltype(&::curl_easy_getinfo) easy_getinfo;
  decltype(&::curl_easy_init) easy_init;
  decltype(&::curl_easy_pause) easy_pause;
  decltype(&::curl_easy_setopt) easy_setopt;
  decltype(&::curl_easy_strerror) easy_strerror;
  decltype(&::curl_free) free;
  decltype(&::curl_getdate) getdate;
  decltype(&::curl_global_init) global_init;
  decltype(&::curl_multi_add_handle) multi_add_handle;
  decltype(&::curl_multi_assign) multi_assign;
  decltype(&::curl_multi_cleanup) multi_cleanup;
  decltype(&::curl_multi_info_read) multi_info_read;
  decltype(&::curl_multi_init) multi_init;
  decltype(&::curl_multi_remove_handle) multi_remove_handle;
  decltype(&::curl_multi_setopt) multi_setopt;
  decltype(&::curl_multi_socket_action) multi_socket_action;
  decltype(&::curl_multi_strerror) multi_strerror;
  decltype(&::curl_slist_append) slist_append;
  decltype(&::curl_slist_free_all) slist_free_all;
  decltype(&::curl_url) url;
  decltype(&::curl_url_cleanup) url_cleanup;
  decltype(&::curl_url_get) url_get;
  decltype(&::curl_url_set) url_set;
};

// Error `config`: libcurl.so.4 is missing, or lacks a function.
Result<> load_curl();
// The functions of libcurl. Call it only after load_curl has succeeded.
const Curl& curl();

}  // namespace rille::net
