//! Histogram: the distribution of latencies, in steps of 1, 2 and 5.

use hdrhistogram::Histogram;
use load::latency::LONGEST;

use super::results::as_f64;

/// The characters of a full bar.
const BAR: f64 = 40.0;

/// The waits up to some time that are longer than those before.
#[derive(Debug, Eq, PartialEq)]
pub struct Step {
    /// In microseconds.
    pub up_to: u64,
    pub count: u64,
}

/// The steps from the first to the last with anything in it; waits are in microseconds.
pub fn steps(waits: &Histogram<u64>) -> Vec<Step> {
    let mut steps: Vec<_> = bounds().map(|up_to| Step { up_to, count: 0 }).collect();
    for wait in waits.iter_recorded() {
        let value = wait.value_iterated_to();
        let step = steps.iter_mut().find(|step| value <= step.up_to);
        if let Some(step) = step {
            step.count += wait.count_at_value();
        }
    }
    let last = steps.iter().rposition(|step| step.count > 0);
    steps.truncate(last.map_or(0, |last| last + 1));
    steps
        .into_iter()
        .skip_while(|step| step.count == 0)
        .collect()
}

/// 10 us, 20 us, 50 us and so on; the last one takes in everything.
fn bounds() -> impl Iterator<Item = u64> {
    let decades = (1..8).map(|power| 10_u64.pow(power));
    let bounds = decades.flat_map(|decade| [1, 2, 5].map(|step| step * decade));
    bounds.filter(|bound| *bound < LONGEST).chain([u64::MAX])
}

/// Lines with bars, each as long as its part of all.
pub fn text(waits: &Histogram<u64>) -> String {
    let steps = steps(waits);
    let all = as_f64(waits.len().max(1));
    let most = steps.iter().map(|step| step.count).max().unwrap_or(1);
    let line = |step: &Step| {
        let bar = "#".repeat(length(step.count, most));
        let part = 100.0 * as_f64(step.count) / all;
        let up_to = match step.up_to {
            u64::MAX => "more".to_owned(),
            up_to => format!("<= {}", time(up_to)),
        };
        format!("  {up_to:>10}  {part:>6.2} %  {bar}")
            .trim_end()
            .to_owned()
            + "\n"
    };
    steps.iter().map(line).collect()
}

/// The length of the bar for a count; it is never empty for a count above 0.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "it is between 0 and 40"
)]
fn length(count: u64, most: u64) -> usize {
    (as_f64(count) / as_f64(most.max(1)) * BAR).ceil() as usize
}

/// A time in microseconds with as many digits as mean something.
pub fn time(micros: u64) -> String {
    let (value, unit) = match micros {
        0..1_000 => return format!("{micros} us"),
        1_000..1_000_000 => (as_f64(micros) / 1e3, "ms"),
        _ => (as_f64(micros) / 1e6, "s"),
    };
    let digits = match value {
        ..10.0 => 2,
        10.0..100.0 => 1,
        _ => 0,
    };
    let text = format!("{value:.digits$}");
    let text = match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.'),
        false => &text,
    };
    format!("{text} {unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(waits: &[u64]) -> Histogram<u64> {
        let mut histogram = load::latency::histogram();
        for wait in waits {
            histogram.saturating_record(*wait);
        }
        histogram
    }

    #[test]
    fn every_wait_is_in_one_step() {
        let waits: Vec<u64> = (0..=LONGEST).step_by(9_973).chain([LONGEST * 2]).collect();
        let histogram = of(&waits);
        let counted: u64 = steps(&histogram).iter().map(|step| step.count).sum();
        assert_eq!(counted, waits.len() as u64);
    }

    #[test]
    fn steps_without_anything_are_shown_in_between_only() {
        let step = |up_to, count| Step { up_to, count };
        assert_eq!(
            steps(&of(&[150, 151, 900])),
            [step(200, 2), step(500, 0), step(1_000, 1)]
        );
        assert_eq!(steps(&of(&[])), []);
    }

    #[test]
    fn a_bar_is_as_long_as_its_part() {
        assert_eq!(
            text(&of(&[150, 151, 400, 3_000_000])).lines().next(),
            Some("   <= 200 us   50.00 %  ########################################")
        );
        assert_eq!(length(1, 1_000_000), 1);
        assert_eq!(length(0, 1_000_000), 0);
    }

    #[test]
    fn times_have_the_digits_that_mean_something() {
        let times = [7, 999, 1_000, 1_234, 12_340, 123_400, 1_500_000].map(time);
        assert_eq!(
            times,
            [
                "7 us", "999 us", "1 ms", "1.23 ms", "12.3 ms", "123 ms", "1.5 s"
            ]
        );
    }
}
