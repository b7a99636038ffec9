// One e-mail by SMTP (RFC 5321), through libcurl. The user names the server. TLS is always verified; without TLS only a
// server on this machine is used, and never with a password. Loop thread only.
// Errors: invalid for a malformed address or URL; auth, network and timeout as they occur; retryable unless the server
// refused permanently (5xx).
#pragma once

#include <string>
#include <vector>

#include "runtime/core/loop/loop.hpp"

namespace rille::net {

struct MailServer {
  MailServer() = default;  // not an aggregate: see loop/task.hpp
  std::string url;         // smtps://mail.example.org, smtp://user:password@host:587; "": none
  std::string from;        // "": the first recipient
  std::string ca_file;     // as in HttpOptions
};

struct Mail {
  Mail() = default;
  std::vector<std::string> to;
  std::string subject, text;  // UTF-8
  std::string id;             // Message-ID: the same for a repeated mail, so that copies can be recognised
};

// "mailto:a@example.org,b@example.org".
Result<std::vector<std::string>> read_mailto(const std::string& url);
Async<> send_mail(Loop& loop, MailServer server, Mail mail, CancelToken token = {});

}  // namespace rille::net
