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
    /// Events a minute.
    #[serde(rename = "1/min")]
    PerMinute,
    /// A number without a unit.
    #[serde(rename = "x")]
    Times,
    /// Bytes.
    #[serde(rename = "B")]
    Bytes,
    /// Mebibytes.
    #[serde(rename = "MiB")]
    Mebibytes,
}

/// All samples of one figure.
#[derive(Clone, Debug, Serialize)]
pub struct Figure {
    broker: String,
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
    notes: Vec<Note>,
    /// Whose figures come next.
    #[serde(skip)]
    broker: String,
}

/// Something to know about a broker.
#[derive(Clone, Debug, Serialize)]
struct Note {
    broker: String,
    text: String,
}

impl Results {
    /// No figures yet.
    pub fn new(quick: bool, rounds: u32) -> Self {
        Self {
            machine: Machine::read(),
            quick,
            rounds,
            figures: Vec::new(),
            notes: Vec::new(),
            broker: "Railbus".to_owned(),
        }
    }

    /// How often each row is measured.
    pub fn rounds(&self) -> u32 {
        self.rounds
    }

    /// The figures that are added next are those of `broker`.
    pub fn set_broker(&mut self, broker: &str) {
        broker.clone_into(&mut self.broker);
    }

    /// Adds something to know about `broker`.
    pub fn note(&mut self, broker: &str, text: &str) {
        eprintln!("  {broker}: {text}");
        self.notes.push(Note {
            broker: broker.to_owned(),
            text: text.to_owned(),
        });
    }

    /// All notes: the broker that each is about, and its text.
    fn notes(&self) -> impl Iterator<Item = (&str, &str)> {
        let notes = self.notes.iter();
        notes.map(|note| (note.broker.as_str(), note.text.as_str()))
    }

    /// Adds a sample of the figure called `row` and `metric`.
    pub fn add(&mut self, row: &str, metric: &str, unit: Unit, value: f64) {
        eprintln!("  {row}: {metric} {value:.2} {}", unit.name());
        let same = |figure: &Figure| {
            figure.broker == self.broker
                && figure.row == row
                && figure.metric == metric
                && figure.unit == unit
        };
        let at = self.figures.iter().position(same).unwrap_or_else(|| {
            self.figures
                .push(Figure::new(&self.broker, row, metric, unit));
            self.figures.len() - 1
        });
        self.figures[at].add(value);
    }

    /// The newest sample of the figure called `row` and `metric`.
    pub fn newest(&self, row: &str, metric: &str) -> Option<f64> {
        let mut figures = self.figures.iter();
        let figure = figures.find(|figure| {
            figure.broker == self.broker && figure.row == row && figure.metric == metric
        })?;
        figure.samples.last().copied()
    }

    /// The machine and the number of rounds.
    fn machine(&self) -> String {
        let Machine {
            processor,
            processors,
            memory_mib,
            kernel,
        } = &self.machine;
        format!(
            "{processor}, {processors} processors, {memory_mib} MiB, {kernel}; rounds: {}",
            self.rounds
        )
    }

    /// Prints the table.
    pub fn print(&self) {
        println!("{}", self.machine());
        println!(
            "{:<40} {:<42} {:>12} {:>12} {:>12}",
            "", "", "min", "median", "max"
        );
        let first = self.figures.first().map(|figure| &figure.broker);
        let many = self
            .figures
            .iter()
            .any(|figure| Some(&figure.broker) != first);
        let mut last = String::new();
        for figure in &self.figures {
            let row = if many {
                format!("{}: {}", figure.broker, figure.row)
            } else {
                figure.row.clone()
            };
            let shown = if row == last { "" } else { &row };
            let metric = figure.title();
            let [min, median, max] =
                [figure.min, figure.median, figure.max].map(|value| figure.unit.format(value));
            println!("{shown:<40} {metric:<42} {min:>12} {median:>12} {max:>12}");
            last = row;
        }
        for (broker, note) in self.notes() {
            println!("{broker}: {note}");
        }
    }

    /// Writes everything as JSON.
    pub fn write(&self, path: &Path) -> Result<()> {
        let text = serde_json::to_string_pretty(self)? + "\n";
        fs::write(path, text).with_context(|| format!("writing {}", path.display()))
    }
}

impl Figure {
    fn new(broker: &str, row: &str, metric: &str, unit: Unit) -> Self {
        let (row, metric) = (row.to_owned(), metric.to_owned());
        Self {
            broker: broker.to_owned(),
            row,
            metric,
            unit,
            min: 0.0,
            median: 0.0,
            max: 0.0,
            samples: Vec::new(),
        }
    }

    /// What was measured, with its unit.
    fn title(&self) -> String {
        format!("{} ({})", self.metric, self.unit.name())
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
            Self::PerMinute => "1/min",
            Self::Times => "x",
            Self::Bytes => "B",
            Self::Mebibytes => "MiB",
        }
    }

    fn format(self, value: f64) -> String {
        match self {
            Self::PerSecond | Self::PerMinute | Self::Messages | Self::Bytes => {
                format!("{value:.0}")
            }
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
