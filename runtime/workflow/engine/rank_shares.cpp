#include "runtime/workflow/engine/rank_shares.hpp"

#include <algorithm>

namespace rille::engine {

void SharesTold::note(const std::string& lease, const std::shared_ptr<agent::AgentClient>& agent,
                      const Value& published) {
  const Value& share = published["share"];
  const Place place(share.text("training"), share.integer("rank", -1));
  const std::string directory = share.text("directory");
  const std::int64_t world = share.integer("world");
  const std::size_t end = directory.rfind('/');
  if (place.first.empty() || place.second < 0 || place.second >= world || world > ranks_max || end == std::string::npos)
    return;
  std::deque<Place>& told = told_[lease];
  if (std::find(told.begin(), told.end(), place) == told.end()) told.push_back(place);
  shares_[place] = {agent, directory.substr(0, end), lease};
  if (told.size() <= shares_of_lease_max) return;
  const auto oldest = shares_.find(told.front());
  if (oldest != shares_.end() && oldest->second.lease == lease) shares_.erase(oldest);
  told.pop_front();
}

const RankShares* SharesTold::find(const std::string& training, std::int64_t rank) const {
  const auto found = shares_.find({training, rank});
  return found == shares_.end() ? nullptr : &found->second;
}

}  // namespace rille::engine
