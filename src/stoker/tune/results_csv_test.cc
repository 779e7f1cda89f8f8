#include "stoker/tune/results_csv.h"

#include <cmath>

#include <gtest/gtest.h>

#include "stoker/base/error.h"
#include "stoker/base/random.h"
#include "stoker/base/spell_text.h"

namespace stoker::tune {
namespace {

using Names = std::vector<std::string>;

Names said(const std::vector<Text>& notes) {
  return spell_all(notes, &Text::in_python);
}

std::string refusal(std::string_view text, const ColumnMap& columns = {}) {
  try {
    read_results(text, "r.csv", columns);
  } catch (const Error& error) {
    return error.message();
  }
  return "";
}

std::string word(Random& random) {
  static constexpr std::string_view kLetters = "ab1 ,\"'\n\r\t#=\xc3\xa4";
  std::string text;
  for (std::uint32_t n = random.below(6); n > 0; --n) text += kLetters[random.below(kLetters.size() - 1)];
  return text;
}

std::optional<double> real(Random& random) {
  if (random.below(4) == 0) return std::nullopt;
  return random.uniform() * std::pow(10.0, static_cast<int>(random.below(24)) - 8);
}

std::optional<std::uint64_t> count(Random& random) {
  if (random.below(4) == 0) return std::nullopt;
  return std::uint64_t{random.next()} << random.below(20);
}

Row made(Random& random, std::uint64_t trial, const Names& knobs) {
  Row row{.trial = trial, .status = static_cast<Status>(random.below(13))};
  for (const std::string& knob : knobs) row.knobs[knob] = "v" + word(random);
  for (auto* figure : {&row.images_per_s, &row.ci_low, &row.ci_high, &row.step_ms, &row.data_ms, &row.h2d_ms,
                       &row.compute_ms, &row.queue_depth, &row.cpu_seconds, &row.trial_seconds}) {
    *figure = real(random);
  }
  if (row.status == Status::ok) row.images_per_s = 0.1 + 500 * random.uniform();
  for (auto* figure :
       {&row.steps, &row.warmup_steps, &row.host_peak_bytes, &row.device_allocated_bytes, &row.device_reserved_bytes}) {
    *figure = count(random);
  }
  row.bound = word(random);
  row.verdict = word(random);
  row.error = word(random);
  return row;
}

TEST(ResultsCsv, WritesTheColumnsOfTheDesignInTheirOrder) {
  const Names knobs = {"batch_size", "num_workers"};
  EXPECT_EQ(
      results_header(knobs),
      "trial,status,batch_size,num_workers,images_per_s,ci_low,ci_high,steps,warmup_steps,step_ms,data_ms,h2d_ms,"
      "compute_ms,bound,verdict,queue_depth,host_peak_bytes,device_allocated_bytes,device_reserved_bytes,cpu_seconds,"
      "error,trial_seconds\n");
  Row row{.trial = 7, .status = Status::oom_shm, .knobs = {{"batch_size", "32"}, {"num_workers", "8"}}};
  row.images_per_s = 502.84;
  row.steps = 20;
  row.error = "no \"room\", it said";
  EXPECT_EQ(results_line(row, knobs), "7,oom_shm,32,8,502.84,,,20,,,,,,,,,,,,,\"no \"\"room\"\", it said\",\n");
}

TEST(ResultsCsv, ReadsBackWhateverItWrote) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    Random random(seed, 0, 0);
    Names knobs = {"batch_size", "odd, \"name\"", "training.amp"};
    knobs.resize(1 + random.below(3));
    std::string text = results_header(knobs);
    std::vector<Row> rows;
    for (std::uint32_t i = 0; i < random.below(20); ++i) {
      rows.push_back(made(random, i + 1, knobs));
      text += results_line(rows.back(), knobs);
    }
    const Results results = read_results(text, "r.csv");
    EXPECT_EQ(results.knobs, knobs);
    EXPECT_TRUE(results.notes.empty());
    ASSERT_EQ(results.rows.size(), rows.size()) << text;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const Row &a = rows[i], &b = results.rows[i];
      EXPECT_EQ(results_line(a, knobs), results_line(b, knobs));
      EXPECT_EQ(a.knobs, b.knobs);
      EXPECT_EQ(a.status, b.status);
      EXPECT_EQ(a.error, b.error);
      EXPECT_EQ(a.images_per_s, b.images_per_s);
      EXPECT_EQ(a.cpu_seconds, b.cpu_seconds);
      EXPECT_EQ(a.host_peak_bytes, b.host_peak_bytes);
      EXPECT_EQ(a.device_reserved_bytes, b.device_reserved_bytes);
    }
  }
}

TEST(ResultsCsv, ReadsTheTablesOfOthers) {
  const Results results = read_results(
      "\xEF\xBB\xBF# made by hand\r\n"
      "num_workers,batch_size,status,flavour,throughput,error,note\r\n"
      "0,32,ok,plain,78.1,,first\r\n"
      "\r\n"
      "8,256,error,plain,,\"RuntimeError: HIP error: unspecified launch failure\n(see above)\",\r\n"
      "8,512,error,fast,nan,torch.OutOfMemoryError: HIP out of memory,\r\n"
      "# 8,1024 was not tried\r\n"
      "16,64,FAILED,fast,None,ValueError: odd,\r\n"
      "16,64,timeout,fast,,,\r\n"
      "16,64,success,fast,1e2,,last",
      "theirs.csv", {{"images_per_s", "throughput"}});
  EXPECT_EQ(results.knobs, (Names{"num_workers", "batch_size", "flavour"}));
  EXPECT_EQ(
      said(results.notes),
      (Names{"column `note` is not used, though rows of one point differ in it: map=\"note=note\" makes it a knob",
             "the status `FAILED` of 1 row is read as user_error", "the status `error` of 1 row is read as oom_device",
             "the status `error` of 1 row is read as runtime_fault", "the status `success` of 1 row is read as ok",
             "the status `timeout` of 1 row is read as hang"}));
  std::vector<Status> statuses;
  for (const Row& row : results.rows) statuses.push_back(row.status);
  EXPECT_EQ(statuses, (std::vector<Status>{Status::ok, Status::runtime_fault, Status::oom_device, Status::user_error,
                                           Status::hang, Status::ok}));
  EXPECT_EQ(results.rows[0].images_per_s, 78.1);
  EXPECT_EQ(results.rows[2].images_per_s, std::nullopt);
  EXPECT_EQ(results.rows[5].images_per_s, 100);
  EXPECT_EQ(results.rows[5].trial, 6u);
  EXPECT_EQ(text(results.rows[5].knobs), "batch_size=64 flavour=fast num_workers=16");
}

TEST(ResultsCsv, TakesARateWithoutStatusForSuccess) {
  const Results results = read_results("bs,images_per_s\n32,10\n64,\n", "r.csv", {{"batch_size", "bs"}});
  EXPECT_EQ(results.knobs, Names{"batch_size"});
  EXPECT_TRUE(results.rows[0].ok());
  EXPECT_EQ(results.rows[1].status, Status::killed_unknown);
}

TEST(ResultsCsv, NamesTheLineThatItCannotRead) {
  const std::string header = "trial,status,batch_size,images_per_s,steps,error\n";
  EXPECT_EQ(refusal(""), "cannot read `r.csv`: it is empty");
  EXPECT_EQ(refusal("\n\n# nothing\n"), "cannot read `r.csv`: it is empty");
  EXPECT_EQ(refusal("a,b\n1,2\n"), "cannot read `r.csv`, line 1: no column is called images_per_s");
  EXPECT_EQ(refusal("images_per_s\n1\n"), "cannot read `r.csv`, line 1: no column is a knob");
  EXPECT_EQ(refusal("batch_size,batch_size,images_per_s\n"),
            "cannot read `r.csv`, line 1: two columns are called `batch_size`");
  EXPECT_EQ(refusal(header + "1,ok,32,5,20,\n2,ok,64\n"),
            "cannot read `r.csv`, line 3: 3 fields, but the header has 6");
  EXPECT_EQ(refusal(header + "1,error,32,,,\"two\nlines\"\n2,ok,64,fast,20,\n"),
            "cannot read `r.csv`, line 4: images_per_s is `fast`, not a number that it can be");
  EXPECT_EQ(refusal(header + "1,ok,32,-5,20,\n"),
            "cannot read `r.csv`, line 2: images_per_s is `-5`, not a number that it can be");
  EXPECT_EQ(refusal(header + "1,ok,32,5,2.5,\n"), "cannot read `r.csv`, line 2: steps is `2.5`, not a whole number");
  EXPECT_EQ(refusal(header + "1,ok,32,,20,\n"),
            "cannot read `r.csv`, line 2: its status is ok, but images_per_s is empty");
  EXPECT_EQ(refusal(header + "1,odd,32,5,20,\n"),
            "cannot read `r.csv`, line 2: the status `odd` is not one that we know");
  EXPECT_EQ(refusal(header + "1,ok,,5,20,\n"), "cannot read `r.csv`, line 2: the knob batch_size has no value");
  EXPECT_EQ(refusal(header + "1,ok,32,5,20,\"x\n"), "cannot read `r.csv`, line 2: a quote is never closed");
  EXPECT_EQ(refusal(header, {{"images_per_s", "througput"}}),
            "cannot take images_per_s from the column `througput`: `r.csv` has none of that name");
  EXPECT_EQ(refusal(header, {{"image_per_s", "steps"}}),
            "`map=\"image_per_s=...\"`: there is no word `image_per_s` of ours");
}

TEST(ResultsCsv, MapsColumnsByWords) {
  ColumnMap columns;
  add_column(columns, "images_per_s=img/s");
  EXPECT_EQ(columns, (ColumnMap{{"images_per_s", "img/s"}}));
  EXPECT_THROW(add_column(columns, "images_per_s=other"), Error);
  for (const char* text : {"", "x", "=x", "x="}) EXPECT_THROW(add_column(columns, text), Error) << text;
  // A mapped column takes the place of one that has our word.
  const Results results = read_results("batch_size,images_per_s,img/s\n1,2,3\n", "r.csv", columns);
  EXPECT_EQ(results.rows[0].images_per_s, 3);
  EXPECT_EQ(said(results.notes), Names{"column `images_per_s` is not used"});
}

}  // namespace
}  // namespace stoker::tune
