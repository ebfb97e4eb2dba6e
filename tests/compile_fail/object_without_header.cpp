// SPDX-License-Identifier: BSL-1.0
// An object of a group, where the header that encodes objects is not included.
#include <muster/collectives/group.hpp>

// expected-error@*:* {{muster: objects of a group need #include <muster/group.hpp>}}
// expected-note@*:* 0+ {{}}
// expected-error@*:* {{implicit instantiation of undefined template}}
void send(muster::group& group) { group.send_object(7, 0); }
