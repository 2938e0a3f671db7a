// Bad input gets a clear code and a text that names it, on all ranks alike, and changes nothing:
// the communicator goes on, outputs keep their bytes.
#include <sys/mman.h>
#include <unistd.h>

#include <climits>
#include <functional>

#include "harness/catch.h"
#include "harness/comm_case.h"
#include "harness/ranks.h"

namespace fccl::test {
namespace {

struct Bad {
  const char* what;
  std::function<void(fcclFusedArgs&)> spoil;
  fcclResult_t code;
  const char* says;  // part of the text
};

const Bad kBadCalls[] = {
    {"no input", [](fcclFusedArgs& a) { a.input = nullptr; }, fcclInvalidArgument, "input"},
    {"no weight", [](fcclFusedArgs& a) { a.weight = nullptr; }, fcclInvalidArgument, "weight"},
    {"no norm_out",
     [](fcclFusedArgs& a) { a.norm_out.ptr = nullptr; },
     fcclInvalidArgument,
     "norm_out"},
    {"negative tokens", [](fcclFusedArgs& a) { a.tokens = -1; }, fcclInvalidArgument, "tokens"},
    {"most negative tokens",
     [](fcclFusedArgs& a) { a.tokens = INT64_MIN; },
     fcclInvalidArgument,
     "tokens"},
    {"overflowing tokens",
     [](fcclFusedArgs& a) { a.tokens = INT64_MAX; },
     fcclInvalidArgument,
     "tokens"},
    {"no hidden", [](fcclFusedArgs& a) { a.hidden = 0; }, fcclInvalidArgument, "hidden"},
    {"negative hidden", [](fcclFusedArgs& a) { a.hidden = -5; }, fcclInvalidArgument, "hidden"},
    {"overflowing hidden",
     [](fcclFusedArgs& a) { a.hidden = INT64_MAX; },
     fcclInvalidArgument,
     "hidden"},
    {"overflowing product",
     [](fcclFusedArgs& a) { a.hidden = 1 << 30, a.tokens = int64_t{1} << 40; },
     fcclInvalidArgument,
     "hidden"},
    {"short stride", [](fcclFusedArgs& a) { a.input_stride = 3; }, fcclInvalidArgument, "stride"},
    {"negative stride",
     [](fcclFusedArgs& a) { a.norm_out.row_stride = -64; },
     fcclInvalidArgument,
     "stride"},
    {"overflowing stride",
     [](fcclFusedArgs& a) { a.residual_stride = INT64_MAX; },
     fcclInvalidArgument,
     "stride"},
    {"negative eps", [](fcclFusedArgs& a) { a.eps = -1e-6f; }, fcclInvalidArgument, "eps"},
    {"eps NaN", [](fcclFusedArgs& a) { a.eps = __builtin_nanf(""); }, fcclInvalidArgument, "eps"},
    {"eps infinite",
     [](fcclFusedArgs& a) { a.eps = __builtin_inff(); },
     fcclInvalidArgument,
     "eps"},
    {"unknown datatype",
     [](fcclFusedArgs& a) { a.datatype = 77; },
     fcclInvalidArgument,
     "datatype"},
    {"datatype without kernels",
     [](fcclFusedArgs& a) { a.datatype = fcclFloat64; },
     fcclUnsupported,
     "datatype"},
    {"unknown weight type",
     [](fcclFusedArgs& a) { a.weight_type = -3; },
     fcclInvalidArgument,
     "type"},
    {"unknown offset",
     [](fcclFusedArgs& a) { a.weight_offset = 2; },
     fcclInvalidArgument,
     "weight_offset"},
    {"unknown numerics", [](fcclFusedArgs& a) { a.numerics = 9; }, fcclInvalidArgument, "numerics"},
    {"unknown layout",
     [](fcclFusedArgs& a) { a.residual_layout = -1; },
     fcclInvalidArgument,
     "residual_layout"},
    {"unknown flag", [](fcclFusedArgs& a) { a.flags = 0x80000000u; }, fcclInvalidArgument, "flags"},
    {"quantised output",
     [](fcclFusedArgs& a) { a.quant_out.ptr = a.norm_out.ptr; },
     fcclUnsupported,
     "quant"},
    {"valid_tokens",
     [](fcclFusedArgs& a) { a.valid_tokens = static_cast<const int32_t*>(a.input); },
     fcclUnsupported,
     "valid_tokens"},
    {"odd pointer",
     [](fcclFusedArgs& a) { a.input = static_cast<const char*>(a.input) + 1; },
     fcclInvalidArgument,
     "aligned"},
    {"partial overlap",
     [](fcclFusedArgs& a) { a.norm_out.ptr = static_cast<char*>(const_cast<void*>(a.input)) + 16; },
     fcclInvalidArgument,
     "overlaps"},
    {"outputs overlap",
     [](fcclFusedArgs& a) { a.residual_out.ptr = a.norm_out.ptr; },
     fcclInvalidArgument,
     "overlaps"},
    {"sharded without residual",
     [](fcclFusedArgs& a) { a.residual_layout = FCCL_RESIDUAL_ROW_SHARDED, a.residual = nullptr; },
     fcclInvalidArgument,
     "residual"},
    {"wrong magic", [](fcclFusedArgs& a) { a.magic = 1; }, fcclInvalidArgument, "magic"},
    {"version 0", [](fcclFusedArgs& a) { a.version = 0; }, fcclInvalidArgument, "version"},
    {"size 0", [](fcclFusedArgs& a) { a.size = 0; }, fcclInvalidArgument, "bytes"},
    {"short struct", [](fcclFusedArgs& a) { a.size -= 8; }, fcclInvalidArgument, "bytes"},
};

KernelCase small_case(int ranks) {
  KernelCase c;
  c.id.type = TypeKind::BF16;
  c.ranks = ranks;
  c.tokens = 3;
  c.hidden = 64;
  return c;
}

std::string expect(fcclResult_t got, fcclResult_t want, const std::string& what, const char* says,
                   fcclComm_t comm) {
  const std::string text = fcclGetLastError(comm);
  if (got != want)
    return what + ": code " + std::to_string(got) + " instead of " + std::to_string(want) + ": " +
           text;
  if (text.find(says) == std::string::npos)
    return what + ": the text does not say \"" + says + "\": " + text;
  return "";
}

}  // namespace

TEST_CASE("bad input: every argument of the fused call") {
  const KernelCase c = small_case(2);
  const KernelProblem problem = make_problem(c);
  CHECK(as_threads(ranks_of(2), [&](fcclComm_t comm, int rank) -> std::string {
          RankBuffers buffers = make_buffers(c, rank, problem);
          const fcclFusedArgs good = args_of(c, buffers);
          for (const Bad& bad : kBadCalls) {
            fcclFusedArgs args = good;
            bad.spoil(args);
            std::string error = expect(fcclAllReduceResidualRMSNormEx(&args, comm, nullptr),
                                       bad.code,
                                       bad.what,
                                       bad.says,
                                       comm);
            if (!error.empty()) return error;
            fcclResult_t async = fcclInternalError;
            FCCL_EXPECT_OK(fcclCommGetAsyncError(comm, &async), comm);
            if (async != fcclSuccess) return std::string(bad.what) + " ended the communicator";
          }
          std::string error = expect(fcclAllReduceResidualRMSNormEx(nullptr, comm, nullptr),
                                     fcclInvalidArgument,
                                     "no args",
                                     "args",
                                     comm);
          if (error.empty())
            error = expect(fcclAllReduceResidualRMSNormEx(&good, comm, buffers.input.data()),
                           fcclInvalidArgument,
                           "a stream",
                           "stream",
                           comm);
          // Nothing was changed: the outputs are untouched and the communicator works.
          if (error.empty())
            error = buffers.input.difference(problem.inputs.x[static_cast<size_t>(rank)], "input");
          return error.empty() ? call_case(comm, rank, c, problem) : error;
        }) == "");
}

TEST_CASE("bad input: the plain collectives") {
  CHECK(as_threads(ranks_of(2), [](fcclComm_t comm, int) -> std::string {
          float data[64] = {};
          constexpr auto kUnknownType = static_cast<fcclDataType_t>(55);
          constexpr auto kUnknownOp = static_cast<fcclRedOp_t>(17);
          const auto bad = fcclInvalidArgument;
          std::string error =
              expect(fcclAllReduce(nullptr, data, 8, fcclFloat32, fcclSum, comm, nullptr),
                     bad,
                     "no sendbuff",
                     "sendbuff",
                     comm);
          if (error.empty())
            error = expect(fcclAllReduce(data, nullptr, 8, fcclFloat32, fcclSum, comm, nullptr),
                           bad,
                           "no recvbuff",
                           "recvbuff",
                           comm);
          if (error.empty())
            error = expect(fcclAllReduce(data, data, SIZE_MAX, fcclFloat32, fcclSum, comm, nullptr),
                           bad,
                           "huge count",
                           "count",
                           comm);
          if (error.empty())
            error = expect(fcclAllReduce(data, data, 8, kUnknownType, fcclSum, comm, nullptr),
                           bad,
                           "type",
                           "datatype",
                           comm);
          if (error.empty())
            error = expect(fcclAllReduce(data, data, 8, fcclInt32, fcclSum, comm, nullptr),
                           fcclUnsupported,
                           "int32",
                           "datatype",
                           comm);
          if (error.empty())
            error = expect(fcclAllReduce(data, data, 8, fcclFloat32, kUnknownOp, comm, nullptr),
                           bad,
                           "op",
                           "op",
                           comm);
          if (error.empty())
            error = expect(fcclBroadcast(data, data, 8, fcclFloat32, 2, comm, nullptr),
                           bad,
                           "root 2",
                           "root",
                           comm);
          if (error.empty())
            error = expect(fcclBroadcast(data, data, 8, fcclFloat32, -1, comm, nullptr),
                           bad,
                           "root -1",
                           "root",
                           comm);
          if (error.empty())
            error = expect(fcclAllGather(data, data + 1, 8, fcclFloat32, comm, nullptr),
                           bad,
                           "overlap",
                           "overlap",
                           comm);
          if (error.empty())
            error =
                expect(fcclReduceScatter(data, data + 3, 8, fcclFloat32, fcclSum, comm, nullptr),
                       bad,
                       "overlap",
                       "overlap",
                       comm);
          FCCL_EXPECT_OK(fcclAllReduce(data, data, 64, fcclFloat32, fcclSum, comm, nullptr), comm);
          return error;
        }) == "");
}

TEST_CASE("bad input: making a communicator") {
  const Environment clean(Variables{});
  const RanksOptions options = ranks_of(1);
  const fcclUniqueId id = new_id();
  fcclUniqueId zeros{};
  fcclComm_t comm = nullptr;
  const auto init = [&](fcclComm_t* out,
                        int ranks,
                        const fcclUniqueId* with,
                        int rank,
                        const fcclConfig* config) {
    return fcclCommInitRankConfig(out, ranks, with, rank, config);
  };
  CHECK(expect(init(nullptr, 1, &id, 0, &options.config),
               fcclInvalidArgument,
               "no comm",
               "comm",
               nullptr) == "");
  CHECK(expect(init(&comm, 1, nullptr, 0, &options.config),
               fcclInvalidArgument,
               "no id",
               "id",
               nullptr) == "");
  CHECK(expect(init(&comm, 2, &zeros, 0, &options.config),
               fcclInvalidArgument,
               "id of zeros",
               "id",
               nullptr) == "");
  CHECK(expect(init(&comm, 0, &id, 0, &options.config),
               fcclInvalidArgument,
               "no ranks",
               "nranks",
               nullptr) == "");
  CHECK(expect(init(&comm, 17, &id, 0, &options.config),
               fcclInvalidArgument,
               "17 ranks",
               "nranks",
               nullptr) == "");
  CHECK(expect(init(&comm, 2, &id, 2, &options.config),
               fcclInvalidArgument,
               "rank 2 of 2",
               "rank",
               nullptr) == "");
  CHECK(expect(init(&comm, 2, &id, -1, &options.config),
               fcclInvalidArgument,
               "rank -1",
               "rank",
               nullptr) == "");
  CHECK(comm == nullptr);
  struct {
    const char* what;
    std::function<void(fcclConfig&)> spoil;
    const char* says;
  } const configs[] = {
      {"magic", [](fcclConfig& c) { c.magic = 0; }, "magic"},
      {"size 0", [](fcclConfig& c) { c.size = 0; }, "bytes"},
      {"short", [](fcclConfig& c) { c.size -= 1; }, "bytes"},
      {"backend", [](fcclConfig& c) { c.backend = 9; }, "backend"},
      {"blocking", [](fcclConfig& c) { c.blocking = 5; }, "blocking"},
      {"timeout", [](fcclConfig& c) { c.init_timeout_ms = -1; }, "init_timeout_ms"},
      {"blocks", [](fcclConfig& c) { c.max_blocks = -7; }, "max_blocks"},
      {"tokens", [](fcclConfig& c) { c.max_tokens = -7; }, "max_tokens"},
      {"product",
       [](fcclConfig& c) { c.max_tokens = int64_t{1} << 39, c.hidden = 1 << 29; },
       "hidden"},
      {"datatype", [](fcclConfig& c) { c.datatype = 66; }, "datatype"},
  };
  for (const auto& bad : configs) {
    fcclConfig config = options.config;
    bad.spoil(config);
    CHECK(
        expect(init(&comm, 1, &id, 0, &config), fcclInvalidArgument, bad.what, bad.says, nullptr) ==
        "");
  }
  // The id is still good: nothing above has used it.
  REQUIRE(init(&comm, 1, &id, 0, &options.config) == fcclSuccess);
  CHECK(fcclCommDestroy(comm) == fcclSuccess);
}

TEST_CASE("bad input: a handle that is none, or no longer one") {
  const Environment clean(Variables{});
  const RanksOptions options = ranks_of(1);
  const fcclUniqueId id = new_id();
  fcclComm_t comm = nullptr;
  REQUIRE(fcclCommInitRankConfig(&comm, 1, &id, 0, &options.config) == fcclSuccess);
  int value = 0;
  CHECK(fcclCommCount(comm, nullptr) == fcclInvalidArgument);
  CHECK(fcclCommUserRank(comm, nullptr) == fcclInvalidArgument);
  CHECK(fcclCommSetTimeout(comm, 0) == fcclInvalidArgument);
  CHECK(fcclCommSetTimeout(comm, -5) == fcclInvalidArgument);
  CHECK(fcclCommGetAsyncError(comm, nullptr) == fcclInvalidArgument);
  CHECK(fcclCommErrorWord(comm, nullptr) == fcclInvalidArgument);
  CHECK(fcclCommQuery(comm, nullptr, nullptr) == fcclInvalidArgument);
  CHECK(fcclMemAlloc(comm, nullptr, 64) == fcclInvalidArgument);
  CHECK(fcclVariable(-1, nullptr) == fcclInvalidArgument);
  CHECK(fcclGetVersion(nullptr) == fcclInvalidArgument);
  CHECK(fcclGetUniqueId(nullptr) == fcclInvalidArgument);
  CHECK(fcclWorkspaceBytes(0, nullptr, nullptr) == fcclInvalidArgument);
  CHECK(fcclRowRange(-1, 2, 0, nullptr, nullptr) == fcclInvalidArgument);
  REQUIRE(fcclCommDestroy(comm) == fcclSuccess);
  int local = 0;
  for (fcclComm_t gone :
       {comm, static_cast<fcclComm_t>(nullptr), reinterpret_cast<fcclComm_t>(&local)}) {
    float data[8] = {};
    CHECK(fcclCommCount(gone, &value) == fcclInvalidArgument);
    CHECK(fcclAllReduce(data, data, 8, fcclFloat32, fcclSum, gone, nullptr) == fcclInvalidArgument);
    CHECK(fcclCommAbort(gone) == fcclInvalidArgument);
    CHECK(std::string(fcclGetLastError(nullptr)).find("comm") != std::string::npos);
    CHECK(fcclGetLastError(gone) != nullptr);
  }
  CHECK(fcclCommDestroy(comm) == fcclInvalidArgument);
  CHECK(fcclCommDestroy(nullptr) == fcclSuccess);
}

TEST_CASE("bad input: strings for every code, known or not") {
  for (int code = -3; code < 120; ++code)
    CHECK(fcclGetErrorString(static_cast<fcclResult_t>(code)) != nullptr);
  CHECK(std::string(fcclGetErrorString(fcclTimeout)) != fcclGetErrorString(fcclAborted));
}

}  // namespace fccl::test
