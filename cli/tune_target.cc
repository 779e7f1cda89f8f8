#include "tune_target.h"

#include "stoker/base/text.h"

namespace stoker::cli {

tune::TargetWishes target_wishes(const Arguments& arguments) {
  tune::TargetWishes wishes{.operands = arguments.operands(),
                            .command = arguments.command(),
                            .python = arguments.text("--python"),
                            .template_file = arguments.text("--template"),
                            .config_file = arguments.text("--config"),
                            .with = arguments.all("--with")};
  if (wishes.command.empty()) (void)arguments.operand();  // throws if there is none
  for (const std::string_view name : tune::passed_options()) {
    const std::string flag = flag_of(name);
    if (arguments.has(flag)) wishes.options.emplace_back(name, arguments.text(flag));
  }
  return wishes;
}

tune::GridWishes grid_wishes(const Arguments& arguments) {
  tune::GridWishes wishes{.knobs = arguments.all("--grid"),
                          .files = arguments.all("--grid-file"),
                          .config_knobs = arguments.all("--set"),
                          .has_workload = arguments.has("--workload")};
  if (arguments.is_on("--shuffle").value_or(false)) wishes.shuffle = arguments.text("--shuffle");
  return wishes;
}

}  // namespace stoker::cli
