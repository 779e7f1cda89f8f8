#include "stoker/dicom/series.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <limits>
#include <map>
#include <tuple>
#include <unordered_map>

#include <fmt/format.h>

namespace stoker::dicom {
namespace {

using Orientation = std::array<double, 6>;

constexpr double kSameDirection = 1e-3;  // scanners round direction cosines to six digits or so
constexpr double kSamePlace = 1e-3;      // mm
constexpr double kUneven = 0.02;         // of the spacing

std::string folder_of_path(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? "" : path.substr(0, slash);
}

bool is_same(const std::optional<Orientation>& a, const std::optional<Orientation>& b) {
  if (a.has_value() != b.has_value()) return false;
  if (!a) return true;
  for (std::size_t i = 0; i < a->size(); ++i) {
    if (std::fabs((*a)[i] - (*b)[i]) > kSameDirection) return false;
  }
  return true;
}

// None where the orientation is none: the cross product of both directions has no length.
std::optional<double> along_normal(const std::optional<std::array<double, 3>>& position,
                                   const std::optional<Orientation>& orientation) {
  if (!position || !orientation) return std::nullopt;
  const Orientation& o = *orientation;
  const std::array<double, 3> normal = {o[1] * o[5] - o[2] * o[4], o[2] * o[3] - o[0] * o[5],
                                        o[0] * o[4] - o[1] * o[3]};
  const double length = std::sqrt(normal[0] * normal[0] + normal[1] * normal[1] + normal[2] * normal[2]);
  if (!(length > 1e-6)) return std::nullopt;
  const auto& p = *position;
  return (p[0] * normal[0] + p[1] * normal[1] + p[2] * normal[2]) / length;
}

// Slices of one SeriesInstanceUID, size and orientation.
struct Part {
  std::uint32_t rows = 0, columns = 0;
  std::optional<Orientation> orientation;
  std::vector<Slice> slices;
  std::vector<std::string> notes{};
};

// Places that differ by rounding are the same: they are compared in steps.
std::int64_t place_of(const Slice& slice) {
  return slice.position ? std::llround(*slice.position / kSamePlace) : 0;
}

std::string shape_text(const Part& part) {
  return fmt::format("{}x{}", part.columns, part.rows);
}

// A code string of the standard, such as CT. Anything else may be text that identifies somebody.
bool is_code(const std::string& text) {
  return text.size() <= 16 && text.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") == std::string::npos;
}

class Planner {
 public:
  Planner(const std::vector<Source>& sources, const NameOf& name_of) : sources_(sources), name_of_(name_of) {}

  SeriesPlan plan() {
    std::map<std::string, std::vector<std::size_t>> groups;  // series uid, or folder, to sources
    for (std::size_t i = 0; i < sources_.size(); ++i) {
      const Source& source = sources_[i];
      if (source.found == Found::other) continue;
      if (source.found == Found::image) {
        groups[group_of(source)].push_back(i);
      } else {
        plan_.left_out.push_back({source.path, source.cause, source.found == Found::ignored});
      }
    }
    for (const auto& [group, members] : groups) add_series(group, without_duplicates(members));
    std::sort(plan_.series.begin(), plan_.series.end(),
              [](const Series& a, const Series& b) { return a.name < b.name; });
    std::sort(plan_.left_out.begin(), plan_.left_out.end(),
              [](const LeftOut& a, const LeftOut& b) { return a.path < b.path; });
    return std::move(plan_);
  }

 private:
  static std::string group_of(const Source& source) {
    return source.header.series.empty() ? "folder " + folder_of_path(source.path) : source.header.series;
  }

  // Remembers those that are left out in copies_.
  std::vector<std::size_t> without_duplicates(const std::vector<std::size_t>& members) {
    std::unordered_map<std::string, std::size_t> seen;
    std::vector<std::size_t> unique;
    for (const std::size_t i : members) {
      const std::string& instance = sources_[i].header.sop_instance;
      if (!instance.empty()) {
        const auto [first, is_new] = seen.emplace(instance, i);
        if (!is_new) {
          plan_.left_out.push_back(
              {sources_[i].path, fmt::format("it is the same instance as `{}`", sources_[first->second].path), true});
          const Header &kept = sources_[first->second].header, &copy = sources_[i].header;
          const bool is_alike = kept.rows == copy.rows && kept.columns == copy.columns && kept.frames == copy.frames;
          if (is_alike) copies_[first->second].push_back(i);
          continue;
        }
      }
      unique.push_back(i);
    }
    return unique;
  }

  std::vector<Part> split(const std::vector<std::size_t>& members) const {
    std::vector<Part> parts;
    for (const std::size_t i : members) {
      const Header& header = sources_[i].header;
      for (std::uint32_t frame = 0; frame < header.frames; ++frame) {
        const FrameFacts& facts = header.facts_of(frame);
        auto part = std::find_if(parts.begin(), parts.end(), [&](const Part& p) {
          return p.rows == header.rows && p.columns == header.columns && is_same(p.orientation, facts.orientation);
        });
        if (part == parts.end()) {
          part = parts.insert(parts.end(), {header.rows, header.columns, facts.orientation, {}});
        }
        const auto copies = copies_.find(i);
        part->slices.push_back({i, frame, along_normal(facts.position, facts.orientation),
                                copies == copies_.end() ? std::vector<std::size_t>() : copies->second});
      }
    }
    adopt_without_orientation(parts);
    return by_time(std::move(parts));
  }

  // Slices without an orientation lie as the most of their size do: one that lacks it does not make a series.
  void adopt_without_orientation(std::vector<Part>& parts) const {
    for (std::size_t n = 0; n < parts.size(); ++n) {
      if (parts[n].orientation) continue;
      Part* most = nullptr;
      for (Part& other : parts) {
        if (!other.orientation || other.rows != parts[n].rows || other.columns != parts[n].columns) continue;
        if (most == nullptr || other.slices.size() > most->slices.size()) most = &other;
      }
      if (most == nullptr) continue;
      most->notes.push_back(
          fmt::format("{} of its slices have no orientation (ImageOrientationPatient): that of the others is taken",
                      parts[n].slices.size()));
      for (Slice& slice : parts[n].slices) {
        const FrameFacts& facts = sources_[slice.source].header.facts_of(slice.frame);
        slice.position = along_normal(facts.position, most->orientation);
        most->slices.push_back(std::move(slice));
      }
      parts[n].slices.clear();
    }
    std::erase_if(parts, [](const Part& part) { return part.slices.empty(); });
  }

  std::int64_t number_of(const Slice& slice) const {
    return sources_[slice.source].header.instance.value_or(std::numeric_limits<std::int64_t>::max());
  }

  // Several slices at one place are several times or echoes: each is a volume of its own.
  std::vector<Part> by_time(std::vector<Part> parts) const {
    std::vector<Part> split;
    for (Part& part : parts) {
      std::map<std::int64_t, std::vector<Slice>> places;
      bool has_places = true;
      for (const Slice& slice : part.slices) {
        has_places = has_places && slice.position;
        places[place_of(slice)].push_back(slice);
      }
      std::size_t times = 1;
      for (const auto& [place, slices] : places) times = std::max(times, slices.size());
      // Frames of a file that says one place for all of them are no times.
      if (!has_places || times == 1 || places.size() == 1) {
        split.push_back(std::move(part));
        continue;
      }
      std::vector<Part> all(times, Part{part.rows, part.columns, part.orientation, {}});
      for (auto& [place, slices] : places) {
        std::sort(slices.begin(), slices.end(), [&](const Slice& a, const Slice& b) {
          return std::tuple(number_of(a), a.source, a.frame) < std::tuple(number_of(b), b.source, b.frame);
        });
        for (std::size_t i = 0; i < slices.size(); ++i) all[i].slices.push_back(std::move(slices[i]));
      }
      all[0].notes = std::move(part.notes);
      all[0].notes.push_back(fmt::format(
          "up to {} slices lie at one place (times, echoes or repeats): they are written as {} series, in the order of "
          "their InstanceNumber",
          times, times));
      split.insert(split.end(), std::make_move_iterator(all.begin()), std::make_move_iterator(all.end()));
    }
    return split;
  }

  void add_series(const std::string& group, const std::vector<std::size_t>& members) {
    const std::vector<Part> parts = split(members);
    for (std::size_t n = 0; n < parts.size(); ++n) {
      const Header& header = sources_[parts[n].slices.front().source].header;
      Series series;
      series.series = name_of_("series", group);
      series.name = n == 0 ? series.series : fmt::format("{}-{}", series.series, n + 1);
      series.patient = name_of_("patient", header.patient);
      series.study = name_of_("study", header.study);
      series.modality = is_code(header.modality) ? header.modality : "";
      series.rows = parts[n].rows;
      series.columns = parts[n].columns;
      series.slices = parts[n].slices;
      series.notes = parts[n].notes;
      if (n == 0 && has_several_kinds(parts)) series.notes.push_back(split_note(parts));
      if (n == 0 && header.series.empty()) {
        series.notes.emplace_back("the files name no series (SeriesInstanceUID): those of one folder are taken as one");
      }
      order(series);
      plan_.series.push_back(std::move(series));
    }
  }

  static bool has_several_kinds(const std::vector<Part>& parts) {
    return std::any_of(parts.begin(), parts.end(), [&](const Part& part) {
      return shape_text(part) != shape_text(parts[0]) || !is_same(part.orientation, parts[0].orientation);
    });
  }

  static std::string split_note(const std::vector<Part>& parts) {
    std::string shapes;
    bool has_other_size = false;
    for (const Part& part : parts) {
      has_other_size |= shape_text(part) != shape_text(parts[0]);
      shapes += fmt::format("{}{} of {}", shapes.empty() ? "" : ", ", part.slices.size(), shape_text(part));
    }
    return fmt::format("the series holds slices of several {} ({}): each kind is written as a series of its own",
                       has_other_size ? "sizes or orientations" : "orientations", shapes);
  }

  void order(Series& series) const {
    const bool has_places = std::all_of(series.slices.begin(), series.slices.end(),
                                        [](const Slice& slice) { return slice.position.has_value(); });
    const bool has_numbers = std::all_of(series.slices.begin(), series.slices.end(), [&](const Slice& slice) {
      return sources_[slice.source].header.instance.has_value();
    });
    if (!has_places) {
      for (Slice& slice : series.slices) slice.position.reset();
      if (series.slices.size() > 1) {
        series.notes.push_back(fmt::format(
            "not every slice has a position (ImagePositionPatient, ImageOrientationPatient): they are in the "
            "order of {}",
            has_numbers ? "their InstanceNumber" : "their InstanceNumber and path"));
      }
    }
    std::sort(series.slices.begin(), series.slices.end(), [&](const Slice& a, const Slice& b) {
      return std::tuple(place_of(a), number_of(a), a.source, a.frame) <
             std::tuple(place_of(b), number_of(b), b.source, b.frame);
    });
    if (has_places) measure_spacing(series);
    note_missing_tags(series);
  }

  static void measure_spacing(Series& series) {
    std::vector<double> steps;
    std::size_t shared = 0;
    for (std::size_t i = 1; i < series.slices.size(); ++i) {
      const double step = *series.slices[i].position - *series.slices[i - 1].position;
      if (step <= 2 * kSamePlace) {
        ++shared;
      } else {
        steps.push_back(step);
      }
    }
    if (shared > 0) series.notes.push_back(fmt::format("{} slices lie at the place of the one before them", shared));
    if (steps.empty()) return;
    std::sort(steps.begin(), steps.end());
    series.slice_spacing = steps[steps.size() / 2];
    if (steps.back() - steps.front() > kUneven * *series.slice_spacing) {
      series.notes.push_back(fmt::format("its slices are unevenly spaced, {:.3g} to {:.3g} mm: some may be missing",
                                         steps.front(), steps.back()));
    }
  }

  void note_missing_tags(Series& series) const {
    std::size_t no_rescaling = 0, no_pixel_spacing = 0, fractions = 0;
    for (const Slice& slice : series.slices) {
      const FrameFacts& facts = sources_[slice.source].header.facts_of(slice.frame);
      no_rescaling += !facts.slope || !facts.intercept;
      no_pixel_spacing += !facts.pixel_spacing;
      const double slope = facts.slope.value_or(1), intercept = facts.intercept.value_or(0);
      fractions += slope != std::trunc(slope) || intercept != std::trunc(intercept);
    }
    const auto count = [&](std::size_t some) {
      return some == series.slices.size() ? std::string("its slices have") : fmt::format("{} of its slices have", some);
    };
    if (no_rescaling > 0) {
      series.notes.push_back(count(no_rescaling) + " no RescaleSlope or RescaleIntercept: 1 and 0 are taken");
    }
    if (no_pixel_spacing > 0)
      series.notes.push_back(count(no_pixel_spacing) + " no PixelSpacing: the index leaves it empty");
    if (fractions > 0) {
      series.notes.push_back(count(fractions) +
                             " a RescaleSlope or RescaleIntercept with a fraction: values are rounded");
    }
  }

  const std::vector<Source>& sources_;
  const NameOf& name_of_;
  std::unordered_map<std::size_t, std::vector<std::size_t>> copies_;  // of a source
  SeriesPlan plan_;
};

}  // namespace

SeriesPlan plan_series(const std::vector<Source>& sources, const NameOf& name_of) {
  return Planner(sources, name_of).plan();
}

}  // namespace stoker::dicom
