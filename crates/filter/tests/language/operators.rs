//! Operators: types, comparison, arithmetic, LIKE, IN, names. (docs/spec/entities.md#17.5 to #17.8)

use amqp::Value;
use filter::{Environment, Facts, Message, Parameters, SqlFilter, TypeMismatch};

use crate::messages::{Parts, check_table, described, sample, timespan};

#[test]
fn numbers_compare_across_their_types() {
    check_table(
        &sample(),
        "
        T n = 5
        T n = 5.0
        T 5E0 = n
        T n <> 6
        T n != 6
        F n != 5
        T n < 6
        T n <= 5
        F n < 5
        T n > -1
        T n >= 5
        T d = 2.5
        T d > 2
        T big > 9223372036854775807
        T big = 18446744073709551615.0
        F big = n
        T big - 1 < big
        ",
    );
}

#[test]
fn texts_compare_by_their_characters() {
    check_table(
        &sample(),
        "
        T s = 'abc'
        F s = 'ABC'
        T s > 'ab'
        T s < 'b'
        T 'Z' < 'a'
        T 'it''s' = 'it''s'
        T id = 'abababab-abab-abab-abab-abababababab'
        F id = 'ABABABAB-abab-abab-abab-abababababab'
        T id LIKE '%-abab-%'
        T s + 'd' = 'abcd'
        T '' = ''
        ",
    );
}

#[test]
fn unlike_values_are_not_equal_and_not_ordered() {
    check_table(
        &sample(),
        "
        F s = 5
        T s <> 5
        F yes = 1
        F at = 1000
        E s < 5
        E 5 >= s
        E yes < no
        E yes + 1 = 2
        E 'a' + 1 = 2
        E -s = 1
        E n LIKE '5'
        E s LIKE 5
        E s LIKE s ESCAPE 5
        F n IN ('5')
        T n NOT IN ('5', yes)
        ",
    );
}

#[test]
fn a_lenient_environment_takes_mismatches_for_unknown_and_nothing_else() {
    let bytes = sample().encode();
    let message = Message::read(&bytes, Facts::default()).unwrap();
    let environment = Environment {
        type_mismatch: TypeMismatch::Unknown,
        ..Environment::default()
    };
    let check = |text: &str| {
        let filter = SqlFilter::parse(text, &Parameters::NONE).unwrap();
        filter.evaluate(&message, environment)
    };
    for unknown in [
        "s < 5",
        "NOT s < 5",
        "s + 1 = 2",
        "-s = 1",
        "n LIKE '5'",
        "s",
        "property(5) = 1",
    ] {
        assert_eq!(check(unknown), Ok(None), "{unknown}");
    }
    assert_eq!(check("s = 5"), Ok(Some(false)));
    assert!(check("n / 0 = 1").is_err());
    assert!(check("9223372036854775807 + n = 1").is_err());
}

#[test]
fn integers_are_calculated_as_such() {
    check_table(
        &sample(),
        "
        T 7 / 2 = 3
        T -7 / 2 = -3
        T 7 % 3 = 1
        T -7 % 3 = -1
        T 7 / 2.0 = 3.5
        T 7.5 % 2 = 1.5
        T 2 + 3 * 4 = 14
        T (2 + 3) * 4 = 20
        T 10 - 4 - 3 = 3
        T 100 / 10 / 5 = 2
        T - 2 * - 3 = 6
        T - - 2 = 2
        T + 2 = 2
        T 1 - -1 = 2
        T -9223372036854775808 < 0
        E -9223372036854775808 - 1 = 0
        E - -9223372036854775808 = 0
        E 9223372036854775807 + 1 = 0
        E 9223372036854775807 * 2 = 0
        E -9223372036854775808 / -1 = 0
        E -9223372036854775808 % -1 = 0
        E n / 0 = 0
        E n % 0 = 0
        T n / 0.0 > 9E300
        F 0.0 / 0.0 = 0.0 / 0.0
        T 0.0 / 0.0 <> 0.0 / 0.0
        F 0.0 / 0.0 < 1
        E big + 1 = 0
        T big - big = 0
        E -big = 0
        ",
    );
}

#[test]
fn operators_bind_as_in_sql() {
    check_table(
        &sample(),
        "
        T TRUE OR TRUE AND FALSE
        F (TRUE OR TRUE) AND FALSE
        F NOT TRUE OR FALSE
        T NOT FALSE AND TRUE
        T NOT n = 6
        T NOT n IN (6) AND TRUE
        T 1 + 1 = 2 AND 2 * 2 = 4
        T s not like '6' or FALSE
        T 1 = 1 and not 1 = 2
        ",
    );
}

#[test]
fn times_and_durations_calculate_with_each_other() {
    check_table(
        &sample(),
        "
        T at = at
        T at + span > at
        T at - span < at
        T at + span - at = span
        T span + span > span
        T span - span < span
        T -span < span
        T sys.TimeToLive > span
        T sys.ScheduledEnqueueTimeUtc > at
        E at + at > at
        E at > span
        E at + 1 > at
        E span * 2 > span
        F at = span
        ",
    );
    let clipped = Parts::default()
        .with("t", Value::Timestamp(i64::MAX))
        .with(
            "u",
            described(
                "com.microsoft:datetime-offset",
                Value::Long(621_355_968_000_000_000),
            ),
        )
        .with("zero", Value::Timestamp(0))
        .with("most", timespan(i64::MAX))
        .with(
            "uri",
            described("com.microsoft:uri", Value::from("http://x")),
        )
        .with(
            "other",
            described("com.example:thing", Value::from("http://x")),
        );
    check_table(
        &clipped,
        "
        T u = zero
        E t + most > zero
        T uri LIKE 'http:%'
        U other LIKE 'http:%'
        F other IS NULL
        ",
    );
}

#[test]
fn like_takes_patterns_from_anywhere() {
    let parts = sample()
        .with("pattern", Value::from("a!%c"))
        .with("percent", Value::from("a%c"))
        .with("mark", Value::from("!"));
    check_table(
        &parts,
        "
        T s LIKE 'abc'
        T s LIKE 'a%'
        T s LIKE '%c'
        T s LIKE 'a_c'
        F s LIKE 'A%'
        F s LIKE 'ab'
        T s NOT LIKE 'b%'
        T s LIKE percent
        T percent LIKE pattern ESCAPE '!'
        T percent LIKE pattern ESCAPE mark
        F s LIKE pattern ESCAPE mark
        T s LIKE 'a' + '%'
        E s LIKE s ESCAPE 'a' + 'b'
        E s LIKE s + mark ESCAPE mark
        T 'a_c' LIKE 'a#_c' ESCAPE '#'
        F 'abc' LIKE 'a#_c' ESCAPE '#'
        ",
    );
}

#[test]
fn names_are_found_in_any_case_and_their_own_first() {
    let parts = Parts::default()
        .with("Region", Value::Int(1))
        .with("region", Value::Int(2))
        .with("two words", Value::Int(3))
        .with("a]b", Value::Int(4))
        .with("say \"hi\"", Value::Int(5))
        .with("AND", Value::Int(6))
        .with("a.b", Value::Int(7))
        .with("sys", Value::Int(8))
        .with("größe", Value::Int(9))
        .labelled("label");
    check_table(
        &parts,
        r#"
        T Region = 1
        T region = 2
        T REGION = 1
        T user.region = 2
        T USER.region = 2
        T [two words] = 3
        T "two words" = 3
        T [TWO WORDS] = 3
        T user.[two words] = 3
        T [a]]b] = 4
        T "say ""hi""" = 5
        T [and] = 6
        T user.AND = 6
        T [a.b] = 7
        T property('a.b') = 7
        T p('Two ' + 'Words') = 3
        T sys = 8
        T größe = 9
        T GRÖSSE IS NULL
        T GRÖßE = 9
        T sys.Label = 'label'
        T SYS.LABEL = 'label'
        T sys.Subject = 'label'
        T sys.[label] = 'label'
        U Label = 'label'
        "#,
    );
}

#[test]
fn system_properties_are_read_from_their_sections() {
    check_table(
        &sample(),
        "
        T sys.MessageId = 'id'
        T sys.CorrelationId = '7'
        T sys.To = 'there'
        T sys.ContentType = 'text/plain'
        T sys.PartitionKey = 'key'
        U sys.ViaPartitionKey = 'key'
        U sys.SessionId = 'x'
        U sys.SequenceNumber = 1
        U sys.ForcePersistence = TRUE
        T sys.Size > 100
        ",
    );
    let bytes = sample().encode();
    let facts = Facts {
        sequence_number: Some(17),
        enqueued_time_ms: Some(1_000),
        delivery_count: Some(0),
        state: Some(0),
        dead_letter_source: Some("q"),
        ..Facts::default()
    };
    let message = Message::read(&bytes, facts).unwrap();
    for text in [
        "sys.SequenceNumber = 17",
        "sys.EnqueuedTimeUtc = at",
        "sys.DeliveryCount = 0",
        "sys.State = 0",
        "sys.DeadLetterSource = 'q'",
        "sys.ExpiresAtUtc IS NULL",
    ] {
        let filter = SqlFilter::parse(text, &Parameters::NONE).unwrap();
        assert_eq!(
            filter.evaluate(&message, Environment::default()),
            Ok(Some(true)),
            "{text}"
        );
    }
}

#[test]
fn parameters_are_typed_values_beside_the_text() {
    let values = [
        ("least".to_owned(), Value::Int(5)),
        ("@since".to_owned(), Value::Timestamp(1_000)),
        ("null".to_owned(), Value::Null),
    ];
    let parameters = Parameters::new(&values);
    let bytes = sample().encode();
    let message = Message::read(&bytes, Facts::default()).unwrap();
    for (text, expected) in [
        ("n >= @least AND at = @Since", Some(true)),
        ("n < @least", Some(false)),
        ("n = @null", None),
    ] {
        let filter = SqlFilter::parse(text, &parameters).unwrap();
        assert_eq!(
            filter.evaluate(&message, Environment::default()),
            Ok(expected),
            "{text}"
        );
    }
}

#[test]
fn new_ids_are_new_and_look_like_guids() {
    check_table(
        &sample(),
        "
        T newid() <> newid()
        T newid() LIKE '________-____-4___-____-____________'
        ",
    );
}

#[test]
fn what_a_filter_may_ask_for_is_known_beforehand() {
    let needs = |text| SqlFilter::parse(text, &Parameters::NONE).unwrap().needs();
    assert_eq!(needs("1 = 1"), filter::Needs::default());
    assert!(needs("n = 1").application_properties && !needs("n = 1").properties);
    assert!(
        needs("sys.Label = 'x'").properties && !needs("sys.Label = 'x'").application_properties
    );
    assert!(needs("sys.PartitionKey IS NULL").message_annotations);
    assert!(needs("sys.TimeToLive IS NULL").header);
    assert!(needs("EXISTS(sys.SequenceNumber)").facts);
    assert!(needs("sys.Size > 9").facts);
    for (text, arrival) in [
        ("n = 1 AND sys.SequenceNumber > 5", true),
        ("sys.EnqueuedTimeUtc IS NULL", true),
        ("sys.ExpiresAtUtc IS NULL", true),
        ("a = newid()", true),
        (
            "sys.Size > 9 AND sys.DeliveryCount = 0 AND sys.To = 'x'",
            false,
        ),
    ] {
        assert_eq!(needs(text).arrival, arrival, "{text}");
    }
    assert!(needs("property('a') = 1").application_properties);
}
