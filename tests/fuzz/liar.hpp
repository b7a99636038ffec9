// Liar: an agent that lies, on the test's own loop. It knows a small machine (two folders, three files, one call) and
// answers as an agent would, but for the lies of its seed: changed fields, lengths, ids and kinds, names that lead out,
// floods, silence. Frames and what they mean: runtime/workflow/agent/frame.hpp.
#pragma once

#include <functional>
#include <memory>
#include <set>

#include "runtime/core/loop/stream.hpp"
#include "runtime/workflow/agent/frame.hpp"
#include "tests/fuzz/sessions.hpp"

namespace sessions {

class Liar {
 public:
  // `escape`: an absolute path that no session may create. `hush`: called when a request may stay without an answer.
  Liar(rille::Loop& loop, Dice& dice, double rate, std::string escape, std::function<void()> hush);

  // Speaks on the two ends of a channel until the client hangs up.
  rille::Task<void> serve(int in, int out);

  bool told_error() const { return told_error_; }  // it has sent errors of any kind, which arrive unchanged
  // The first bytes that ended the protocol were no frame, or a frame that may not come there.
  bool broke_protocol() const { return broke_protocol_; }
  // The digests of all files that it has described: what a client accepts has one of them.
  const std::set<std::string>& digests() const { return digests_; }
  static const std::map<std::string, std::string>& files();  // what an honest machine has below "loot"

 private:
  using Frame = rille::agent::Frame;
  using Value = rille::Value;
  Value describe(const std::string& path, const std::string& content);
  Value listing_of() const;
  std::vector<Frame> answers_to(const Frame& request);
  static std::string honest(const Frame& frame);
  void change_field(Value& value);
  void change_listing(Value& value);
  void change(Frame& frame);
  std::string damaged(Frame frame);
  std::string flood();
  std::string words_for(const Frame& request);  // the bytes of an answer, lies included
  std::string greeting();
  void note(std::string_view sent);

  rille::Loop& loop_;
  Dice& dice_;
  const double rate_;
  std::vector<std::string> tempting_, texts_;  // names that lead out; what may stand in any field
  std::function<void()> hush_;
  bool told_error_ = false, hangs_up_ = false, broke_protocol_ = false;
  rille::agent::FrameParser sent_;  // reads what was sent, as the client has to
  bool said_hello_ = false, over_ = false;
  std::set<std::string> digests_;
};

}  // namespace sessions
