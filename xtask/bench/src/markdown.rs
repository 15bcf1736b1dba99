//! Markdown: the medians of a run as a table, one column for each broker.
//!
//! Behind each figure of another broker stands its ratio to the first broker's.

use std::fmt::Write;

use super::results::{Figure, Results};

/// All figures, then what was noted about the brokers.
pub fn table(results: &Results) -> String {
    let brokers = results.brokers();
    let mut out = format!("{}\n\n| | |", results.machine());
    for broker in &brokers {
        let _ = write!(out, " {broker} |");
    }
    let _ = writeln!(out, "\n|---|---|{}", "---:|".repeat(brokers.len()));
    let mut last = "";
    for (row, metric) in lines(results) {
        let shown = if row == last { "" } else { row };
        let _ = write!(out, "| {shown} | {metric} |");
        let first = brokers
            .first()
            .and_then(|broker| of(results, broker, row, &metric));
        for broker in &brokers {
            let figure = of(results, broker, row, &metric);
            let _ = write!(out, " {} |", cell(figure, first));
        }
        out.push('\n');
        last = row;
    }
    for (broker, note) in results.notes() {
        let _ = write!(out, "\n* {broker}: {note}");
    }
    out
}

/// Rows and metrics in the order in which they were first measured.
fn lines(results: &Results) -> Vec<(&str, String)> {
    let mut lines = Vec::new();
    for figure in results.figures() {
        let line = (figure.row(), figure.title());
        if !lines.contains(&line) {
            lines.push(line);
        }
    }
    // What belongs together stands together, even if one broker has figures that others lack.
    let place = |row: &str| lines.iter().position(|(other, _)| *other == row);
    let mut sorted = lines.clone();
    sorted.sort_by_key(|(row, _)| place(row));
    sorted
}

fn of<'a>(results: &'a Results, broker: &str, row: &str, metric: &str) -> Option<&'a Figure> {
    let mut figures = results.figures().iter();
    figures
        .find(|figure| figure.broker() == broker && figure.row() == row && figure.title() == metric)
}

fn cell(figure: Option<&Figure>, first: Option<&Figure>) -> String {
    let Some(figure) = figure else {
        return "-".to_owned();
    };
    match first {
        Some(first) if first.broker() != figure.broker() && first.median() > 0.0 => {
            let ratio = figure.median() / first.median();
            format!("{} (x {ratio:.2})", figure.shown())
        }
        _ => figure.shown(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::Unit;

    #[test]
    fn brokers_are_columns_with_their_ratio_to_the_first() {
        let mut results = Results::new(true, 1);
        results.set_broker("A");
        results.add("send", "messages", Unit::PerSecond, 100.0);
        results.add("send", "broker", Unit::Cores, 0.5);
        results.set_broker("B");
        results.add("send", "messages", Unit::PerSecond, 50.0);
        results.note("C", "not run: no such program");
        let table = table(&results);
        let (_, table) = table.split_once("\n\n").expect("the machine stands first");
        assert_eq!(
            table,
            "| | | A | B |\n\
             |---|---|---:|---:|\n\
             | send | messages (1/s) | 100 | 50 (x 0.50) |\n\
             |  | broker (cores) | 0.50 | - |\n\
             \n* C: not run: no such program"
        );
    }
}
