//! Shown: the tables of `interop/README.md` that say which client shows which feature.
//!
//! A cell names tests, or says that the client does not offer the feature, or that no test of its
//! suite shows it. A name must be that of a test in the client's own folder, so that the tables
//! stay true when tests come and go.

use super::Source;

/// Where the tables are.
const PAGE: &str = "interop/README.md";
/// What the first column of such a table is called.
const FEATURE: &str = "Feature";
/// The cell of a client that lacks the feature.
const NOT_OFFERED: &str = "not offered";
/// The cell of a client that has the feature, and whose suite has no test of it.
const NOT_SHOWN: &str = "not shown";
/// The other columns, and how the paths of their tests begin.
const COLUMNS: &[(&str, &str)] = &[
    ("Python", "interop/python/"),
    ("Python, asyncio", "interop/python-aio/"),
    ("JavaScript", "interop/js/"),
    ("Go", "interop/go/"),
    ("Java", "interop/java/"),
    ("Java, Reactor", "interop/java/src/test/java/railbus/Async"),
    (".NET", "interop/dotnet/"),
    ("Raw protocol", "interop/proton/"),
    ("fe2o3-amqp", "interop/fe2o3/"),
    ("JMS", "interop/jms/"),
];

/// Finds empty cells and names of tests that are not there.
pub fn check(sources: &[Source], findings: &mut Vec<String>) {
    let Some(page) = sources.iter().find(|source| source.path == PAGE) else {
        return;
    };
    let mut columns: Vec<&str> = Vec::new();
    for (number, line) in page.text.lines().enumerate() {
        let cells = cells(line);
        match cells.first() {
            Some(&FEATURE) => columns = cells,
            Some(first) if !columns.is_empty() && !first.starts_with("---") => {
                let faults = faults(&columns, &cells, sources);
                findings.extend(
                    faults
                        .iter()
                        .map(|fault| format!("{PAGE}:{}: {fault}", number + 1)),
                );
            }
            Some(_) => {}
            None => columns.clear(),
        }
    }
}

/// The cells of a line of a table; none of any other line.
fn cells(line: &str) -> Vec<&str> {
    let inside = line
        .strip_prefix('|')
        .and_then(|line| line.strip_suffix('|'));
    inside.map_or_else(Vec::new, |inside| {
        inside.split('|').map(str::trim).collect()
    })
}

fn faults(columns: &[&str], cells: &[&str], sources: &[Source]) -> Vec<String> {
    if columns.len() != cells.len() {
        return vec!["the row has not as many cells as the table has columns".to_owned()];
    }
    let clients = columns.iter().zip(cells).skip(1);
    clients
        .flat_map(|(column, cell)| cell_faults(column, cell, sources))
        .collect()
}

fn cell_faults(column: &str, cell: &str, sources: &[Source]) -> Vec<String> {
    let Some((_, prefix)) = COLUMNS.iter().find(|(name, _)| *name == column) else {
        return vec![format!("the tests of {column} have no known place")];
    };
    if [NOT_OFFERED, NOT_SHOWN].contains(&cell) {
        return Vec::new();
    }
    let names: Vec<&str> = cell.split('`').skip(1).step_by(2).collect();
    if names.is_empty() {
        return vec![format!(
            "{column} has neither a test nor \"{NOT_OFFERED}\" nor \"{NOT_SHOWN}\""
        )];
    }
    let is_missing = |name: &&str| !is_test(name, prefix, sources);
    let missing = names.into_iter().filter(is_missing);
    missing
        .map(|name| format!("{column} has no test `{name}`"))
        .collect()
}

fn is_test(name: &str, prefix: &str, sources: &[Source]) -> bool {
    // As Python, Go, Java, C# and Rust define a test, and JavaScript in either kind of quotes.
    let forms = [
        format!("def {name}("),
        format!("fn {name}("),
        format!("func {name}("),
        format!("void {name}("),
        format!("Task {name}("),
        format!("\"{name}\","),
        format!("`{name}`,"),
    ];
    let mut of_client = sources
        .iter()
        .filter(|source| source.path.starts_with(prefix));
    of_client.any(|source| forms.iter().any(|form| source.text.contains(form)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(row: &str) -> Vec<String> {
        findings_beside("JavaScript", row)
    }

    /// What is found in a row of a table of Python and `other`.
    fn findings_beside(other: &str, row: &str) -> Vec<String> {
        let source = |path: &str, text: &str| Source {
            path: path.to_owned(),
            text: text.to_owned(),
        };
        let sources = [
            source(
                PAGE,
                &format!("text\n\n| Feature | Python | {other} |\n|---|---|---|\n{row}\n\nmore"),
            ),
            source("interop/python/test_a.py", "def test_one(queue):\n"),
            source(
                "interop/js/a.test.js",
                "test(\"one is one\", \"plain\", x);",
            ),
            source(
                "interop/dotnet/A.cs",
                "public async Task OneIsOne()\n{\n    // Two and OneIsTwo(\n",
            ),
        ];
        let mut findings = Vec::new();
        check(&sources, &mut findings);
        findings
    }

    #[test]
    fn names_of_tests_and_what_is_not_offered_are_fine() {
        assert!(findings("| one | `test_one` | `one is one` |").is_empty());
        assert!(findings("| one | not offered | `one is one` |").is_empty());
        assert!(findings("| one | `test_one` | not shown |").is_empty());
    }

    #[test]
    fn a_test_of_dotnet_is_a_task() {
        let found = |cell: &str| findings_beside(".NET", &format!("| one | `test_one` | {cell} |"));
        assert!(found("`OneIsOne`").is_empty());
        assert_eq!(
            found("`OneIsTwo`"),
            ["interop/README.md:5: .NET has no test `OneIsTwo`"]
        );
    }

    #[test]
    fn a_name_that_no_test_has_is_found_where_it_stands() {
        let expected = "interop/README.md:5: Python has no test `test_two`";
        assert_eq!(
            findings("| one | `test_one`, `test_two` | `one is one` |"),
            [expected]
        );
        assert_eq!(findings("| one | `test_one` | `test_one` |").len(), 1);
    }

    #[test]
    fn empty_cells_and_rows_that_are_too_short_are_found() {
        assert_eq!(findings("| one | `test_one` |  |").len(), 1);
        assert_eq!(findings("| one | `test_one` |").len(), 1);
    }
}
