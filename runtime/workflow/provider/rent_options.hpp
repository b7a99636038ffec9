// Options of a rent for one provider: the reservation to use, the priority in its queue. A driver lists the options
// that it supports in its Manner (manner.hpp) and reads them from CreateRequest::extra. These options override the
// provider's settings, and are journaled with the request. Pure functions; any thread.
#pragma once

#include <string>
#include <vector>

#include "runtime/workflow/provider/types.hpp"

namespace rille::provider {

const std::vector<std::string>& rent_options();  // the names of all these options

// Reads memory = "32GB" or disk = "200GB" as bytes. Error invalid: no unit (a bare number would mean bytes), zero, or
// negative.
Result<std::int64_t> read_size(const char* name, const Value& said);

// Reads the options named by rent_options(), in the form of CreateRequest::extra; null: none given. Error invalid: an
// option is not a string, is not allowed for spot machines, or the query does not name exactly one provider, or the
// provider does not support the option (is_lack).
Result<Value> read_rent_options(const Value& options, const OfferQuery& query);

// Further entries of CreateRequest::extra: the name of the cluster, whose members may reach each other on all ports
// ("": no cluster); and whether Offer::rdma was requested and must be enabled.
void tell_cluster(Value& extra, const std::string& name);
void tell_rdma(Value& extra);
std::string cluster_in(const CreateRequest& request);
bool wants_rdma(const CreateRequest& request);
// The machine image that the rent names, else `of_settings`, the image from the settings.
std::string image_in(const CreateRequest& request, const std::string& of_settings);

}  // namespace rille::provider
