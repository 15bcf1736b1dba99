//! Tables: rows of texts in columns, for people.

/// Rows under a head, each column as wide as its widest text; the last one is not filled up.
pub fn table<const COLUMNS: usize>(head: [&str; COLUMNS], rows: Vec<[String; COLUMNS]>) -> String {
    let head = head.map(str::to_owned);
    let rows: Vec<_> = std::iter::once(head).chain(rows).collect();
    let widths: [usize; COLUMNS] = std::array::from_fn(|column| {
        let widths = rows.iter().map(|row| row[column].chars().count());
        widths.max().unwrap_or_default()
    });
    let line = |row: &[String; COLUMNS]| {
        let cells = row.iter().zip(widths);
        let line: String = cells
            .map(|(cell, width)| format!("{cell:width$}  "))
            .collect();
        line.trim_end().to_owned() + "\n"
    };
    rows.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_they_have_to_be() {
        let row = |name: &str, count: &str| [name.to_owned(), count.to_owned()];
        let rows = vec![row("orders", "5"), row("a", "1000")];
        assert_eq!(
            table(["name", "active"], rows),
            "name    active\norders  5\na       1000\n"
        );
        assert_eq!(table(["name", "active"], Vec::new()), "name  active\n");
    }
}
