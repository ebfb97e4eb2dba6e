// SPDX-License-Identifier: BSL-1.0
#pragma once

// Clang's thread-safety attributes; nothing for other compilers. The clang-tidy preset turns violations into errors.
//
// Thread safety: macros only.

#include <muster/base/requirements.hpp>

#if defined(__clang__)
#define MUSTER_THREAD_ATTRIBUTE(attribute) __attribute__((attribute))
#else
#define MUSTER_THREAD_ATTRIBUTE(attribute)
#endif

#define MUSTER_CAPABILITY(name) MUSTER_THREAD_ATTRIBUTE(capability(name))
#define MUSTER_SCOPED_CAPABILITY MUSTER_THREAD_ATTRIBUTE(scoped_lockable)
#define MUSTER_GUARDED_BY(mutex) MUSTER_THREAD_ATTRIBUTE(guarded_by(mutex))
#define MUSTER_PT_GUARDED_BY(mutex) MUSTER_THREAD_ATTRIBUTE(pt_guarded_by(mutex))
#define MUSTER_REQUIRES(...) MUSTER_THREAD_ATTRIBUTE(requires_capability(__VA_ARGS__))
#define MUSTER_EXCLUDES(...) MUSTER_THREAD_ATTRIBUTE(locks_excluded(__VA_ARGS__))
#define MUSTER_ACQUIRE(...) MUSTER_THREAD_ATTRIBUTE(acquire_capability(__VA_ARGS__))
#define MUSTER_RELEASE(...) MUSTER_THREAD_ATTRIBUTE(release_capability(__VA_ARGS__))
#define MUSTER_TRY_ACQUIRE(...) MUSTER_THREAD_ATTRIBUTE(try_acquire_capability(__VA_ARGS__))
#define MUSTER_NO_THREAD_SAFETY_ANALYSIS MUSTER_THREAD_ATTRIBUTE(no_thread_safety_analysis)
