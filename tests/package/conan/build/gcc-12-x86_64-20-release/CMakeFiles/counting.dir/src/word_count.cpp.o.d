CMakeFiles/counting.dir/src/word_count.cpp.o: \
 /work/main/examples/template/src/word_count.cpp \
 /usr/include/stdc-predef.h \
 /work/main/examples/template/src/word_count.hpp \
 /usr/include/c++/12/cstddef \
 /usr/include/x86_64-linux-gnu/c++/12/bits/c++config.h \
 /usr/include/x86_64-linux-gnu/c++/12/bits/os_defines.h \
 /usr/include/features.h /usr/include/features-time64.h \
 /usr/include/x86_64-linux-gnu/bits/wordsize.h \
 /usr/include/x86_64-linux-gnu/bits/timesize.h \
 /usr/include/x86_64-linux-gnu/sys/cdefs.h \
 /usr/include/x86_64-linux-gnu/bits/long-double.h \
 /usr/include/x86_64-linux-gnu/gnu/stubs.h \
 /usr/include/x86_64-linux-gnu/gnu/stubs-64.h \
 /usr/include/x86_64-linux-gnu/c++/12/bits/cpu_defines.h \
 /usr/include/c++/12/pstl/pstl_config.h \
 /usr/lib/gcc/x86_64-linux-gnu/12/include/stddef.h \
 /usr/include/c++/12/map /usr/include/c++/12/bits/stl_tree.h \
 /usr/include/c++/12/bits/stl_algobase.h \
 /usr/include/c++/12/bits/functexcept.h \
 /usr/include/c++/12/bits/exception_defines.h \
 /usr/include/c++/12/bits/cpp_type_traits.h \
 /usr/include/c++/12/ext/type_traits.h \
 /usr/include/c++/12/ext/numeric_traits.h \
 /usr/include/c++/12/bits/stl_pair.h /usr/include/c++/12/type_traits \
 /usr/include/c++/12/bits/move.h /usr/include/c++/12/bits/utility.h \
 /usr/include/c++/12/compare /usr/include/c++/12/concepts \
 /usr/include/c++/12/bits/stl_iterator_base_types.h \
 /usr/include/c++/12/bits/iterator_concepts.h \
 /usr/include/c++/12/bits/ptr_traits.h \
 /usr/include/c++/12/bits/ranges_cmp.h \
 /usr/include/c++/12/bits/stl_iterator_base_funcs.h \
 /usr/include/c++/12/bits/concept_check.h \
 /usr/include/c++/12/debug/assertions.h \
 /usr/include/c++/12/bits/stl_iterator.h /usr/include/c++/12/new \
 /usr/include/c++/12/bits/exception.h \
 /usr/include/c++/12/bits/stl_construct.h \
 /usr/include/c++/12/debug/debug.h \
 /usr/include/c++/12/bits/predefined_ops.h \
 /usr/include/c++/12/bits/allocator.h \
 /usr/include/x86_64-linux-gnu/c++/12/bits/c++allocator.h \
 /usr/include/c++/12/bits/new_allocator.h \
 /usr/include/c++/12/bits/memoryfwd.h \
 /usr/include/c++/12/bits/stl_function.h \
 /usr/include/c++/12/backward/binders.h \
 /usr/include/c++/12/ext/alloc_traits.h \
 /usr/include/c++/12/bits/alloc_traits.h \
 /usr/include/c++/12/ext/aligned_buffer.h \
 /usr/include/c++/12/bits/node_handle.h \
 /usr/include/c++/12/bits/stl_map.h /usr/include/c++/12/initializer_list \
 /usr/include/c++/12/tuple /usr/include/c++/12/bits/uses_allocator.h \
 /usr/include/c++/12/bits/invoke.h \
 /usr/include/c++/12/bits/stl_multimap.h \
 /usr/include/c++/12/bits/range_access.h \
 /usr/include/c++/12/bits/erase_if.h /usr/include/c++/12/string \
 /usr/include/c++/12/bits/stringfwd.h \
 /usr/include/c++/12/bits/char_traits.h \
 /usr/include/c++/12/bits/postypes.h /usr/include/c++/12/cwchar \
 /usr/include/wchar.h \
 /usr/include/x86_64-linux-gnu/bits/libc-header-start.h \
 /usr/include/x86_64-linux-gnu/bits/floatn.h \
 /usr/include/x86_64-linux-gnu/bits/floatn-common.h \
 /usr/lib/gcc/x86_64-linux-gnu/12/include/stdarg.h \
 /usr/include/x86_64-linux-gnu/bits/wchar.h \
 /usr/include/x86_64-linux-gnu/bits/types/wint_t.h \
 /usr/include/x86_64-linux-gnu/bits/types/mbstate_t.h \
 /usr/include/x86_64-linux-gnu/bits/types/__mbstate_t.h \
 /usr/include/x86_64-linux-gnu/bits/types/__FILE.h \
 /usr/include/x86_64-linux-gnu/bits/types/FILE.h \
 /usr/include/x86_64-linux-gnu/bits/types/locale_t.h \
 /usr/include/x86_64-linux-gnu/bits/types/__locale_t.h \
 /usr/include/c++/12/cstdint \
 /usr/lib/gcc/x86_64-linux-gnu/12/include/stdint.h /usr/include/stdint.h \
 /usr/include/x86_64-linux-gnu/bits/types.h \
 /usr/include/x86_64-linux-gnu/bits/typesizes.h \
 /usr/include/x86_64-linux-gnu/bits/time64.h \
 /usr/include/x86_64-linux-gnu/bits/stdint-intn.h \
 /usr/include/x86_64-linux-gnu/bits/stdint-uintn.h \
 /usr/include/c++/12/bits/localefwd.h \
 /usr/include/x86_64-linux-gnu/c++/12/bits/c++locale.h \
 /usr/include/c++/12/clocale /usr/include/locale.h \
 /usr/include/x86_64-linux-gnu/bits/locale.h /usr/include/c++/12/iosfwd \
 /usr/include/c++/12/cctype /usr/include/ctype.h \
 /usr/include/x86_64-linux-gnu/bits/endian.h \
 /usr/include/x86_64-linux-gnu/bits/endianness.h \
 /usr/include/c++/12/bits/ostream_insert.h \
 /usr/include/c++/12/bits/cxxabi_forced.h \
 /usr/include/c++/12/bits/refwrap.h \
 /usr/include/c++/12/bits/basic_string.h /usr/include/c++/12/string_view \
 /usr/include/c++/12/bits/functional_hash.h \
 /usr/include/c++/12/bits/hash_bytes.h \
 /usr/include/c++/12/bits/ranges_base.h \
 /usr/include/c++/12/bits/max_size_type.h /usr/include/c++/12/numbers \
 /usr/include/c++/12/bits/string_view.tcc \
 /usr/include/c++/12/ext/string_conversions.h /usr/include/c++/12/cstdlib \
 /usr/include/stdlib.h /usr/include/x86_64-linux-gnu/bits/waitflags.h \
 /usr/include/x86_64-linux-gnu/bits/waitstatus.h \
 /usr/include/x86_64-linux-gnu/sys/types.h \
 /usr/include/x86_64-linux-gnu/bits/types/clock_t.h \
 /usr/include/x86_64-linux-gnu/bits/types/clockid_t.h \
 /usr/include/x86_64-linux-gnu/bits/types/time_t.h \
 /usr/include/x86_64-linux-gnu/bits/types/timer_t.h /usr/include/endian.h \
 /usr/include/x86_64-linux-gnu/bits/byteswap.h \
 /usr/include/x86_64-linux-gnu/bits/uintn-identity.h \
 /usr/include/x86_64-linux-gnu/sys/select.h \
 /usr/include/x86_64-linux-gnu/bits/select.h \
 /usr/include/x86_64-linux-gnu/bits/types/sigset_t.h \
 /usr/include/x86_64-linux-gnu/bits/types/__sigset_t.h \
 /usr/include/x86_64-linux-gnu/bits/types/struct_timeval.h \
 /usr/include/x86_64-linux-gnu/bits/types/struct_timespec.h \
 /usr/include/x86_64-linux-gnu/bits/pthreadtypes.h \
 /usr/include/x86_64-linux-gnu/bits/thread-shared-types.h \
 /usr/include/x86_64-linux-gnu/bits/pthreadtypes-arch.h \
 /usr/include/x86_64-linux-gnu/bits/atomic_wide_counter.h \
 /usr/include/x86_64-linux-gnu/bits/struct_mutex.h \
 /usr/include/x86_64-linux-gnu/bits/struct_rwlock.h /usr/include/alloca.h \
 /usr/include/x86_64-linux-gnu/bits/stdlib-bsearch.h \
 /usr/include/x86_64-linux-gnu/bits/stdlib-float.h \
 /usr/include/c++/12/bits/std_abs.h /usr/include/c++/12/cstdio \
 /usr/include/stdio.h /usr/include/x86_64-linux-gnu/bits/types/__fpos_t.h \
 /usr/include/x86_64-linux-gnu/bits/types/__fpos64_t.h \
 /usr/include/x86_64-linux-gnu/bits/types/struct_FILE.h \
 /usr/include/x86_64-linux-gnu/bits/types/cookie_io_functions_t.h \
 /usr/include/x86_64-linux-gnu/bits/stdio_lim.h \
 /usr/include/x86_64-linux-gnu/bits/stdio.h /usr/include/c++/12/cerrno \
 /usr/include/errno.h /usr/include/x86_64-linux-gnu/bits/errno.h \
 /usr/include/linux/errno.h /usr/include/x86_64-linux-gnu/asm/errno.h \
 /usr/include/asm-generic/errno.h /usr/include/asm-generic/errno-base.h \
 /usr/include/x86_64-linux-gnu/bits/types/error_t.h \
 /usr/include/c++/12/bits/charconv.h \
 /usr/include/c++/12/bits/basic_string.tcc /usr/include/c++/12/vector \
 /usr/include/c++/12/bits/stl_uninitialized.h \
 /usr/include/c++/12/bits/stl_vector.h \
 /usr/include/c++/12/bits/stl_bvector.h \
 /usr/include/c++/12/bits/vector.tcc \
 /work/main/out/conan/p/b/mustecf6eec4bdcd09/p/include/muster/pool/pool.hpp \
 /work/main/out/conan/p/b/mustecf6eec4bdcd09/p/include/muster/async/as_completed.hpp \
 /usr/include/c++/12/memory /usr/include/c++/12/bits/stl_tempbuf.h \
 /usr/include/c++/12/bits/stl_raw_storage_iter.h \
 /usr/include/c++/12/bits/align.h /usr/include/c++/12/bit \
 /usr/include/c++/12/bits/unique_ptr.h /usr/include/c++/12/ostream \
 /usr/include/c++/12/ios /usr/include/c++/12/exception \
 /usr/include/c++/12/bits/exception_ptr.h \
 /usr/include/c++/12/bits/cxxabi_init_exception.h \
 /usr/include/c++/12/typeinfo /usr/include/c++/12/bits/nested_exception.h \
 /usr/include/c++/12/bits/ios_base.h /usr/include/c++/12/ext/atomicity.h \
 /usr/include/x86_64-linux-gnu/c++/12/bits/gthr.h \
 /usr/include/x86_64-linux-gnu/c++/12/bits/gthr-default.h \
 /usr/include/pthread.h /usr/include/sched.h \
 /usr/include/x86_64-linux-gnu/bits/sched.h \
 /usr/include/x86_64-linux-gnu/bits/types/struct_sched_param.h \
 /usr/include/x86_64-linux-gnu/bits/cpu-set.h /usr/include/time.h \
 /usr/include/x86_64-linux-gnu/bits/time.h \
 /usr/include/x86_64-linux-gnu/bits/timex.h \
 /usr/include/x86_64-linux-gnu/bits/types/struct_tm.h \
 /usr/include/x86_64-linux-gnu/bits/types/struct_itimerspec.h \
 /usr/include/x86_64-linux-gnu/bits/setjmp.h \
 /usr/include/x86_64-linux-gnu/bits/types/struct___jmp_buf_tag.h \
 /usr/include/x86_64-linux-gnu/bits/pthread_stack_min-dynamic.h \
 /usr/include/x86_64-linux-gnu/c++/12/bits/atomic_word.h \
 /usr/include/x86_64-linux-gnu/sys/single_threaded.h \
 /usr/include/c++/12/bits/locale_classes.h \
 /usr/include/c++/12/bits/locale_classes.tcc \
 /usr/include/c++/12/system_error \
 /usr/include/x86_64-linux-gnu/c++/12/bits/error_constants.h \
 /usr/include/c++/12/stdexcept /usr/include/c++/12/streambuf \
 /usr/include/c++/12/bits/streambuf.tcc \
 /usr/include/c++/12/bits/basic_ios.h \
 /usr/include/c++/12/bits/locale_facets.h /usr/include/c++/12/cwctype \
 /usr/include/wctype.h /usr/include/x86_64-linux-gnu/bits/wctype-wchar.h \
 /usr/include/x86_64-linux-gnu/c++/12/bits/ctype_base.h \
 /usr/include/c++/12/bits/streambuf_iterator.h \
 /usr/include/x86_64-linux-gnu/c++/12/bits/ctype_inline.h \
 /usr/include/c++/12/bits/locale_facets.tcc \
 /usr/include/c++/12/bits/basic_ios.tcc \
 /usr/include/c++/12/bits/ostream.tcc \
 /usr/include/c++/12/bits/shared_ptr.h \
 /usr/include/c++/12/bits/shared_ptr_base.h \
 /usr/include/c++/12/bits/allocated_ptr.h \
 /usr/include/c++/12/ext/concurrence.h \
 /usr/include/c++/12/bits/shared_ptr_atomic.h \
 /usr/include/c++/12/bits/atomic_base.h \
 /usr/include/c++/12/bits/atomic_lockfree_defines.h \
 /usr/include/c++/12/bits/atomic_wait.h /usr/include/c++/12/climits \
 /usr/lib/gcc/x86_64-linux-gnu/12/include/limits.h \
 /usr/lib/gcc/x86_64-linux-gnu/12/include/syslimits.h \
 /usr/include/limits.h /usr/include/x86_64-linux-gnu/bits/posix1_lim.h \
 /usr/include/x86_64-linux-gnu/bits/local_lim.h \
 /usr/include/linux/limits.h \
 /usr/include/x86_64-linux-gnu/bits/posix2_lim.h \
 /usr/include/x86_64-linux-gnu/bits/xopen_lim.h \
 /usr/include/x86_64-linux-gnu/bits/uio_lim.h /usr/include/unistd.h \
 /usr/include/x86_64-linux-gnu/bits/posix_opt.h \
 /usr/include/x86_64-linux-gnu/bits/environments.h \
 /usr/include/x86_64-linux-gnu/bits/confname.h \
 /usr/include/x86_64-linux-gnu/bits/getopt_posix.h \
 /usr/include/x86_64-linux-gnu/bits/getopt_core.h \
 /usr/include/x86_64-linux-gnu/bits/unistd_ext.h \
 /usr/include/linux/close_range.h /usr/include/syscall.h \
 /usr/include/x86_64-linux-gnu/sys/syscall.h \
 /usr/include/x86_64-linux-gnu/asm/unistd.h \
 /usr/include/x86_64-linux-gnu/asm/unistd_64.h \
 /usr/include/x86_64-linux-gnu/bits/syscall.h \
 /usr/include/c++/12/bits/std_mutex.h \
 /usr/include/c++/12/backward/auto_ptr.h \
 /usr/include/c++/12/bits/ranges_uninitialized.h \
 /usr/include/c++/12/bits/ranges_algobase.h \
 /usr/include/c++/12/bits/uses_allocator_args.h \
 /usr/include/c++/12/pstl/glue_memory_defs.h \
 /usr/include/c++/12/pstl/execution_defs.h /usr/include/c++/12/utility \
 /usr/include/c++/12/bits/stl_relops.h \
 /work/main/out/conan/p/b/mustecf6eec4bdcd09/p/include/muster/async/detail/arrivals.hpp \
 /usr/include/c++/12/functional /usr/include/c++/12/bits/std_function.h \
 /usr/include/c++/12/unordered_map /usr/include/c++/12/bits/hashtable.h \
 /usr/include/c++/12/bits/hashtable_policy.h \
 /usr/include/c++/12/bits/enable_special_members.h \
 /usr/include/c++/12/bits/unordered_map.h /usr/include/c++/12/array \
 /usr/include/c++/12/bits/stl_algo.h \
 /usr/include/c++/12/bits/algorithmfwd.h \
 /usr/include/c++/12/bits/stl_heap.h \
 /usr/include/c++/12/bits/uniform_int_dist.h \
 /work/main/out/conan/p/b/mustecf6eec4bdcd09/p/include/muster/async/detail/end_notice.hpp \
 /work/main/out/conan/p/b/mustecf6eec4bdcd09/p/include/muster/base/requirements.hpp \
 /work/main/out/conan/p/b/mustecf6eec4bdcd09/p/include/muster/async/detail/future_home.hpp \
 /work/main/out/conan/p/b/mustecf6eec4bdcd09/p/include/muster/base/log.hpp \
 /work/main/out/conan/p/b/mustecf6eec4bdcd09/p/include/muster/base/clock.hpp \
 /work/main/out/conan/p/b/mustecf6eec4bdcd09/p/include/muster/base/detail/duration.hpp \
 /usr/include/c++/12/version /usr/include/c++/12/bits/chrono.h \
 /usr/include/c++/12/ratio /usr/include/c++/12/limits \
 /usr/include/c++/12/ctime /usr/include/c++/12/bits/parse_numbers.h \
 /work/main/out/conan/p/b/mustecf6eec4bdcd09/p/include/muster/base/detail/float_state.hpp \
 /usr/include/c++/12/cfenv /usr/include/c++/12/fenv.h /usr/include/fenv.h \
 /usr/include/x86_64-linux-gnu/bits/fenv.h \
 /work/main/out/conan/p/b/mustecf6eec4bdcd09/p/include/muster/async/future.hpp \
 /work/main/out/conan/p/b/mustecf6eec4bdcd09/p/include/muster/async/cancellation.hpp \
 /work/main/out/conan/p/b/mustecf6eec4bdcd09/p/include/muster/async/detail/end_call.hpp \
 /work/main/out/conan/p/b/mustecf6eec4bdcd09/p/include/muster/async/detail/deferred_call.hpp \
 /work/main/out/conan/p/b/mustecf6eec4bdcd09/p/include/muster/async/detail/owning_list.hpp \
 /work/main/out/conan/p/b/mustecf6eec4bdcd09/p/include/muster/async/detail/future_handle.hpp \
 /work/main/out/conan/p/b/mustecf6eec4bdcd09/p/include/muster/async/detail/encoded_end.hpp \
 /usr/include/c++/12/span \
 /work/main/out/conan/p/b/mustecf6eec4bdcd09/p/include/muster/async/detail/outcome.hpp \
 /usr/include/c++/12/variant \
 /work/main/out/conan/p/b/mustecf6eec4bdcd09/p/include/muster/serialize/detail/value_or.hpp \
 /work/main/out/conan/p/b/mustecf6eec4bdcd09/p/include/muster/serialize/result.hpp \
 /work/main/out/conan/p/b/mustecf6eec4bdcd09/p/include/muster/serialize/error_info.hpp \
 /usr/include/c++/12/optional \
 /work/main/out/conan/p/b/mustecf6eec4bdcd09/p/include/muster/base/device.hpp \
 /work/main/out/conan/p/b/mustecf6eec4bdcd09/p/include/muster/base/error.hpp \
 /work/main/out/conan/p/b/mustecf6eec4bdcd09/p/include/muster/base/detail/abi.hpp \
 /work/main/out/conan/p/b/mustecf6eec4bdcd09/p/include/muster/base/version.hpp \
 /work/main/out/conan/p/b/mustecf6eec4bdcd09/p/include/muster/base/exit_status.hpp \
 /work/main/out/conan/p/b/mustecf6eec4bdcd09/p/include/muster/serialize/detail/encoded_exception.hpp \
 /work/main/out/conan/p/b/mustecf6eec4bdcd09/p/include/muster/serialize/detail/object_token.hpp \
 /work/main/out/conan/p/b/mustecf6eec4bdcd09/p/include/muster/serialize/detail/codec.hpp \
 /usr/include/c++/12/cstring /usr/include/string.h /usr/include/strings.h \
 /work/main/out/conan/p/b/mustecf6eec4bdcd09/p/include/muster/serialize/transportable.hpp \
 /work/main/out/conan/p/b/mustecf6eec4bdcd09/p/include/muster/serialize/archive.hpp \
 /usr/include/cereal/cereal.hpp /usr/include/c++/12/unordered_set \
 /usr/include/c++/12/bits/unordered_set.h /usr/include/cereal/macros.hpp \
 /usr/include/cereal/details/traits.hpp /usr/include/c++/12/typeindex \
 /usr/include/cereal/access.hpp /usr/include/c++/12/iostream \
 /usr/include/c++/12/istream /usr/include/c++/12/bits/istream.tcc \
 /usr/include/cereal/specialize.hpp \
 /usr/include/cereal/details/helpers.hpp \
 /usr/include/cereal/details/static_object.hpp \
 /usr/include/cereal/types/base_class.hpp \
 /usr/include/cereal/details/polymorphic_impl_fwd.hpp \
 /usr/include/cereal/types/common.hpp \
 /work/main/out/conan/p/b/mustecf6eec4bdcd09/p/include/muster/serialize/detail/depth_guard.hpp \
 /work/main/out/conan/p/b/mustecf6eec4bdcd09/p/include/muster/serialize/detail/frame_stream.hpp \
 /work/main/out/conan/p/b/mustecf6eec4bdcd09/p/include/muster/serialize/detail/attachments.hpp \
 /work/main/out/conan/p/b/mustecf6eec4bdcd09/p/include/muster/memory/detail/shared_block.hpp \
 /usr/include/c++/12/atomic \
 /work/main/out/conan/p/b/mustecf6eec4bdcd09/p/include/muster/memory/detail/block.hpp \
 /work/main/out/conan/p/b/mustecf6eec4bdcd09/p/include/muster/serialize/detail/inherited_functions.hpp \
 /work/main/out/conan/p/b/mustecf6eec4bdcd09/p/include/muster/serialize/detail/standard_form.hpp \
 /work/main/out/conan/p/b/mustecf6eec4bdcd09/p/include/muster/serialize/detail/spelling.hpp \
 /work/main/out/conan/p/b/mustecf6eec4bdcd09/p/include/muster/serialize/detail/plain_type.hpp \
 /work/main/out/conan/p/b/mustecf6eec4bdcd09/p/include/muster/serialize/detail/plain_members.hpp \
 /work/main/out/conan/p/b/mustecf6eec4bdcd09/p/include/muster/serialize/holds_pointers.hpp \
 /work/main/out/conan/p/b/mustecf6eec4bdcd09/p/include/muster/serialize/plain_bytes.hpp \
 /work/main/out/conan/p/b/mustecf6eec4bdcd09/p/include/muster/serialize/detail/refusal.hpp \
 /work/main/out/conan/p/b/mustecf6eec4bdcd09/p/include/muster/serialize/detail/standard_values.hpp \
 /work/main/out/conan/p/b/mustecf6eec4bdcd09/p/include/muster/serialize/detail/standard_containers.hpp \
 /work/main/out/conan/p/b/mustecf6eec4bdcd09/p/include/muster/serialize/detail/standard_owners.hpp \
 /work/main/out/conan/p/b/mustecf6eec4bdcd09/p/include/muster/serialize/error_code.hpp \
 /work/main/out/conan/p/b/mustecf6eec4bdcd09/p/include/muster/serialize/max_value_bytes.hpp \
 /work/main/out/conan/p/b/mustecf6eec4bdcd09/p/include/muster/serialize/detail/null_arguments.hpp \
 /work/main/out/conan/p/b/mustecf6eec4bdcd09/p/include/muster/async/detail/typed_source.hpp \
 /work/main/out/conan/p/b/mustecf6eec4bdcd09/p/include/muster/async/detail/future_source.hpp \
 /work/main/out/conan/p/b/mustecf6eec4bdcd09/p/include/muster/base/detail/mutex.hpp \
 /work/main/out/conan/p/b/mustecf6eec4bdcd09/p/include/muster/base/detail/futex.hpp \
 /work/main/out/conan/p/b/mustecf6eec4bdcd09/p/include/muster/base/detail/thread_annotations.hpp \
 /work/main/out/conan/p/b/mustecf6eec4bdcd09/p/include/muster/base/detail/range_concepts.hpp \
 /work/main/out/conan/p/b/mustecf6eec4bdcd09/p/include/muster/base/detail/view_over.hpp \
 /work/main/out/conan/p/b/mustecf6eec4bdcd09/p/include/muster/async/when_all.hpp \
 /work/main/out/conan/p/b/mustecf6eec4bdcd09/p/include/muster/async/when_any.hpp \
 /work/main/out/conan/p/b/mustecf6eec4bdcd09/p/include/muster/pool/basic_process_pool.hpp \
 /work/main/out/conan/p/b/mustecf6eec4bdcd09/p/include/muster/pool/basic_pool.hpp \
 /work/main/out/conan/p/b/mustecf6eec4bdcd09/p/include/muster/pool/detail/lane_route.hpp \
 /work/main/out/conan/p/b/mustecf6eec4bdcd09/p/include/muster/pool/pool_calls.hpp \
 /work/main/out/conan/p/b/mustecf6eec4bdcd09/p/include/muster/async/detail/dependent_call.hpp \
 /work/main/out/conan/p/b/mustecf6eec4bdcd09/p/include/muster/async/detail/waiting_call.hpp \
 /work/main/out/conan/p/b/mustecf6eec4bdcd09/p/include/muster/pool/detail/context.hpp \
 /work/main/out/conan/p/b/mustecf6eec4bdcd09/p/include/muster/pool/this_worker.hpp \
 /work/main/out/conan/p/b/mustecf6eec4bdcd09/p/include/muster/serialize/callable.hpp \
 /work/main/out/conan/p/b/mustecf6eec4bdcd09/p/include/muster/serialize/detail/function_token.hpp \
 /work/main/out/conan/p/b/mustecf6eec4bdcd09/p/include/muster/serialize/detail/modules.hpp \
 /work/main/out/conan/p/b/mustecf6eec4bdcd09/p/include/muster/pool/detail/generated_view.hpp \
 /usr/include/c++/12/iterator /usr/include/c++/12/bits/stream_iterator.h \
 /work/main/out/conan/p/b/mustecf6eec4bdcd09/p/include/muster/pool/feed.hpp \
 /work/main/out/conan/p/b/mustecf6eec4bdcd09/p/include/muster/async/detail/callback_pause.hpp \
 /work/main/out/conan/p/b/mustecf6eec4bdcd09/p/include/muster/base/detail/fork_count.hpp \
 /work/main/out/conan/p/b/mustecf6eec4bdcd09/p/include/muster/base/unique_fd.hpp \
 /work/main/out/conan/p/b/mustecf6eec4bdcd09/p/include/muster/pool/detail/fifo.hpp \
 /work/main/out/conan/p/b/mustecf6eec4bdcd09/p/include/muster/pool/detail/next_iterator.hpp \
 /work/main/out/conan/p/b/mustecf6eec4bdcd09/p/include/muster/pool/detail/stream_source.hpp \
 /work/main/out/conan/p/b/mustecf6eec4bdcd09/p/include/muster/pool/stream.hpp \
 /work/main/out/conan/p/b/mustecf6eec4bdcd09/p/include/muster/pool/detail/batch.hpp \
 /work/main/out/conan/p/b/mustecf6eec4bdcd09/p/include/muster/queue/detail/outgoing_frame.hpp \
 /work/main/out/conan/p/b/mustecf6eec4bdcd09/p/include/muster/queue/detail/attachment_list.hpp \
 /work/main/out/conan/p/b/mustecf6eec4bdcd09/p/include/muster/queue/detail/frame_layout.hpp \
 /work/main/out/conan/p/b/mustecf6eec4bdcd09/p/include/muster/serialize/transfer.hpp \
 /work/main/out/conan/p/b/mustecf6eec4bdcd09/p/include/muster/pool/detail/batch_access.hpp \
 /work/main/out/conan/p/b/mustecf6eec4bdcd09/p/include/muster/pool/task_options.hpp \
 /work/main/out/conan/p/b/mustecf6eec4bdcd09/p/include/muster/pool/priority.hpp \
 /work/main/out/conan/p/b/mustecf6eec4bdcd09/p/include/muster/queue/detail/task_terms.hpp \
 /work/main/out/conan/p/b/mustecf6eec4bdcd09/p/include/muster/queue/retry_reasons.hpp \
 /work/main/out/conan/p/b/mustecf6eec4bdcd09/p/include/muster/pool/detail/batch_reader.hpp \
 /work/main/out/conan/p/b/mustecf6eec4bdcd09/p/include/muster/pool/detail/chunk_task.hpp \
 /work/main/out/conan/p/b/mustecf6eec4bdcd09/p/include/muster/pool/detail/invocation.hpp \
 /work/main/out/conan/p/b/mustecf6eec4bdcd09/p/include/muster/queue/detail/task_call.hpp \
 /work/main/out/conan/p/b/mustecf6eec4bdcd09/p/include/muster/base/detail/kept_for_next_task.hpp \
 /work/main/out/conan/p/b/mustecf6eec4bdcd09/p/include/muster/queue/detail/seal_number.hpp \
 /work/main/out/conan/p/b/mustecf6eec4bdcd09/p/include/muster/queue/detail/slot_word.hpp \
 /work/main/out/conan/p/b/mustecf6eec4bdcd09/p/include/muster/serialize/detail/sent_callable.hpp \
 /work/main/out/conan/p/b/mustecf6eec4bdcd09/p/include/muster/queue/detail/worker_cache.hpp \
 /work/main/out/conan/p/b/mustecf6eec4bdcd09/p/include/muster/pool/detail/core_access.hpp \
 /work/main/out/conan/p/b/mustecf6eec4bdcd09/p/include/muster/queue/detail/admission.hpp \
 /work/main/out/conan/p/b/mustecf6eec4bdcd09/p/include/muster/pool/detail/input_pace.hpp \
 /work/main/out/conan/p/b/mustecf6eec4bdcd09/p/include/muster/pool/detail/owned_value.hpp \
 /work/main/out/conan/p/b/mustecf6eec4bdcd09/p/include/muster/pool/input.hpp \
 /work/main/out/conan/p/b/mustecf6eec4bdcd09/p/include/muster/pool/detail/view_traits.hpp \
 /work/main/out/conan/p/b/mustecf6eec4bdcd09/p/include/muster/pool/pool_submitter.hpp \
 /work/main/out/conan/p/b/mustecf6eec4bdcd09/p/include/muster/process/worker_info.hpp \
 /work/main/out/conan/p/b/mustecf6eec4bdcd09/p/include/muster/process/lifecycle.hpp \
 /work/main/out/conan/p/b/mustecf6eec4bdcd09/p/include/muster/serialize/shared_object.hpp \
 /work/main/out/conan/p/b/mustecf6eec4bdcd09/p/include/muster/pool/detail/process_engine.hpp \
 /work/main/out/conan/p/b/mustecf6eec4bdcd09/p/include/muster/pool/detail/engine_base.hpp \
 /work/main/out/conan/p/b/mustecf6eec4bdcd09/p/include/muster/pool/detail/make_as.hpp \
 /work/main/out/conan/p/b/mustecf6eec4bdcd09/p/include/muster/pool/detail/map_ending.hpp \
 /work/main/out/conan/p/b/mustecf6eec4bdcd09/p/include/muster/pool/detail/process_host.hpp \
 /work/main/out/conan/p/b/mustecf6eec4bdcd09/p/include/muster/pool/pool_options.hpp \
 /work/main/out/conan/p/b/mustecf6eec4bdcd09/p/include/muster/memory/arena_statistics.hpp \
 /work/main/out/conan/p/b/mustecf6eec4bdcd09/p/include/muster/pool/device_choice.hpp \
 /work/main/out/conan/p/b/mustecf6eec4bdcd09/p/include/muster/process/detail/device_assignment.hpp \
 /work/main/out/conan/p/b/mustecf6eec4bdcd09/p/include/muster/base/cpu_list.hpp \
 /work/main/out/conan/p/b/mustecf6eec4bdcd09/p/include/muster/pool/output_choice.hpp \
 /work/main/out/conan/p/b/mustecf6eec4bdcd09/p/include/muster/process/worker_output.hpp \
 /work/main/out/conan/p/b/mustecf6eec4bdcd09/p/include/muster/pool/pinning.hpp \
 /work/main/out/conan/p/b/mustecf6eec4bdcd09/p/include/muster/pool/worker_task.hpp \
 /work/main/out/conan/p/b/mustecf6eec4bdcd09/p/include/muster/queue/overflow_policy.hpp \
 /work/main/out/conan/p/b/mustecf6eec4bdcd09/p/include/muster/pool/pool_statistics.hpp \
 /work/main/out/conan/p/b/mustecf6eec4bdcd09/p/include/muster/queue/detail/slow_task.hpp \
 /work/main/out/conan/p/b/mustecf6eec4bdcd09/p/include/muster/queue/dispatcher_reports.hpp \
 /work/main/out/conan/p/b/mustecf6eec4bdcd09/p/include/muster/pool/detail/sent_map.hpp \
 /work/main/out/conan/p/b/mustecf6eec4bdcd09/p/include/muster/pool/detail/slow_stream.hpp \
 /work/main/out/conan/p/b/mustecf6eec4bdcd09/p/include/muster/pool/detail/input_thread.hpp \
 /work/main/out/conan/p/b/mustecf6eec4bdcd09/p/include/muster/pool/detail/sent_elements.hpp \
 /work/main/out/conan/p/b/mustecf6eec4bdcd09/p/include/muster/pool/detail/task_source.hpp \
 /work/main/out/conan/p/b/mustecf6eec4bdcd09/p/include/muster/pool/detail/task_stream.hpp \
 /work/main/out/conan/p/b/mustecf6eec4bdcd09/p/include/muster/async/detail/readiness.hpp \
 /work/main/out/conan/p/b/mustecf6eec4bdcd09/p/include/muster/pool/submitter.hpp \
 /work/main/out/conan/p/b/mustecf6eec4bdcd09/p/include/muster/pool/submit_calls.hpp \
 /work/main/out/conan/p/b/mustecf6eec4bdcd09/p/include/muster/pool/this_pool.hpp \
 /work/main/out/conan/p/b/mustecf6eec4bdcd09/p/include/muster/pool/detail/local_access.hpp \
 /work/main/out/conan/p/b/mustecf6eec4bdcd09/p/include/muster/pool/detail/local_job.hpp \
 /work/main/out/conan/p/b/mustecf6eec4bdcd09/p/include/muster/pool/detail/local_task.hpp \
 /work/main/out/conan/p/b/mustecf6eec4bdcd09/p/include/muster/pool/detail/stop_flag.hpp \
 /usr/include/c++/12/stop_token /usr/include/c++/12/bits/std_thread.h \
 /usr/include/c++/12/semaphore /usr/include/c++/12/bits/semaphore_base.h \
 /usr/include/c++/12/bits/atomic_timed_wait.h \
 /usr/include/c++/12/bits/this_thread_sleep.h \
 /usr/include/x86_64-linux-gnu/sys/time.h /usr/include/semaphore.h \
 /usr/include/x86_64-linux-gnu/bits/semaphore.h \
 /work/main/out/conan/p/b/mustecf6eec4bdcd09/p/include/muster/pool/this_task.hpp \
 /work/main/out/conan/p/b/mustecf6eec4bdcd09/p/include/muster/process/init.hpp \
 /work/main/out/conan/p/b/mustecf6eec4bdcd09/p/include/muster/serialize/exceptions.hpp \
 /usr/include/c++/12/fstream /usr/include/c++/12/bits/codecvt.h \
 /usr/include/x86_64-linux-gnu/c++/12/bits/basic_file.h \
 /usr/include/x86_64-linux-gnu/c++/12/bits/c++io.h \
 /usr/include/c++/12/bits/fstream.tcc
