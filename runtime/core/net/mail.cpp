#include "runtime/core/net/mail.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>

#include "runtime/core/base/base64.hpp"
#include "runtime/core/net/curl_multi.hpp"
#include "runtime/core/net/loopback.hpp"
#include "runtime/core/net/redact.hpp"

namespace rille::net {

namespace {

constexpr long total_timeout_ms = 60'000;

// Checks only that the address cannot break SMTP commands or headers; the server checks whether it exists.
bool is_address(const std::string& text) {
  std::size_t at = text.find('@');
  return at != std::string::npos && at > 0 && at + 1 < text.size() && text.find('@', at + 1) == std::string::npos &&
         std::all_of(text.begin(), text.end(), [](unsigned char c) {
           return c > 0x20 && c != 0x7f && c != '<' && c != '>' && c != ',' && c != ';' && c != '"' && c != '\\';
         });
}

Error not_an_address(const std::string& text) {
  return make_error(ErrorKind::invalid, fmt::format("'{}' is not an e-mail address", text),
                    "write an address such as mailto:me@example.org");
}

bool is_ascii(const std::string& text) {
  return std::all_of(text.begin(), text.end(), [](unsigned char c) { return c >= 0x20 && c < 0x7f; });
}

// Encodes a header as RFC 2047 wants: an encoded word has at most 75 characters and does not split a UTF-8 character.
std::string header_text(const std::string& text) {
  if (is_ascii(text)) return text;
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = std::min(at + 42, text.size());
    while (end > at && end < text.size() && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
    out += (out.empty() ? "=?UTF-8?B?" : "\r\n =?UTF-8?B?") + to_base64(text.substr(at, end - at)) + "?=";
    at = end;
  }
  return out;
}

std::string date(std::int64_t wall_us) {
  auto seconds = static_cast<std::time_t>(wall_us / 1'000'000);
  std::tm t{};
  gmtime_r(&seconds, &t);
  constexpr const char* days[] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
  constexpr const char* months[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  return fmt::format("{}, {:02} {} {} {:02}:{:02}:{:02} +0000", days[t.tm_wday], t.tm_mday, months[t.tm_mon],
                     t.tm_year + 1900, t.tm_hour, t.tm_min, t.tm_sec);
}

std::string one_line(std::string text) {
  for (char& c : text)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = ' ';
  return text;
}

std::string compose(const Mail& mail, const std::string& from, std::int64_t wall_us) {
  std::string to;
  for (const std::string& address : mail.to) to += (to.empty() ? "" : ", ") + address;
  std::string out = fmt::format(
      "Date: {}\r\nFrom: Rille <{}>\r\nTo: {}\r\nSubject: {}\r\nMessage-ID: <{}@rille>\r\nMIME-Version: 1.0\r\n"
      "Content-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: 8bit\r\nAuto-Submitted: auto-generated\r\n"
      "\r\n",
      date(wall_us), from, to, header_text(one_line(mail.subject)), one_line(mail.id));
  for (std::size_t at = 0; at < mail.text.size();) {  // no dot-stuffing of lines: libcurl does it
    std::size_t end = std::min(mail.text.find('\n', at), mail.text.size());
    out += mail.text.substr(at, end - at) + "\r\n";
    at = end + 1;
  }
  return out;
}

std::string url_part(const std::string& url, CURLUPart part) {
  std::unique_ptr<CURLU, void (*)(CURLU*)> handle(curl().url(), curl().url_cleanup);
  char* text = nullptr;
  if (curl().url_set(handle.get(), CURLUPART_URL, url.c_str(), 0) != CURLUE_OK ||
      curl().url_get(handle.get(), part, &text, 0) != CURLUE_OK)
    return {};
  std::string copy = text;
  curl().free(text);
  return copy;
}

// Checks the URL of the mail server before anything is sent.
Result<> check_server(const MailServer& server) {
  if (server.url.empty())
    return make_error(ErrorKind::config, "no mail server is configured",
                      "set RILLE_SMTP_URL, e.g. smtps://user:password@mail.example.org");
  bool plain = server.url.starts_with("smtp://"), known = plain || server.url.starts_with("smtps://");
  if (!known || url_part(server.url, CURLUPART_HOST).empty())
    return make_error(ErrorKind::invalid,
                      fmt::format("'{}' is not the address of a mail server", redact_url(server.url)),
                      "write smtps://mail.example.org, or smtp://mail.example.org:587");
  return {};
}

class Sending final : public CurlExchange {
 public:
  Sending(Loop& loop, const MailServer& server, const Mail& mail)
      : multi_(loop, 1, 1), server_(server), easy_(curl().easy_init()), done_(loop) {
    std::string from = server.from.empty() ? mail.to.front() : server.from;
    text_ = compose(mail, from, loop.clock().wall_us());
    auto set = [this](CURLoption option, auto value) { curl().easy_setopt(easy_, option, value); };
    set_safely(easy_, server.ca_file);
    set(CURLOPT_URL, server.url.c_str());
    set(CURLOPT_PROTOCOLS_STR, "smtp,smtps");
    set(CURLOPT_PROXY, "");
    set(CURLOPT_ERRORBUFFER, words_);
    set(CURLOPT_CONNECTTIMEOUT_MS, 15'000L);
    set(CURLOPT_TIMEOUT_MS, total_timeout_ms);
    bool local = is_loopback_host(url_part(server.url, CURLUPART_HOST));
    bool password = !url_part(server.url, CURLUPART_PASSWORD).empty();
    set(CURLOPT_USE_SSL, static_cast<long>(local && !password ? CURLUSESSL_NONE : CURLUSESSL_ALL));
    set(CURLOPT_MAIL_FROM, ("<" + from + ">").c_str());
    for (const std::string& to : mail.to) rcpt_ = curl().slist_append(rcpt_, ("<" + to + ">").c_str());
    set(CURLOPT_MAIL_RCPT, rcpt_);
    set(CURLOPT_UPLOAD, 1L);
    set(CURLOPT_READDATA, static_cast<void*>(this));
    set(
        CURLOPT_READFUNCTION, +[](char* p, std::size_t size, std::size_t n, void* self) -> std::size_t {
          auto* me = static_cast<Sending*>(self);
          std::size_t part = me->text_.copy(p, size * n, me->sent_);
          me->sent_ += part;
          return part;
        });
  }
  ~Sending() {
    if (added_) multi_.remove(easy_);
    NoSigpipe quiet;
    curl().easy_cleanup(easy_);
    curl().slist_free_all(rcpt_);
  }
  Sending(const Sending&) = delete;

  Async<> run(CancelToken token) {
    if (CURLMcode rc = multi_.add(easy_, *this); rc != CURLM_OK)
      co_return make_error(ErrorKind::internal, curl().multi_strerror(rc));
    added_ = true;
    std::optional<Error> stopped;
    auto registration = token.on_cancel([&](const Error& why) {
      stopped = why;
      done_.set(true);
    });
    co_await done_;
    if (stopped) co_return *stopped;
    if (code_ == CURLE_OK) co_return success();
    co_return error();
  }
  void finished(CURLcode code) override {
    code_ = code;
    done_.set(true);
  }

 private:
  Error error() {
    long status = 0;
    curl().easy_getinfo(easy_, CURLINFO_RESPONSE_CODE, &status);
    ErrorKind kind = code_ == CURLE_OPERATION_TIMEDOUT ? ErrorKind::timeout
                     : code_ == CURLE_LOGIN_DENIED     ? ErrorKind::auth
                                                       : ErrorKind::network;
    Error e = make_error(
        kind, fmt::format("mail by {}: {}", redact_url(server_.url), *words_ ? words_ : curl().easy_strerror(code_)));
    if (code_ == CURLE_USE_SSL_FAILED)
      e.hint = "the server offers no TLS: mail without TLS is sent only to a server on this machine";
    if (code_ == CURLE_LOGIN_DENIED) e.hint = "check the user and password in RILLE_SMTP_URL";
    e.operation = "smtp";
    e.code = fmt::format("curl {}", static_cast<int>(code_));
    e.retryable = !(status >= 500 && status < 600) && code_ != CURLE_USE_SSL_FAILED && code_ != CURLE_LOGIN_DENIED;
    return e;
  }

  CurlMulti multi_;
  const MailServer& server_;
  CURL* easy_;
  Future<bool> done_;
  std::string text_;
  std::size_t sent_ = 0;
  curl_slist* rcpt_ = nullptr;
  CURLcode code_ = CURLE_OK;
  bool added_ = false;
  char words_[CURL_ERROR_SIZE] = {};
};

}  // namespace

Result<std::vector<std::string>> read_mailto(const std::string& url) {
  std::string list = url.substr(url.starts_with("mailto:") ? 7 : 0);
  std::vector<std::string> out;
  for (std::size_t at = 0; at <= list.size();) {
    std::size_t end = std::min(list.find(',', at), list.size());
    std::string one = list.substr(at, end - at);
    if (!is_address(one)) return not_an_address(one);
    out.push_back(std::move(one));
    at = end + 1;
  }
  return out;
}

Async<> send_mail(Loop& loop, MailServer server, Mail mail, CancelToken token) {
  if (mail.to.empty()) co_return not_an_address("");
  for (const std::string& to : mail.to)
    if (!is_address(to)) co_return not_an_address(to);
  if (!server.from.empty() && !is_address(server.from)) co_return not_an_address(server.from);
  RILLE_CO_CHECK(load_curl());
  RILLE_CO_CHECK(check_server(server));
  if (token.cancelled()) co_return token.reason();
  Sending sending(loop, server, mail);
  co_return co_await sending.run(token);
}

}  // namespace rille::net
