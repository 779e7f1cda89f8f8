#include "plan_report.h"

#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "stoker/base/units.h"

#include "plan_fleet.h"

namespace stoker::cli {
namespace {

constexpr std::size_t kWidestColumn = 48;  // of a configuration's name
constexpr std::size_t kMostRows = 8;       // of one run; plan.json has all

std::string cell(double days, const plan::TimeUnit& unit) {
  const double value = days * unit.per_day;
  return value < 99.5 ? fmt::format("{:.3g}", value) : fmt::format("{:.0f}", value);
}

std::string days_text(double days) {
  const plan::TimeUnit unit = plan::time_unit(days);
  return fmt::format("{} {}", plan::in_unit(days, unit), unit.name);
}

std::string size(double bytes) {
  return format_bytes(static_cast<std::uint64_t>(std::max(0.0, bytes)));
}

class PlanText {
 public:
  PlanText(const plan::PlanAnswer& answer, const SpellText& spell, const Terminal& terminal)
      : answer_(answer), spell_(spell), terminal_(terminal) {
    const plan::PlannedRun* const run = answer.chosen_run ? &answer.runs[*answer.chosen_run] : nullptr;
    if (run && run->picked()->duration) unit_ = plan::time_unit(run->picked()->duration->p50);
  }

  std::string write(const std::vector<std::string>& written) {
    out_ += labelled_headline();
    if (!answer_.pivot.empty()) row("pivot", answer_.pivot);
    if (answer_.has_job) job();
    rates();
    for (const plan::PlannedRun& run : answer_.runs) one_run(run);
    for (const Text& note : answer_.notes) row("note", spell_(note));
    if (!answer_.next_command.empty()) {
      out_ += "\n";
      row("next", answer_.next_command);
    }
    for (const std::string& file : written) row("written", file);
    return out_;
  }

 private:
  void row(std::string_view label, std::string_view text) { out_ += labelled(terminal_, label, 9, printable(text)); }

  std::string labelled_headline() const {
    std::string text = labelled(terminal_, "", 0, "stoker: " + printable(answer_.headline));
    text.erase(0, text.find("stoker:"));
    return text.replace(0, 7, terminal_.paint(Paint::bold, "stoker:"));
  }

  void job() {
    const plan::Job& job = answer_.job;
    std::string text = fmt::format("{} images", format_count(static_cast<std::uint64_t>(std::llround(job.images))));
    if (job.epoch_images) {
      text += fmt::format(" = {:.4g} epochs of {}", job.epochs(),
                          format_count(static_cast<std::uint64_t>(std::llround(*job.epoch_images))));
    }
    if (job.budget_days) text += fmt::format(", budget {}", days_text(*job.budget_days));
    if (answer_.needed_per_s) text += fmt::format(": {} images/s are needed", format_rate(*answer_.needed_per_s));
    row("job", text);
  }

  void rates() {
    std::vector<std::vector<std::string>> rows = {{"run and configuration", "images/s", "P10", "P90"}};
    if (answer_.has_job) {
      for (const std::string_view title :
           {std::string_view("M/day"), unit_.name, std::string_view("P10"), std::string_view("P90")})
        rows[0].emplace_back(title);
      if (answer_.job.budget_days) rows[0].emplace_back("verdict");
    }
    std::size_t left_out = 0;
    for (const plan::PlannedRun& run : answer_.runs) {
      if (run.fleet && run.input.kind == plan::PlanSource::given) continue;  // the headline says it all
      std::vector<const plan::PlannedConfiguration*> listed;
      for (const plan::PlannedConfiguration& one : run.configurations) {
        if (one.rate) listed.push_back(&one);
      }
      std::stable_sort(listed.begin(), listed.end(), [](const auto* a, const auto* b) {
        return std::pair(!a->is_chosen, -a->rate->p50) < std::pair(!b->is_chosen, -b->rate->p50);
      });
      if (listed.size() > kMostRows) {
        left_out += listed.size() - kMostRows;
        listed.resize(kMostRows);
      }
      for (const plan::PlannedConfiguration* one : listed) rows.push_back(cells(run, *one));
    }
    if (rows.size() == 1) return;
    out_ += "\n" + table(rows, "  ");
    if (left_out > 0) out_ += fmt::format("  and {} slower ones\n", left_out);
    out_ += "\n";
  }

  // Without the knobs that no row of the run changes.
  static std::string short_label(const plan::PlannedRun& run, const plan::PlannedConfiguration& one) {
    std::map<std::string, std::string> knobs;
    for (const auto& [knob, value] : one.measured.knobs) {
      for (const plan::PlannedConfiguration& other : run.configurations) {
        const auto found = other.measured.knobs.find(knob);
        if (found == other.measured.knobs.end() || found->second != value) knobs[knob] = value;
      }
    }
    return printable(plan::text(knobs.empty() ? one.measured.knobs : knobs));
  }

  // Cut where it is long, unless another row would then look the same.
  static std::string cut_label(const plan::PlannedRun& run, const plan::PlannedConfiguration& one) {
    std::string label = short_label(run, one);
    if (label.size() <= kWidestColumn) return label;
    const std::string head = label.substr(0, kWidestColumn - 3);
    const auto begins_so = std::count_if(run.configurations.begin(), run.configurations.end(), [&](const auto& other) {
      return other.rate && short_label(run, other).starts_with(head);
    });
    return begins_so > 1 ? label : head + "...";
  }

  std::vector<std::string> cells(const plan::PlannedRun& run, const plan::PlannedConfiguration& one) const {
    const std::string label = cut_label(run, one);
    std::vector<std::string> cells = {
        fmt::format("{} {}  {}", one.is_chosen ? "*" : " ", printable(run.input.name), label),
        format_rate(one.rate->p50), format_rate(one.rate->p10), format_rate(one.rate->p90)};
    if (one.duration) {
      cells.push_back(fmt::format("{:.3g}", one.duration->images_per_day.p50 / 1e6));
      for (const double value : {one.duration->p50, one.duration->p10, one.duration->p90})
        cells.push_back(cell(value, unit_));
      if (one.duration->verdict) cells.emplace_back(name(*one.duration->verdict));
    }
    return cells;
  }

  void one_run(const plan::PlannedRun& run) {
    if (answer_.runs.size() > 1) out_ += fmt::format("  {}\n", terminal_.paint(Paint::bold, printable(run.input.name)));
    if (run.picked() && run.picked()->duration) parts(*run.picked()->duration);
    if (run.device) device(*run.device);
    if (run.host) host(*run.host);
    if (run.epochs) epochs(*run.epochs, run.input);
    costs(run);
    if (run.fleet) out_ += fleet_text(*run.fleet, terminal_);
    what_ifs(run);
    options(run);
    bundles(run);
    for (const Text& note : run.notes) row("note", spell_(note));
  }

  void parts(const plan::Duration& duration) {
    std::string text;
    if (duration.epoch0)
      text += fmt::format("epoch 0 (cold) {}, then {}", days_text(*duration.epoch0), days_text(duration.training));
    if (duration.validation > 0)
      text += fmt::format("{}validation {}", text.empty() ? "" : ", ", days_text(duration.validation));
    if (duration.checkpoints > 0)
      text += fmt::format("{}checkpoints {}", text.empty() ? "" : ", ", days_text(duration.checkpoints));
    if (!text.empty()) row("of it", text);
  }

  void device(const plan::DevicePlan& device) {
    std::string text = fmt::format("{} + {} per image ({})", size(device.line.fixed_bytes),
                                   size(device.line.bytes_per_image), device.line.basis);
    if (device.parameters) {
      text += fmt::format("; {:.2f} B parameters, {:.0f} GFLOP forward per image", *device.parameters / 1e9,
                          *device.forward_flops / 1e9);
    }
    if (device.largest_batch) {
      text += fmt::format("; largest safe batch {} of {}", *device.largest_batch, size(device.limit_bytes));
    }
    row("device", text);
    if (!device.parts.empty() && device.parts_batch > 0) {
      std::string parts;
      for (const plan::MemoryPart& part : device.parts) {
        parts += fmt::format("{}{} {}", parts.empty() ? "" : ", ", part.name, size(part.at(device.parts_batch)));
      }
      row("", fmt::format("batch {:g} by parts: {}; at the peak {}", device.parts_batch, parts,
                          size(device.line.at(device.parts_batch))));
    }
    for (const plan::Compared& one : device.points) {
      if (one.point.out_of_memory) {
        row("", one.unexplained
                    ? fmt::format(
                          "batch {:g} ran out of memory, unexplained: predicted {}, the limit {} is {:.1f} times that",
                          one.point.batch, size(one.predicted_bytes), size(device.limit_bytes), *one.ratio)
                    : fmt::format("batch {:g} ran out of memory: predicted {}", one.point.batch,
                                  size(one.predicted_bytes)));
      } else if (one.ratio) {
        row("", fmt::format("batch {:g}: predicted {}, observed {} ({:+.0f} %){}", one.point.batch,
                            size(one.predicted_bytes), size(*one.point.observed_bytes), 100 * (*one.ratio - 1),
                            one.unexplained ? ", unexplained" : ""));
      }
    }
  }

  void host(const plan::HostBudget& host) {
    std::string text =
        fmt::format("{}{}", size(host.total_bytes), host.limit_bytes > 0 ? " of " + size(host.limit_bytes) : "");
    if (host.unified) text += " (host and device are one memory)";
    std::string parts;
    for (const plan::HostLine& line : host.lines) {
      parts += fmt::format("{}{} {}", parts.empty() ? "" : ", ", line.what, size(line.bytes));
    }
    if (host.lines.size() > 1) text += ": " + parts;
    if (!host.fits()) text += "; it does not fit";
    if (host.full_after_s) text += fmt::format("; full after {:.1f} h", *host.full_after_s / 3600);
    if (host.page_cache_bytes) text += fmt::format("; {} remain for the page cache", size(*host.page_cache_bytes));
    if (host.dataset_fits_cache) {
      text += *host.dataset_fits_cache ? ", which holds the data set" : ", less than the data set";
    }
    row("memory", text);
    if (host.shm_limit_bytes > 0 && host.shm_bytes > 0) {
      row("", fmt::format("/dev/shm {} of {}{}", size(host.shm_bytes), size(host.shm_limit_bytes),
                          host.shm_fits() ? "" : ": too small"));
    }
  }

  void epochs(const plan::EpochSplit& split, const plan::PlanRun& input) {
    if (split.images <= 1) return;
    row("epoch 0",
        fmt::format("{:.0f} s, later ones {:.0f} s: {:.0f} s of fetch in epoch 0 and none to speak of afterwards",
                    split.first_s, split.later_s, split.fetch_stall_s));
    if (input.stages) {
      row("",
          fmt::format(
              "later epochs make {:.0f} images/s per worker: that is preparing (decoding), not fetching; a local copy "
              "gives {:.1f}x in epoch 0 and {:.1f}x afterwards",
              split.later_per_worker, split.local_copy_first, split.local_copy_later));
    }
  }

  void what_ifs(const plan::PlannedRun& run) {
    if (run.what_ifs.empty()) return;
    const bool measured = std::any_of(run.what_ifs.begin(), run.what_ifs.end(),
                                      [](const auto& one) { return one.measured_per_s || !one.not_run.empty(); });
    std::vector<std::vector<std::string>> rows = {{"what if", "predicted/s", "gain", "limit then"}};
    if (measured) {
      for (const char* title : {"measured/s", "measured gain", "beyond interval"}) rows[0].emplace_back(title);
    }
    if (run.input.target_per_s) rows[0].emplace_back("closes the gap");
    for (const plan::VerifiedWhatIf& one : run.what_ifs) {
      std::vector<std::string> cells = {one.what.name, format_rate(one.what.predicted.per_s),
                                        fmt::format("{:.2f}x", one.what.gain),
                                        std::string(one.what.feasible ? name(one.what.predicted.limit) : "-")};
      if (measured) {
        cells.push_back(one.measured_per_s ? format_rate(*one.measured_per_s) : one.not_run.empty() ? "" : "not run");
        cells.push_back(one.noise ? "noise" : one.gain ? fmt::format("{:.2f}x", *one.gain) : "");
        cells.push_back(one.error ? fmt::format("{:.0f} %", 100 * *one.error) : "");
      }
      if (run.input.target_per_s) cells.emplace_back(one.closes ? "yes" : "no");
      rows.push_back(std::move(cells));
    }
    out_ += table(rows, "  ");
    if (run.verified_per_s)
      row("now",
          fmt::format("{}/s with the present settings, run in turn with the others", format_rate(*run.verified_per_s)));
    for (const plan::VerifiedWhatIf& one : run.what_ifs) {
      const bool is_told_below = std::any_of(run.options.begin(), run.options.end(), [&](const plan::Option& option) {
        return option.name == one.what.name && !option.worth;
      });
      if (!one.what.feasible && !is_told_below) row("", fmt::format("{}: {}", one.what.name, one.what.why));
    }
    if (run.input.target_per_s) {
      row("target", fmt::format("the accelerator takes {} to {} a second", format_rate(run.input.target_per_s->first),
                                format_rate(run.input.target_per_s->second)));
    }
    if (run.saturating_nodes) {
      row("nodes", fmt::format("the storage is full at {:.1f} such nodes", *run.saturating_nodes));
      for (const plan::ScaleOut& one : run.nodes) {
        row("", fmt::format("{:g}: {}/s, {:.0f} % of what they could take", one.nodes, format_rate(one.per_s),
                            100 * one.share));
      }
    } else if (!run.nodes.empty() && !run.fleet) {
      row("nodes", "what the storage gives is not known: a ledger of a --cold run shows it, or --disk-rate");
    }
  }

  // Small costs keep three digits, large ones two decimals.
  static std::string money(double cost) {
    return cost > 0 && cost < 1 ? fmt::format("{:.3g}", cost) : fmt::format("{:.2f}", cost);
  }

  void costs(const plan::PlannedRun& run) {
    if (run.costs.empty()) return;
    std::vector<std::vector<std::string>> rows = {{"what the store costs", "epoch 0", "later epoch"}};
    if (answer_.has_job) {
      for (const char* title : {"the run", "requests", "received"}) rows[0].emplace_back(title);
    }
    for (const plan::StoreCost& cost : run.costs) {
      std::vector<std::string> cells = {std::string(name(cost.access)), money(cost.first_epoch.cost),
                                        money(cost.later_epoch.cost)};
      if (cost.run) {
        cells.push_back(money(cost.run->cost));
        cells.push_back(format_count(static_cast<std::uint64_t>(std::llround(cost.run->requests))));
        cells.push_back(size(cost.run->bytes));
      }
      rows.push_back(std::move(cells));
    }
    out_ += table(rows, "  ");
    row("prices", fmt::format("{:g} per 1,000 requests, {:g} per GB, one machine{}", answer_.prices->per_1000_requests,
                              answer_.prices->per_gb,
                              answer_.prices->cache_limit_bytes
                                  ? fmt::format("; the cache holds {}", size(*answer_.prices->cache_limit_bytes))
                                  : ""));
  }

  void options(const plan::PlannedRun& run) {
    bool any = false;
    for (const plan::Option& option : run.options) {
      if (!option.worth) continue;
      if (!any)
        out_ +=
            fmt::format("  {}\n", terminal_.paint(Paint::bold, "options, to be tested one at a time in this order"));
      any = true;
      std::string text =
          fmt::format("{}: {}{:.2f}x ({:.2f} to {:.2f}), {}", option.name, option.at_most ? "at most " : "",
                      option.gain.p50, option.gain.p10, option.gain.p90, name(option.evidence));
      if (option.days) text += ", " + days_text(*option.days);
      text += fmt::format("; risk {}: {}", name(option.risk), option.reason);
      if (option.changes_training) text += fmt::format("; changes the training: {}", option.training);
      row(fmt::format("{}", option.order), text);
      if (!option.command.empty()) row("", "$ " + option.command);
    }
    for (const plan::Option& option : run.options) {
      if (option.worth) continue;
      row("not", fmt::format("{}: {}{}", option.name, option.reason,
                             option.changes_training ? "; it would change the training too" : ""));
    }
  }

  void bundles(const plan::PlannedRun& run) {
    if (run.bundles.empty()) return;
    out_ += fmt::format("  {}\n", terminal_.paint(Paint::bold, "combinations of changes that act on different limits"));
    for (const plan::Bundle& bundle : run.bundles) {
      std::string text = fmt::format("{}: {}: {:.2f}x ({:.2f} to {:.2f})", bundle.title, fmt::join(bundle.names, " + "),
                                     bundle.gain.p50, bundle.gain.p10, bundle.gain.p90);
      if (bundle.epoch_hours) text += fmt::format(", {} an epoch", days_text(*bundle.epoch_hours / 24));
      if (bundle.days) text += fmt::format(", {} in all", days_text(*bundle.days));
      if (!bundle.limit.empty() && bundle.limit != "none") text += fmt::format("; then {} is the limit", bundle.limit);
      if (bundle.host_bytes) text += fmt::format("; host memory {}", size(*bundle.host_bytes));
      if (bundle.device_bytes) text += fmt::format("; device memory {}", size(*bundle.device_bytes));
      text += fmt::format("; risk {}: {}", name(bundle.risk), bundle.reason);
      if (!bundle.training.empty()) text += fmt::format("; changes the training: {}", bundle.training);
      row(std::string(1, bundle.label), text);
      for (const std::string& command : bundle.commands) row("", "$ " + command);
    }
  }

  const plan::PlanAnswer& answer_;
  const SpellText& spell_;
  const Terminal& terminal_;
  plan::TimeUnit unit_ = plan::time_unit(1);
  std::string out_;
};

}  // namespace

std::string to_text(const plan::PlanAnswer& answer, const SpellText& spell, const Terminal& terminal,
                    const std::vector<std::string>& written) {
  return PlanText(answer, spell, terminal).write(written);
}

}  // namespace stoker::cli
