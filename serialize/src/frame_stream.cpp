// SPDX-License-Identifier: BSL-1.0
#include <muster/serialize/detail/frame_stream.hpp>

#include <muster/base/error.hpp>
#include <muster/base/text.hpp>

namespace muster {

void frame_writer::throw_no_room(std::size_t bytes) const {
  throw error(errc::not_serializable, text("encoding needed more than the ", room_.size(),
                                           " bytes that counting had found (", bytes, " more after ", written_,
                                           "): a serialize function must write the same bytes each time it is called"));
}

void frame_reader::throw_too_short(std::size_t bytes) const {
  throw error(errc::not_serializable,
              text("decoding wanted ", bytes, " bytes, but ", left(), " of ", bytes_.size(),
                   " are left: do the save and load functions of this type read and write the same things?"));
}

void frame_reader::throw_too_many(std::uint64_t count) const {
  throw error(errc::not_serializable,
              text("decoding found a container of ", count, " elements, but only ", left(), " of ", bytes_.size(),
                   " bytes are left: do the save and load functions of this type read and write the same things?"));
}

attachment_sink& frame_writer::attachments() const {
  if (attachments_ != nullptr) return *attachments_;
  throw error(errc::not_serializable,
              "a value that lies in shared memory was to be sent where only copies can go: send a copy of it");
}

attachment_source& frame_reader::attachments() const {
  if (attachments_ != nullptr) return *attachments_;
  throw error(errc::not_serializable, "a frame names a shared block, but came from where none can be sent");
}

}  // namespace muster
