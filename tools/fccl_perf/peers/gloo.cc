// libfccl_perf_gloo.so: gloo's all_reduce over TCP on the loopback interface, its usual transport
// on one host. Ranks meet through files in the folder that fccl_perf gives.
#include <gloo/allreduce.h>
#include <gloo/math.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>

#include <exception>
#include <memory>
#include <string>

#include "fccl_perf/peer_plugin.h"

namespace {

using Sum = void (*)(void*, const void*, const void*, std::size_t);

thread_local std::string last_failure;

const char* failed(const std::exception& error) {
  last_failure = error.what();
  return last_failure.c_str();
}

const char* open_ranks(int rank, int ranks, const char* folder, void** state) {
  try {
    gloo::transport::tcp::attr attributes;
    attributes.iface = "lo";
    std::shared_ptr<gloo::transport::Device> device =
        gloo::transport::tcp::CreateDevice(attributes);
    gloo::rendezvous::FileStore store(folder);
    auto context = std::make_shared<gloo::rendezvous::Context>(rank, ranks);
    context->connectFullMesh(store, device);
    *state = new std::shared_ptr<gloo::Context>(context);
    return nullptr;
  } catch (const std::exception& error) {
    return failed(error);
  }
}

const char* all_reduce(void* state, float* data, std::size_t count) {
  try {
    gloo::AllreduceOptions options(*static_cast<std::shared_ptr<gloo::Context>*>(state));
    options.setOutput(data, count);
    options.setReduceFunction(static_cast<Sum>(&gloo::sum<float>));
    gloo::allreduce(options);
    return nullptr;
  } catch (const std::exception& error) {
    return failed(error);
  }
}

void close_ranks(void* state) {
  delete static_cast<std::shared_ptr<gloo::Context>*>(state);
}

const FcclPerfPeer kPeer = {FCCL_PERF_PEER_ABI, "gloo (TCP)", open_ranks, all_reduce, close_ranks};

}  // namespace

extern "C" __attribute__((visibility("default"))) const FcclPerfPeer* fccl_perf_peer(void) {
  return &kPeer;
}
