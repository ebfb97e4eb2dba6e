// SPDX-License-Identifier: BSL-1.0
// The figures of muster beside those of its peers. Workloads:
//
//   core_rtt_spin             an empty task through the core alone ÷ two processes that spin on a shared page
//   apply_rtt                 pool.apply of a captureless lambda with two ints ÷ the same
//   apply_rtt_vs_thread_pool  the same ÷ asio::thread_pool with a std::future, of one thread or as it comes
//   apply_rtt_asleep          the same, everybody asleep first ÷ a futex round trip of two processes
//   apply_vs_python           the same ÷ multiprocessing.Pool.apply
//   apply_vs_loky, apply_vs_mpire, apply_vs_ray  the same ÷ theirs
//   imap_vs_python            imap with chunks of one ÷ multiprocessing.Pool.imap with the same
//
//   burst_pool, burst_pool_2, burst_thread_pool, burst_world, burst_group, burst_queue
//                             calls in bursts of 3 ms, 3 ms apart, nothing bound: our 90th percentile ÷ the median of
//                             asio::thread_pool(1) with a std::future; in place of a spread, our 99th ÷ the same
//   …_busy, …_busy_2, …_busy_4  beside so many busy loops; …_bound: on one processor
//
//   submit_throughput         apply_async and get over a window of 256, one worker ÷ asio::thread_pool(1), futures
//   thread_pool_submit        the same with a thread_pool of one
//   submit_vs_tbb             256 tiny tasks fired, then collected ÷ tbb::task_group
//   p2p_throughput            256 tiny tasks under way in a p2p_pool of 2 ÷ in a pool of 2
//   map_tiny                  map of x + 1 over a million ints, per element ÷ tbb::parallel_for writing an array
//   task_1us, task_10us       busy tasks on 2 workers ÷ the best of a queue under a mutex, asio and TBB, 2 threads each
//   copy_64MiB                a vector argument of 64 MiB to a worker that keeps its heap, bytes per second ÷ memcpy's
//   two_submitters            two threads that submit to one worker, per task ÷ one thread
//
//   co_await_rtt              a call that a coroutine awaits on the pool's loop ÷ pool.apply
//   async_throughput          a thousand coroutines that do so, per task ÷ as submit_throughput
//   asio_event                from a task's end to the handler, the loop asleep ÷ the same for an eventfd of a process
//   trace_overhead            as submit_throughput with a trace ÷ without
//
//   tensor_ref_64KiB, tensor_ref_256MiB  a call with a tensor of that size ÷ a call without
//   tensor_vs_fd              64 KiB made, written, handed over, read ÷ the same by memfd, SCM_RIGHTS and mmap
//   tensor_vs_torch           a call with a shared tensor of 256 MiB ÷ torch.multiprocessing's, by file descriptor
//   alloc                     64 KiB of shared memory taken, written and let go ÷ malloc and free
//
//   accumulate_f32            64 MiB added to 64 MiB ÷ memcpy of as many bytes, read or written
//   sgd_f32                   a step of SGD with momentum along a gradient of 64 MiB ÷ the same
//
//   queue_2p2c                messages of 64 bytes, 2 producers and 2 consumers in workers ÷ a ring under a mutex with
//                             conditions, as many threads
//   queue_vs_boost            a stream of the same to one worker ÷ Boost.Interprocess's message_queue
//   p2p_queue_vs_boost        the same through a p2p_queue
//
//   graph_overlap             a graph of 4 sends and 4 computations, 50 ms each ÷ blocking sends, then the computations
//
//   allreduce_8B, allreduce_64KiB, allreduce_1MiB, allreduce_16MiB, allreduce_64MiB
//                             the sum of f32 in two ranks, in place ÷ MPI_Allreduce of the better of Open MPI and MPICH
//   allreduce_64KiB_4ranks    the same of four ranks on two processors
//   allreduce_64MiB_limit     the same, bytes read and written per second ÷ two threads on memory of their own
//   allreduce_32MiB_gloo      the same ÷ torch.distributed with gloo
//   broadcast_64MiB, all_gather_64MiB, reduce_scatter_64MiB
//                             a whole of 64 MiB, broadcast and all_gather in place ÷ the better of the same
//   barrier                   of two ranks ÷ two processes that spin on a shared page, there and back
//   pingpong_8B               a message there and one back ÷ MPI_Send and MPI_Recv
//   sendrecv_64MiB            a message of that size ÷ the same
//
//   call_empty                a call of a world of two ranks that does nothing ÷ two processes that spin on a page
//   call_scalar               the same with a number of each rank, averaged ÷ without
//   call_in_worker            2 us of arithmetic in a worker of a world ÷ in its caller
//   ranks_at_once             the same in a worker while the caller computes too ÷ while it does not
//   efficiency_50ms           a call that computes 50 ms in each of two ranks ÷ the same in one
//   efficiency_mnist_like     7 ms of computing, a loss, and 0.64 MB of gradient reduced into weights, two ranks ÷ one
//   efficiency_resnet_like    100 ms of computing in each rank, 102 MB of gradient reduced into weights, 2 ranks ÷ 1
//   slices_overhead           a call of 5 ms in 16 slices ÷ in one
//   scatter_list              100 of 1000 images of 3 x 224 x 224 f32 by a list, two ranks, bytes per second ÷ a copy
//                             of them by one thread
//   scatter_ranks             100 of 1000 of them for each of two ranks, bytes per second ÷ for one
//   kill_recovery             a rank killed in a call, to the next call's end ÷ posix_spawn and wait
//
//   rpc_rtt                   a call of a function with two ints at a member in another process ÷ pool.apply of the
//   same rpc_window_256            call_async and get over a window of 256 ÷ as submit_throughput's, of a pool
//   rpc_tensor_64MiB          a call with a tensor of that size ÷ a call without
//   rpc_vs_grpc, rpc_vs_capnp, rpc_vs_torch
//                             a call of a sum, nothing bound ÷ the same by gRPC, Cap'n Proto (C++, Unix sockets), and
//                             torch.distributed.rpc
//   rpc_death                 SIGKILL of a member to member_lost at its caller: the 99th percentile of 1010 kills ÷ 20
//   ms
//
//   store_pull_us             a pull of a tensor of 64 MiB that another process has pushed ÷ 2 us
//   store_push_64B            a push of so short a value ÷ 1 us
//   store_push_64MiB          a push of a tensor of that size ÷ memcpy of as much
//   kv_push_pull_sync         push_pull of 64 MiB by two workers, SGD ÷ 73 ms, MXNet's `local` with two arrays
//   kv_vs_all_reduce          the same without a rule ÷ all_reduce of as much by two ranks that are bound
//
//   service_rps               examples/service: requests per second for the hash of 64 KiB, 16 connections, each a task
//                             of a pool ÷ the same server hashing by itself
//
//   queue_make                a queue of 1024 messages of 64 bytes, while all others stay ÷ Boost's message_queue
//   thread_pool_make          a pool of 8 threads, made and ended ÷ as many std::threads, made and joined
//
//   start_2                   pool of 2 made and its first result ÷ posix_spawn of /bin/true and wait
//   death_to_error            SIGKILL of a worker to worker_died in the future ÷ SIGKILL to a readable pidfd
//   respawn                   SIGKILL to the next result from the replacement, pool of 1 ÷ posix_spawn and wait
//
//   compile_readme            README.md's program, compiled with -O2 ÷ its standard headers alone
//   compile_8_calls           a program of four maps and four applies, each of its own lambda ÷ the same headers
//   lines_pool, lines_event, lines_queue, lines_tensor, lines_group, lines_world
//                             lines of the header, preprocessed ÷ the most that they should be
//
//   idle_cpu                  processors that an idle pool of 8 uses, over 5 s
//   worker_rss                private memory of an idle worker
//   pending_bytes             memory of the parent per pending task, a million pending
//   allocs_per_task           operator new in parent and worker, per warm task
//
//   death_to_result, exit_to_result, after_all_idle_died, close_join_empty, close_join_lost, terminate_full,
//   map_async_returns, throw_to_rank_error, death_to_rank_error, death_in_barrier, death_in_collective,
//   death_in_exchange, death_in_reduction, world_destructor
//                             how long these take ÷ the longest that they may take
//   turnover                  a task of a worker that has one only, and the start of the next ÷ 5 ms
//   p2p_100k_tasks            so many tiny tasks through a p2p_pool of 2, 256 under way ÷ 1 s
//   p2p_round_trip            a call of that pool ÷ 50 us
//   handover_64KiB, handover_256MiB  a call with a shared tensor of that size ÷ 200 us
//   event_make                an event, while all others stay ÷ 5 us
//   any_of_already_set        a wait for any of two events, of which one is set ÷ 5 ms
//   any_of_set_at_900ms       the same, set 0.9 s later by another process ÷ 0.95 s
//
// Those with a peer are medians over rounds in which each side has a turn; all sides are bound to processors alike.
#include <muster/process/init.hpp>

#include "bench_program.hpp"
#include "bounds.hpp"

namespace bench {
namespace {

std::vector<workload> all_workloads() {
  std::vector<workload> all;
  for (const auto& some :
       {round_trips(), bursts(), throughputs(), loops(), tensors(), queues(), collectives(), graphs(), worlds(),
        rpc_calls(), stores(), services(), makings(), lifetimes(), costs(), compiling()}) {
    all.insert(all.end(), some.begin(), some.end());
  }
  for (const auto& bounds : {bounds_of_pools(), bounds_of_ranks()}) {
    for (const auto& each : bounds) all.push_back({.name = each.name, .run = each.run, .needs_two_processors = false});
  }
  return all;
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) {
  muster::init(argc, argv);
  return bench::run_program(argc, argv, "Measures muster beside its peers, in turns.", bench::all_workloads());
}
