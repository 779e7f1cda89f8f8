// The fixed parts of the HTML report: its style and the few lines that show figures on hover.
#pragma once

#include <string_view>

namespace stoker::report {

extern const std::string_view kPageStyle, kPageScript;
extern const std::string_view kScriptHash;  // of kPageScript, as Content-Security-Policy wants it
extern const std::string_view kPatterns;    // an SVG of no size with the grains that bars and cells are filled with

}  // namespace stoker::report
