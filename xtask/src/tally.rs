//! Tally: how many tests a program's output speaks of.
//!
//! Every test runner prints its own summary; this reads those of cargo, pytest, Node, Go, JUnit
//! and .NET. A program that prints none counts as one test, passed or failed by its exit code.

use std::ops::AddAssign;

/// Counts of tests.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Tally {
    /// Tests that held.
    pub passed: u64,
    /// Tests that did not.
    pub failed: u64,
    /// Tests that the runner left out.
    pub skipped: u64,
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped += other.skipped;
    }
}

impl Tally {
    /// One check without counts of its own.
    pub fn one(success: bool) -> Self {
        Self {
            passed: success.into(),
            failed: (!success).into(),
            skipped: 0,
        }
    }

    /// The counts in `output` of a program that ended with `success`. The exit code has the last
    /// word: a runner that dies before its summary has failed.
    pub fn of(output: &str, success: bool) -> Self {
        let mut counts = output.lines().filter_map(|line| Self::of_line(line.trim()));
        let Some(mut tally) = counts.next() else {
            return Self::one(success);
        };
        counts.for_each(|count| tally += count);
        if !success && tally.failed == 0 {
            tally.failed = 1;
        }
        tally
    }

    fn of_line(line: &str) -> Option<Self> {
        if is_count_first(line) {
            return Some(Self::count_first(line));
        }
        // Maven says it for each class, with the time it took, and for all of them.
        if let Some((_, counts)) = line.split_once("Tests run: ")
            && !line.contains("Time elapsed")
        {
            return Some(Self::junit(counts));
        }
        Self::go(line)
            .or_else(|| Self::node(line))
            .or_else(|| Self::dotnet(line))
    }

    /// `test result: ok. 3 passed; 1 failed; 0 ignored` and `== 3 passed, 1 failed in 2.0s ==`.
    fn count_first(line: &str) -> Self {
        let words: Vec<&str> = line
            .split(|c: char| !c.is_alphanumeric())
            .filter(|word| !word.is_empty())
            .collect();
        let mut tally = Self::default();
        for pair in words.windows(2) {
            let Ok(count) = pair[0].parse::<u64>() else {
                continue;
            };
            match pair[1] {
                "passed" => tally.passed += count,
                "failed" | "error" | "errors" => tally.failed += count,
                "ignored" | "skipped" | "xfailed" | "deselected" => tally.skipped += count,
                _ => {}
            }
        }
        tally
    }

    /// `Tests run: 5, Failures: 1, Errors: 0, Skipped: 0`.
    fn junit(counts: &str) -> Self {
        let mut numbers = counts.split(',').map(|part| number(part).unwrap_or(0));
        let mut next = || numbers.next().unwrap_or(0);
        let (run, failures, errors, skipped) = (next(), next(), next(), next());
        let failed = failures + errors;
        Self {
            passed: run.saturating_sub(failed + skipped),
            failed,
            skipped,
        }
    }

    /// `--- PASS: TestSend (0.10s)`, also of subtests.
    fn go(line: &str) -> Option<Self> {
        let mark = line.strip_prefix("--- ")?;
        let mut tally = Self::default();
        match mark.split(':').next()? {
            "PASS" => tally.passed = 1,
            "FAIL" => tally.failed = 1,
            "SKIP" => tally.skipped = 1,
            _ => return None,
        }
        Some(tally)
    }

    /// `# pass 12` in TAP, `ℹ pass 12` on a terminal.
    fn node(line: &str) -> Option<Self> {
        let mut words = line
            .strip_prefix('#')
            .or_else(|| line.strip_prefix('ℹ'))?
            .split_whitespace();
        let (name, count) = (words.next()?, words.next()?.parse().ok()?);
        let mut tally = Self::default();
        match name {
            "pass" => tally.passed = count,
            "fail" | "cancelled" => tally.failed = count,
            "skipped" | "todo" => tally.skipped = count,
            _ => return None,
        }
        Some(tally)
    }

    /// `Passed: 12`, a line of its own for each kind.
    fn dotnet(line: &str) -> Option<Self> {
        let (name, count) = line.split_once(": ")?;
        let count = count.parse().ok()?;
        let mut tally = Self::default();
        match name {
            "Passed" => tally.passed = count,
            "Failed" => tally.failed = count,
            "Skipped" => tally.skipped = count,
            _ => return None,
        }
        Some(tally)
    }
}

/// Whether `line` is a summary that puts counts before words; prose that merely contains such a
/// phrase is not.
fn is_count_first(line: &str) -> bool {
    let bare = line.trim_matches(|c: char| c == '=' || c == ' ');
    line.starts_with("test result:")
        || (bare.starts_with(|c: char| c.is_ascii_digit()) && counts_something(bare))
}

fn counts_something(line: &str) -> bool {
    let second = line.split([' ', ',', ';']).nth(1).unwrap_or_default();
    matches!(
        second,
        "passed" | "failed" | "skipped" | "error" | "errors" | "xfailed" | "deselected"
    )
}

fn number(text: &str) -> Option<u64> {
    text.split(|c: char| !c.is_ascii_digit())
        .find(|word| !word.is_empty())?
        .parse()
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(output: &str, success: bool, passed: u64, failed: u64, skipped: u64) {
        assert_eq!(
            Tally::of(output, success),
            Tally {
                passed,
                failed,
                skipped
            }
        );
    }

    #[test]
    fn cargo_summaries_of_several_crates_add_up() {
        let output = "test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s\n\
                      test result: FAILED. 2 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out";
        check(output, false, 5, 1, 1);
    }

    #[test]
    fn pytest_summaries_are_read_with_and_without_rulers() {
        check("===== 17 passed, 2 skipped in 31.02s =====", true, 17, 0, 2);
        check("1 failed, 16 passed in 31.02s", false, 16, 1, 0);
    }

    #[test]
    fn node_summaries_are_read_in_both_formats() {
        check(
            "# tests 12\n# pass 11\n# fail 1\n# cancelled 0\n# skipped 0",
            false,
            11,
            1,
            0,
        );
        check("ℹ tests 3\nℹ pass 3\nℹ fail 0", true, 3, 0, 0);
    }

    #[test]
    fn go_tests_and_subtests_are_counted() {
        check(
            "--- PASS: TestSend (0.10s)\n    --- PASS: TestSend/batch (0.05s)\nok railbus 0.2s",
            true,
            2,
            0,
            0,
        );
    }

    #[test]
    fn junit_summaries_are_split_into_kinds() {
        check(
            "[ERROR] Tests run: 4, Failures: 1, Errors: 0, Skipped: 0, Time elapsed: 1.2 s -- in LockTest\n\
             [ERROR] Tests run: 9, Failures: 1, Errors: 1, Skipped: 2",
            false,
            5,
            2,
            2,
        );
    }

    #[test]
    fn dotnet_counts_each_kind_in_a_line_of_its_own() {
        check(
            "  Failed Railbus.Interop.Sending.ASentMessageArrivesWithItsBody [1 ms]\n\
             Total tests: 6\n     Passed: 3\n     Failed: 1\n    Skipped: 2\n Total time: 0.4881 Seconds",
            false,
            3,
            1,
            2,
        );
        check("Total tests: 2\n     Passed: 2", true, 2, 0, 0);
    }

    #[test]
    fn a_program_without_counts_is_one_test() {
        check("checked 7 files", true, 1, 0, 0);
        check("it broke", false, 0, 1, 0);
    }

    #[test]
    fn a_runner_without_tests_has_counted_none() {
        check(
            "test result: ok. 0 passed; 0 failed; 0 ignored",
            true,
            0,
            0,
            0,
        );
    }

    #[test]
    fn a_runner_that_dies_after_passing_tests_has_failed() {
        check(
            "test result: ok. 3 passed; 0 failed; 0 ignored",
            false,
            3,
            1,
            0,
        );
    }
}
