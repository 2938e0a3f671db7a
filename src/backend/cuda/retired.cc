#include "backend/cuda/retired.h"

#include <mutex>

#include "base/log.h"

namespace fccl {
namespace {

class Garbage {
 public:
  void add(KeptMemory memory) {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (auto& part : memory) parts_.push_back(std::move(part));
  }
  KeptMemory take() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return std::exchange(parts_, {});
  }
  size_t keep(KeptMemory memory) {
    const std::lock_guard<std::mutex> lock(mutex_);
    kept_.push_back(std::move(memory));
    return kept_.size();
  }

 private:
  std::mutex mutex_;
  KeptMemory parts_;
  std::vector<KeptMemory> kept_;
};

Garbage& garbage() {
  static auto* const all = new Garbage;
  return *all;
}

void CUDART_CB end_of_graph(void* hold) {
  delete static_cast<std::shared_ptr<GraphHold>*>(hold);
}

}  // namespace

GraphHold::~GraphHold() {
  if (!kept.empty()) garbage().add(std::move(kept));
}

Status retain(cudaGraph_t graph, const std::shared_ptr<GraphHold>& hold) {
  auto owned = std::make_unique<std::shared_ptr<GraphHold>>(hold);
  cudaUserObject_t object = nullptr;
  FCCL_CUDA_TRY(
      cudaUserObjectCreate(&object, owned.get(), end_of_graph, 1, cudaUserObjectNoDestructorSync),
      "cudaUserObjectCreate");
  static_cast<void>(owned.release());  // the object's now
  const cudaError_t moved = cudaGraphRetainUserObject(graph, object, 1, cudaGraphUserObjectMove);
  if (moved != cudaSuccess) static_cast<void>(cudaUserObjectRelease(object, 1));
  return cuda_status(moved, "cudaGraphRetainUserObject");
}

void free_garbage() {
  garbage().take().clear();
}

void keep_for_good(KeptMemory memory) {
  const size_t count = garbage().keep(std::move(memory));
  FCCL_LOG(Warn,
           kLogMemory,
           "memory of a failed communicator stays mapped, since launches of it may still be queued "
           "(%zu such communicators in this process)",
           count);
}

}  // namespace fccl
