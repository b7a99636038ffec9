// Communicator: `world` ranks, each in a separate process or thread, that exchange and reduce tensors together.
//
// Every rank makes the same calls in the same order; at each call the ranks first compare what they are about to do.
// A call that differs, a lost rank or a missing rank is therefore an error at all ranks, within the time limit. After
// the first error the communicator is unusable: every later call returns that error.
//
// A reduction gives the same bits at every rank and in every run: inputs are added in the order of ranks; half
// precision types are added in f32 and rounded once at the end. The bits do not depend on message sizes or
// transports.
//
// Errors: invalid (a bad call, or a call that does not match another rank's), network (a lost rank), timeout,
// cancelled. Threads: create() and run() block; run() is called by one thread at a time, a graph's worker thread.
// stop() and hurry() may be called by any thread.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/compute/collective/operation.hpp"
#include "runtime/compute/collective/socket.hpp"
#include "runtime/compute/device/device.hpp"

namespace rille::device {
class CudaDevice;
}

namespace rille::collective {

struct Options {
  int rank = 0, world = 1;
  std::string address;                // "10.0.0.1:29500": where rank 0 listens; unused if `world` is 1
  std::string token;                  // shared secret of all ranks; required if other machines can reach the address
  std::int64_t timeout_ms = 300'000;  // limit for all ranks to connect, and for each call in which no data moves
  bool shared_memory = true;          // whether ranks on one machine exchange data through shared memory
  std::string build;                  // ranks must have equal build ids; "": this program's build id
  std::shared_ptr<Fd> listener;       // for rank 0: a socket that already listens at `address`; null: rank 0 opens one
};

class Mesh;
// Connects all ranks; at every rank `payload` becomes rank 0's value. `place` names the device in errors: "the CPU".
// Called by functions that create communicators.
Result<std::unique_ptr<Mesh>> meet_ranks(const Options& options, const std::string& place, std::string& payload,
                                         const std::shared_ptr<Stop>& stop);

class Communicator {
 public:
  // Creates a communicator for tensors on the CPU. Blocks until all ranks are connected.
  static Result<std::shared_ptr<Communicator>> create(const Options& options, std::shared_ptr<Stop> stop);
  // Creates a communicator for a CUDA device, based on NCCL (cuda_communicator.cpp): data goes from GPU to GPU, and
  // the device's stream, not the CPU thread, waits for the other ranks. Error device: NCCL is missing.
  static Result<std::shared_ptr<Communicator>> create_on(std::shared_ptr<device::CudaDevice> device,
                                                         const Options& options, std::shared_ptr<Stop> stop);
  virtual ~Communicator() = default;

  virtual int rank() const = 0;
  virtual int world() const = 0;
  // "shared memory", "tcp", "shared memory and tcp", "nccl", or "nothing" with one rank
  virtual std::string transport() const = 0;
  virtual std::string place() const = 0;  // the device: "cpu" or "cuda:0"
  // The host name or address under which rank 0 saw this rank connect; empty at rank 0.
  virtual std::string host() const = 0;
  virtual bool takes(const device::Device& device) const = 0;  // whether it exchanges tensors of that device
  // Runs one operation. Several pieces must have one dtype and are sent as one message. A sendrecv has two pieces: the
  // data to send, and the memory to receive into; they must not overlap.
  virtual Result<> run(const Operation& operation, const std::vector<Piece>& pieces) = 0;
  // Tells the other ranks that this rank makes no more calls. Threads as for run().
  virtual void leave() = 0;
  // Ends all waits with the error `why`; the communicator is unusable afterwards.
  virtual void stop(Error why) = 0;
  virtual void hurry(std::int64_t ms) = 0;  // from now on every wait ends after at most `ms`
};

}  // namespace rille::collective
