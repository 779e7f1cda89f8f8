#include "stoker/tune/target.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "stoker/base/error.h"

namespace stoker::tune {
namespace {

TEST(Target, AKnobThatNothingTakesIsRefused) {
  Grid grid;
  add_knobs(grid, "num_workers=1,2 batch_size=8");
  EXPECT_EQ(grid.size(), 2u);
  EXPECT_THROW(check_command_knobs(grid, {.command = {"train", "-j{num_workers}"}}), Error);
  check_command_knobs(grid, {.command = {"train", "-j{num_workers}", "{batch_size}"}});
}

TEST(Target, AWordInBracesThatIsNoKnobIsNamed) {
  Grid grid;
  add_knobs(grid, "num_workers=1");
  const Target target{.command = {"train", "{num_workers}", "{epochs}", "{trial}"}};
  ASSERT_EQ(notes_of_braces(target, grid).size(), 1u);
}

}  // namespace
}  // namespace stoker::tune
