// SPDX-License-Identifier: BSL-1.0
#pragma once

// Values under keys, with versions, that many processes share.

#include <muster/params/kv_store.hpp>
#include <muster/params/store.hpp>
