//! Results: the samples of all rounds, as a table for people and as JSON for everything else.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde::Serialize;

/// What a figure is in.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
pub enum Unit {
    /// Messages a second.
    #[serde(rename = "1/s")]
    PerSecond,
    /// Processor seconds for a million messages.
    #[serde(rename = "CPU s/million")]
    SecondsPerMillion,
    /// Processors kept busy.
    #[serde(rename = "cores")]
    Cores,
    /// Seconds.
    #[serde(rename = "s")]
    Seconds,
    /// Milliseconds.
    #[serde(rename = "ms")]
    Milliseconds,
    /// Hundredths.
    #[serde(rename = "%")]
    Percent,
    /// A number of messages.
    #[serde(rename = "messages")]
    Messages,
    /// Processor seconds for a million copies of messages.
    #[serde(rename = "CPU s/million copies")]
    SecondsPerMillionCopies,
    /// Bytes.
    #[serde(rename = "B")]
    Bytes,
    /// Mebibytes.
    #[serde(rename = "MiB")]
    Mebibytes,
}

/// All samples of one figure.
#[derive(Clone, Debug, Serialize)]
struct Figure {
    row: String,
    metric: String,
    unit: Unit,
    min: f64,
    median: f64,
    max: f64,
    samples: Vec<f64>,
}

/// The machine the figures hold for.
#[derive(Clone, Debug, Serialize)]
struct Machine {
    processor: String,
    processors: usize,
    memory_mib: u64,
    kernel: String,
}

/// All figures of a run.
#[derive(Clone, Debug, Serialize)]
pub struct Results {
    machine: Machine,
    quick: bool,
    rounds: u32,
    figures: Vec<Figure>,
}

impl Results {
    /// No figures yet.
    pub fn new(quick: bool, rounds: u32) -> Self {
        Self {
            machine: Machine::read(),
            quick,
            rounds,
            figures: Vec::new(),
        }
    }

    /// Adds a sample of the figure called `row` and `metric`.
    pub fn add(&mut self, row: &str, metric: &str, unit: Unit, value: f64) {
        eprintln!("  {row}: {metric} {value:.2} {}", unit.name());
        let same =
            |figure: &Figure| figure.row == row && figure.metric == metric && figure.unit == unit;
        let at = self.figures.iter().position(same).unwrap_or_else(|| {
            self.figures.push(Figure::new(row, metric, unit));
            self.figures.len() - 1
        });
        self.figures[at].add(value);
    }

    /// The newest sample of the figure called `row` and `metric`.
    pub fn newest(&self, row: &str, metric: &str) -> Option<f64> {
        let mut figures = self.figures.iter();
        let figure = figures.find(|figure| figure.row == row && figure.metric == metric)?;
        figure.samples.last().copied()
    }

    /// Prints the table.
    pub fn print(&self) {
        let Machine {
            processor,
            processors,
            memory_mib,
            kernel,
        } = &self.machine;
        println!(
            "{processor}, {processors} processors, {memory_mib} MiB, {kernel}; rounds: {}",
            self.rounds
        );
        println!(
            "{:<40} {:<42} {:>12} {:>12} {:>12}",
            "", "", "min", "median", "max"
        );
        let mut last = "";
        for figure in &self.figures {
            let row = if figure.row == last {
                ""
            } else {
                figure.row.as_str()
            };
            let metric = format!("{} ({})", figure.metric, figure.unit.name());
            let [min, median, max] =
                [figure.min, figure.median, figure.max].map(|value| figure.unit.format(value));
            println!("{row:<40} {metric:<42} {min:>12} {median:>12} {max:>12}");
            last = &figure.row;
        }
    }

    /// Writes everything as JSON.
    pub fn write(&self, path: &Path) -> Result<()> {
        let text = serde_json::to_string_pretty(self)? + "\n";
        fs::write(path, text).with_context(|| format!("writing {}", path.display()))
    }
}

impl Figure {
    fn new(row: &str, metric: &str, unit: Unit) -> Self {
        let (row, metric) = (row.to_owned(), metric.to_owned());
        Self {
            row,
            metric,
            unit,
            min: 0.0,
            median: 0.0,
            max: 0.0,
            samples: Vec::new(),
        }
    }

    fn add(&mut self, value: f64) {
        self.samples.push(value);
        let mut sorted = self.samples.clone();
        sorted.sort_by(f64::total_cmp);
        let middle = sorted.len() / 2;
        self.min = sorted[0];
        self.max = sorted[sorted.len() - 1];
        let is_even = sorted.len().is_multiple_of(2);
        self.median = if is_even {
            f64::midpoint(sorted[middle - 1], sorted[middle])
        } else {
            sorted[middle]
        };
    }
}

impl Unit {
    fn name(self) -> &'static str {
        match self {
            Self::PerSecond => "1/s",
            Self::SecondsPerMillion => "CPU s/million",
            Self::Cores => "cores",
            Self::Seconds => "s",
            Self::Milliseconds => "ms",
            Self::Percent => "%",
            Self::Messages => "messages",
            Self::SecondsPerMillionCopies => "CPU s/million copies",
            Self::Bytes => "B",
            Self::Mebibytes => "MiB",
        }
    }

    fn format(self, value: f64) -> String {
        match self {
            Self::PerSecond | Self::Messages | Self::Bytes => format!("{value:.0}"),
            _ => format!("{value:.2}"),
        }
    }
}

impl Machine {
    fn read() -> Self {
        let line = |path: &str, key: &str| {
            let text = fs::read_to_string(path).unwrap_or_default();
            let value = text
                .lines()
                .find(|line| line.starts_with(key))
                .and_then(|line| line.split_once(':'));
            value
                .map(|(_, value)| value.trim().to_owned())
                .unwrap_or_default()
        };
        let memory = line("/proc/meminfo", "MemTotal");
        let kibibytes: u64 = memory
            .split_whitespace()
            .next()
            .and_then(|number| number.parse().ok())
            .unwrap_or(0);
        Self {
            processor: line("/proc/cpuinfo", "model name"),
            processors: std::thread::available_parallelism().map_or(1, usize::from),
            memory_mib: kibibytes / 1_024,
            kernel: fs::read_to_string("/proc/sys/kernel/osrelease")
                .unwrap_or_default()
                .trim()
                .to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn minimum_and_median_are_over_all_rounds() {
        let mut results = Results::new(true, 4);
        for value in [4.0, 1.0, 3.0, 2.0] {
            results.add("row", "metric", Unit::PerSecond, value);
        }
        assert_eq!(results.figures.len(), 1);
        let figure = &results.figures[0];
        assert_eq!((figure.min, figure.median, figure.max), (1.0, 2.5, 4.0));
    }
}
