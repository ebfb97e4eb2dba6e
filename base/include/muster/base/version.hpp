// SPDX-License-Identifier: BSL-1.0
#pragma once

// The version of the library, for the preprocessor and for messages.
//
// Thread safety: constants.

#define MUSTER_VERSION_MAJOR 0
#define MUSTER_VERSION_MINOR 1
#define MUSTER_VERSION_PATCH 0
#define MUSTER_VERSION_STRING "0.1.0"
