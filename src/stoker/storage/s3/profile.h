// The files that Amazon's tools share: ~/.aws/config and ~/.aws/credentials. Pure functions.
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace stoker::storage::s3 {

// Keys are in lower case. One below another (`s3 =` and an indented `addressing_style = path`) is
// "s3.addressing_style".
using Section = std::map<std::string, std::string>;
// By the line in brackets, its spaces made single: "default", "profile train", "services local".
using Sections = std::map<std::string, Section>;

// Lines that are no setting are ignored, as Amazon's tools do. Of two sections of one name, later settings win.
Sections parse_sections(std::string_view text);

// The settings of a profile: those of the credentials file win over those of the config file.
Section profile_of(const Sections& config, const Sections& credentials, std::string_view name);
bool has_profile(const Sections& config, const Sections& credentials, std::string_view name);

}  // namespace stoker::storage::s3
