// SPDX-License-Identifier: BSL-1.0
#include <muster/serialize/archive.hpp>

namespace muster {

// Here, so that a program compiles none of cereal's tables, which are made and destroyed with an archive.

output_archive::output_archive(bool attaches) : frame_writer(attaches), OutputArchive(this) {}

output_archive::output_archive(std::span<std::byte> room, attachment_sink* attachments)
    : frame_writer(room, attachments), OutputArchive(this) {}

output_archive::~output_archive() noexcept = default;

input_archive::input_archive(std::span<const std::byte> bytes, attachment_source* attachments)
    : frame_reader(bytes, attachments), InputArchive(this) {}

input_archive::~input_archive() noexcept = default;

}  // namespace muster
