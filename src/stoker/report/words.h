// Figures as a person would round them, always with their unit, and the interval where there is one. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "stoker/base/text.h"
#include "stoker/report/report.h"
#include "stoker/tune/row.h"

namespace stoker::report {

std::string per_second(double rate);                           // "503", "3.52"
std::string rate_text(const Figure& figure);                   // "503 samples/s (95 %: 495 to 511)"
std::string interval_text(const Figure& figure);               // "95 %: 495 to 511"; empty without one
std::string percent(double share);                             // "6 %", "0.4 %", "below 0.1 %"
std::string milliseconds(double ms);                           // "18.2 ms", "1.84 s"
std::string ratio(double times);                               // "6.4x"
std::string byte_text(double bytes);                           // "12.4 GiB"
std::string plural(std::size_t count, std::string_view noun);  // "1 point", "72 points"
std::string short_number(double value);                        // "8", "0.5", of knobs and axes
// With a full stop, and a capital letter unless it begins with what people type: a command, or num_workers=4.
std::string sentence(std::string text);

// A report tells people what to type, so it spells every option as a flag.
std::string in_flags(const Text& text);

// How a trial ended: a mark that reads without colour, and a sentence.
std::string_view glyph(tune::Status status) noexcept;
std::string_view meaning(tune::Status status) noexcept;

}  // namespace stoker::report
