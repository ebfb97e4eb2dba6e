// SPDX-License-Identifier: BSL-1.0
// The functions of NCCL, and what tests ask.
#include <atomic>
#include <cstdlib>
#include <map>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include <nccl.h>

#include "communicator.hpp"
#include "fake_nccl.hpp"
#include "faults.hpp"

using namespace fake_nccl;

struct ncclComm {
  ncclComm(const ncclUniqueId& id, int rank, int size)
      : what(id, static_cast<std::size_t>(rank), static_cast<std::size_t>(size)) {}

  communicator what;
};

namespace {

std::atomic<std::size_t> live = 0;

struct asked {
  std::vector<request> requests;
  cudaStream_t stream = nullptr;
};
thread_local int depth = 0;
thread_local std::map<ncclComm_t, asked> group;

template <class Body>
ncclResult_t call(const char* name, const Body& body) noexcept {
  try {
    if (const auto code = the_faults().next(name); code != ncclSuccess) return code;
    return body();
  } catch (const ncclResult_t& code) {
    return code;
  } catch (const std::bad_alloc&) {
    return ncclSystemError;
  }
}

ncclResult_t end_group() {
  if (depth == 0) throw ncclInvalidUsage;
  if (--depth > 0) return ncclSuccess;
  const auto all = std::exchange(group, {});
  for (const auto& [comm, what] : all) comm->what.start(what.requests, what.stream);
  return all.empty() ? ncclSuccess : ncclInProgress;
}

ncclResult_t ask(const char* name, ncclComm_t comm, cudaStream_t stream, const request& what) noexcept {
  return call(name, [&] {
    if (comm == nullptr || comm->what.state() != ncclSuccess) throw ncclInvalidArgument;
    if (what.peer < 0 || static_cast<std::size_t>(what.peer) >= comm->what.size()) throw ncclInvalidArgument;
    ++depth;
    auto& mine = group[comm];
    mine.requests.push_back(what);
    mine.stream = stream;
    return end_group();
  });
}

const std::byte* bytes(const void* where) { return static_cast<const std::byte*>(where); }
std::byte* bytes(void* where) { return static_cast<std::byte*>(where); }

}  // namespace

extern "C" {

ncclResult_t ncclGetVersion(int* version) {
  const auto* const asked = std::getenv("FAKE_NCCL_VERSION");
  *version = asked != nullptr ? std::atoi(asked) : NCCL_VERSION_CODE;
  return ncclSuccess;
}

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  return call("ncclGetUniqueId", [&] {
    *id = make_board();
    return ncclSuccess;
  });
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int nranks, ncclUniqueId commId, int rank, ncclConfig_t* config) {
  return call("ncclCommInitRankConfig", [&] {
    if (config == nullptr || config->blocking != 0) throw ncclInvalidUsage;
    if (nranks < 1 || static_cast<std::size_t>(nranks) > most_ranks || rank < 0 || rank >= nranks) {
      throw ncclInvalidArgument;
    }
    *comm = new ncclComm(commId, rank, nranks);
    ++live;
    return ncclInProgress;
  });
}

ncclResult_t ncclCommFinalize(ncclComm_t comm) {
  return call("ncclCommFinalize", [&] { return comm == nullptr ? ncclInvalidArgument : ncclSuccess; });
}

ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  return call("ncclCommDestroy", [&] {
    delete comm;
    --live;
    return ncclSuccess;
  });
}

ncclResult_t ncclCommAbort(ncclComm_t comm) {
  return call("ncclCommAbort", [&] {
    delete comm;
    --live;
    return ncclSuccess;
  });
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* asyncError) {
  *asyncError = call("async", [&] { return comm->what.state(); });
  return ncclSuccess;
}

const char* ncclGetErrorString(ncclResult_t result) {
  return result == ncclSuccess ? "no error" : "an error of the fake NCCL";
}

ncclResult_t ncclAllReduce(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, ncclRedOp_t op,
                           ncclComm_t comm, cudaStream_t stream) {
  return ask("ncclAllReduce", comm, stream,
             {request::kind::all_reduce, bytes(sendbuff), bytes(recvbuff), count, datatype, op, 0});
}

ncclResult_t ncclReduce(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, ncclRedOp_t op,
                        int root, ncclComm_t comm, cudaStream_t stream) {
  return ask("ncclReduce", comm, stream,
             {request::kind::reduce, bytes(sendbuff), bytes(recvbuff), count, datatype, op, root});
}

ncclResult_t ncclReduceScatter(const void* sendbuff, void* recvbuff, size_t recvcount, ncclDataType_t datatype,
                               ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream) {
  return ask("ncclReduceScatter", comm, stream,
             {request::kind::reduce_scatter, bytes(sendbuff), bytes(recvbuff), recvcount, datatype, op, 0});
}

ncclResult_t ncclBroadcast(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, int root,
                           ncclComm_t comm, cudaStream_t stream) {
  return ask("ncclBroadcast", comm, stream,
             {request::kind::broadcast, bytes(sendbuff), bytes(recvbuff), count, datatype, ncclSum, root});
}

ncclResult_t ncclAllGather(const void* sendbuff, void* recvbuff, size_t sendcount, ncclDataType_t datatype,
                           ncclComm_t comm, cudaStream_t stream) {
  return ask("ncclAllGather", comm, stream,
             {request::kind::all_gather, bytes(sendbuff), bytes(recvbuff), sendcount, datatype, ncclSum, 0});
}

ncclResult_t ncclSend(const void* sendbuff, size_t count, ncclDataType_t datatype, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  return ask("ncclSend", comm, stream, {request::kind::send, bytes(sendbuff), nullptr, count, datatype, ncclSum, peer});
}

ncclResult_t ncclRecv(void* recvbuff, size_t count, ncclDataType_t datatype, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  return ask("ncclRecv", comm, stream,
             {request::kind::receive, nullptr, bytes(recvbuff), count, datatype, ncclSum, peer});
}

ncclResult_t ncclGroupStart() {
  return call("ncclGroupStart", [] {
    ++depth;
    return ncclSuccess;
  });
}

ncclResult_t ncclGroupEnd() {
  const auto result = call("ncclGroupEnd", [] { return end_group(); });
  if (result != ncclSuccess && result != ncclInProgress) {  // what was asked for is forgotten
    depth = 0;
    group.clear();
  }
  return result;
}

void fake_nccl_fail(const char* function, ncclResult_t code, int after_calls) {
  the_faults().add(function, code, after_calls);
}

std::size_t fake_nccl_calls(const char* function) { return the_faults().calls(function); }

std::size_t fake_nccl_live() { return live; }
}
