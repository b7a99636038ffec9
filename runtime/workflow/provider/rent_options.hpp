// Options of a rent for one provider: the reservation to use, the priority in its queue. A driver lists the options
// that it supports in its Manner (manner.hpp) and reads them from CreateRequest::extra. They override its settings, and
// are journaled and repeated with the request. Pure functions; any thread.
#pragma once

#include <string>
#include <vector>

#include "runtime/workflow/provider/types.hpp"

namespace rille::provider {

const std::vector<std::string>& rent_options();  // the names

// memory = "32GB", disk = "200GB". invalid: no unit (a bare number would mean bytes), zero, or negative.
Result<std::int64_t> read_size(const char* name, const Value& said);

// These options of a rent, in the form of CreateRequest::extra; null: none. invalid: not a string; not allowed for spot
// machines; the query does not name exactly one provider; the provider does not support it (is_lack).
Result<Value> read_rent_options(const Value& options, const OfferQuery& query);

// Further entries of CreateRequest::extra: the name of the cluster, whose members may reach each other on all ports
// ("": no cluster); and whether Offer::rdma was requested and must be enabled.
void tell_cluster(Value& extra, const std::string& name);
void tell_rdma(Value& extra);
std::string cluster_in(const CreateRequest& request);
bool wants_rdma(const CreateRequest& request);
// The rent's image, else that of the settings.
std::string image_in(const CreateRequest& request, const std::string& of_settings);

}  // namespace rille::provider
