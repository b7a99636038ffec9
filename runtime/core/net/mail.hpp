// One e-mail by SMTP (RFC 5321), through libcurl. The server is the user's own: TLS is verified always; without TLS
// only a server on this machine is spoken to, and never with a password. Loop thread only.
// Errors: invalid names the address or URL that is none; auth, network, timeout as the server or the way to it has it;
// retryable unless the server said no for good (5xx).
#pragma once

#include <string>
#include <vector>

#include "runtime/core/loop/loop.hpp"

namespace rille::net {

struct MailServer {
  MailServer() = default;  // not an aggregate: see loop/task.hpp
  std::string url;         // smtps://mail.example.org, smtp://user:password@host:587; "": there is none
  std::string from;        // "": the first that it goes to
  std::string ca_file;     // as HttpOptions has it
};

struct Mail {
  Mail() = default;
  std::vector<std::string> to;
  std::string subject, text;  // UTF-8
  std::string id;             // the same for the same mail, so that a second copy can be known as one
};

// "mailto:a@example.org,b@example.org".
Result<std::vector<std::string>> read_mailto(const std::string& url);
Async<> send_mail(Loop& loop, MailServer server, Mail mail, CancelToken token = {});

}  // namespace rille::net
