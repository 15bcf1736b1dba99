//! Three-valued logic: the tables of docs/spec/entities.md#17.8, case by case.

use crate::messages::{check_table, evaluate, sample};

/// A condition of each truth, one of them by each of several ways.
const TRUE: [&str; 3] = ["TRUE", "n = 5", "yes"];
const FALSE: [&str; 3] = ["FALSE", "n = 6", "no"];
const UNKNOWN: [&str; 4] = ["NULL", "missing = 5", "nothing = 5", "blob"];

fn check(operator: &str, table: [[&str; 3]; 3]) {
    let sides: [&[&str]; 3] = [&TRUE, &FALSE, &UNKNOWN];
    for (row, lefts) in sides.iter().enumerate() {
        for (column, rights) in sides.iter().enumerate() {
            for left in *lefts {
                for right in *rights {
                    let text = format!("({left}) {operator} ({right})");
                    check_table(&sample(), &format!("{} {text}", table[row][column]));
                }
            }
        }
    }
}

#[test]
fn and_is_false_if_either_is() {
    check("AND", [["T", "F", "U"], ["F", "F", "F"], ["U", "F", "U"]]);
}

#[test]
fn or_is_true_if_either_is() {
    check("OR", [["T", "T", "T"], ["T", "F", "U"], ["T", "U", "U"]]);
}

#[test]
fn not_leaves_unknown_unknown() {
    check_table(
        &sample(),
        "
        F NOT TRUE
        T NOT FALSE
        U NOT NULL
        U NOT missing = 1
        U NOT NOT missing = 1
        ",
    );
}

#[test]
fn what_is_unknown_makes_unknown() {
    check_table(
        &sample(),
        "
        U missing + 1 = 2
        U 1 + missing = 2
        U -missing = 2
        U +missing = 2
        U missing = missing
        U missing <> 1
        U 1 < missing
        U nothing = NULL
        U n = NULL
        U blob = 'x'
        U missing LIKE 'a%'
        U missing NOT LIKE 'a%'
        U s LIKE missing
        U s NOT LIKE missing
        U s LIKE 'a' ESCAPE missing
        U s NOT LIKE s ESCAPE missing
        U missing IN (1, 2)
        U missing NOT IN (1, 2)
        U n IN (1, missing)
        U n NOT IN (1, missing)
        T n IN (missing, 5)
        F n NOT IN (5, missing)
        U property(missing) = 1
        U property('missing') = 1
        ",
    );
}

#[test]
fn is_null_and_exists_are_never_unknown() {
    check_table(
        &sample(),
        "
        T missing IS NULL
        F missing IS NOT NULL
        T nothing IS NULL
        F n IS NULL
        T n IS NOT NULL
        F blob IS NULL
        T sys.ReplyTo IS NULL
        F sys.Label IS NULL
        F EXISTS(missing)
        T EXISTS(nothing)
        T EXISTS(n)
        T EXISTS(blob)
        T EXISTS(sys.Label)
        F EXISTS(sys.ReplyTo)
        T NOT EXISTS(missing)
        ",
    );
}

#[test]
fn what_is_certain_leaves_the_rest_alone() {
    check_table(
        &sample(),
        "
        F FALSE AND 1 / 0 = 1
        T TRUE OR 1 / 0 = 1
        E TRUE AND 1 / 0 = 1
        E FALSE OR 1 / 0 = 1
        E missing = 1 AND 1 / 0 = 1
        E missing = 1 OR 1 / 0 = 1
        T n IN (5, 1 / 0)
        E n IN (6, 1 / 0)
        U missing IN (1 / 0)
        E 1 / 0 = 1 AND FALSE
        ",
    );
}

#[test]
fn only_booleans_are_conditions() {
    check_table(
        &sample(),
        "
        T yes
        F no
        T NOT no
        T property('yes')
        U missing
        U nothing
        E n
        E s AND TRUE
        F FALSE AND s
        ",
    );
    assert!(evaluate("s", &sample()).is_err());
}
