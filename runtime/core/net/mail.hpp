// Sends one e-mail by SMTP (RFC 5321), through libcurl. The user configures the server. TLS is always verified; without
// TLS only a server on this machine is used, and never with a password. Loop thread only.
// Errors: invalid for a malformed address or URL; auth, network and timeout. An error is retryable unless the server
// refused permanently (5xx).
#pragma once

#include <string>
#include <vector>

#include "runtime/core/loop/loop.hpp"

namespace rille::net {

struct MailServer {
  MailServer() = default;  // makes MailServer no aggregate, because of the GCC bug in loop/task.hpp
  std::string url;         // such as smtps://mail.example.org or smtp://user:password@host:587; "": no server
  std::string from;        // sender's address; "": the first recipient
  std::string ca_file;     // CA file, as in HttpOptions
};

struct Mail {
  Mail() = default;
  std::vector<std::string> to;
  std::string subject, text;  // UTF-8 text
  std::string id;             // the Message-ID; a repeated mail has an equal id, so that copies can be recognised
};

// Reads the addresses in a URL such as "mailto:a@example.org,b@example.org".
Result<std::vector<std::string>> read_mailto(const std::string& url);
Async<> send_mail(Loop& loop, MailServer server, Mail mail, CancelToken token = {});

}  // namespace rille::net
