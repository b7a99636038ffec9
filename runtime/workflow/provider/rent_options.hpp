// What a rent says to one provider alone: which of its reservations the machine comes out of, by which priority it
// waits in its queue. A driver names those that it understands in its row (manner.hpp) and finds them in
// CreateRequest::extra; they come before its settings, and are journaled and sent again with the request.
// Pure functions; any thread.
#pragma once

#include <string>
#include <vector>

#include "runtime/workflow/provider/types.hpp"

namespace rille::provider {

const std::vector<std::string>& rent_options();  // their names

// memory = "32GB", disk = "200GB". invalid: a number or a text without a unit, which would be bytes; none, or less.
Result<std::int64_t> read_size(const char* name, const Value& said);

// Of a rent's options those, as a create call carries them; null: none is said. invalid: one that is no text, or for
// spot machines where it cannot be; the query does not name the one provider that it is meant for; that one has no such
// thing (is_lack).
Result<Value> read_rent_options(const Value& options, const OfferQuery& query);

// What else stands there, for whoever understands it: the name that the members of a cluster have in common, who may
// talk to each other at all ports ("": it is alone); and that Offer::rdma was asked for, and is to be switched on.
void tell_cluster(Value& extra, const std::string& name);
void tell_rdma(Value& extra);
std::string cluster_in(const CreateRequest& request);
bool wants_rdma(const CreateRequest& request);
// That the rent names, else that of the settings.
std::string image_in(const CreateRequest& request, const std::string& of_settings);

}  // namespace rille::provider
