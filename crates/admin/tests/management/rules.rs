//! Rules: every kind of filter, action and value.

use expect_test::expect;

use crate::world::{World, entry, request};

const RULES: &str = "/t/Subscriptions/s/Rules";

fn world() -> World {
    let mut world = World::new();
    world.make("/t", "TopicDescription", "");
    world.make("/t/Subscriptions/s", "SubscriptionDescription", "");
    world
}

fn rule(inner: &str) -> String {
    entry("RuleDescription", inner)
}

/// What comes back of a filter and an action, after a restart.
fn come_back(filter: &str, action: &str) -> String {
    let mut world = world();
    let body = rule(&format!("{filter}{action}<Name>other</Name>"));
    let made = world.put(&format!("{RULES}/r"), &body);
    assert_eq!(made.status, 201, "{made:?}");
    world.restart();
    let shown = world.get(&format!("{RULES}/R"));
    assert_eq!(
        shown.inner("RuleDescription"),
        made.inner("RuleDescription")
    );
    shown.inner("RuleDescription").replace(
        "<CreatedAt>2026-03-01T10:00:00.123Z</CreatedAt><Name>r</Name>",
        "",
    )
}

fn unchanged(filter: &str, action: &str) {
    assert_eq!(come_back(filter, action), format!("{filter}{action}"));
}

const NO_ACTION: &str = r#"<Action i:type="EmptyRuleAction"/>"#;
const LEVEL: &str = "<CompatibilityLevel>20</CompatibilityLevel>";

#[test]
fn filters_that_select_all_or_nothing() {
    unchanged(
        &format!(
            r#"<Filter i:type="TrueFilter"><SqlExpression>1=1</SqlExpression>{LEVEL}</Filter>"#
        ),
        NO_ACTION,
    );
    unchanged(
        &format!(
            r#"<Filter i:type="FalseFilter"><SqlExpression>1=0</SqlExpression>{LEVEL}</Filter>"#
        ),
        NO_ACTION,
    );
    let default = come_back("", "");
    assert!(
        default.starts_with(r#"<Filter i:type="TrueFilter">"#),
        "{default}"
    );
    assert!(default.ends_with(NO_ACTION), "{default}");
}

#[test]
fn expressions_come_back_with_their_parameters() {
    let value = |key: &str, kind: &str, text: &str| {
        format!(
            "<KeyValueOfstringanyType><Key>{key}</Key><Value i:type=\"d6p1:{kind}\" \
             xmlns:d6p1=\"http://www.w3.org/2001/XMLSchema\">{text}</Value></KeyValueOfstringanyType>"
        )
    };
    let filter = format!(
        "<Filter i:type=\"SqlFilter\"><SqlExpression>n &lt; @limit AND color = @color</SqlExpression>\
         {LEVEL}<Parameters>{}{}</Parameters></Filter>",
        value("@limit", "int", "5"),
        value("color", "string", "blue")
    );
    let action = format!(
        "<Action i:type=\"SqlRuleAction\"><SqlExpression>SET seen = @when</SqlExpression>\
         {LEVEL}<Parameters>{}</Parameters></Action>",
        value("@when", "dateTime", "2020-07-05T11:12:13Z")
    );
    unchanged(&filter, &action);
}

#[test]
fn correlation_filters_come_back_with_every_field_and_type() {
    let value = |kind: &str, namespace: &str, text: &str| {
        format!(
            "<KeyValueOfstringanyType><Key>{kind}</Key><Value i:type=\"d6p1:{kind}\" \
             xmlns:d6p1=\"{namespace}\">{text}</Value></KeyValueOfstringanyType>"
        )
    };
    let xsd = |kind: &str, text: &str| value(kind, "http://www.w3.org/2001/XMLSchema", text);
    let ser = |kind: &str, text: &str| {
        value(
            kind,
            "http://schemas.microsoft.com/2003/10/Serialization/",
            text,
        )
    };
    let properties = [
        xsd("string", "blue"),
        xsd("int", "1"),
        xsd("long", "-2"),
        xsd("double", "2.5"),
        xsd("boolean", "true"),
        xsd("dateTime", "2020-07-05T11:12:13.125Z"),
        ser("duration", "P1DT2H"),
        ser("guid", "0f8fad5b-d9cb-469f-a165-70867728950e"),
        xsd("unsignedByte", "255"),
        xsd("decimal", "1.50"),
    ];
    unchanged(
        &format!(
            "<Filter i:type=\"CorrelationFilter\"><CorrelationId>c</CorrelationId>\
             <MessageId>m</MessageId><To>t</To><ReplyTo>r</ReplyTo><Label> a &amp; b </Label>\
             <SessionId>s</SessionId><ReplyToSessionId>rs</ReplyToSessionId>\
             <ContentType>ct</ContentType><Properties>{}</Properties></Filter>",
            properties.concat()
        ),
        NO_ACTION,
    );
}

#[test]
fn a_time_is_shown_with_the_zone_that_it_came_with_and_compared_in_utc() {
    let value = |key: &str, text: &str| {
        format!(
            "<KeyValueOfstringanyType><Key>{key}</Key><Value i:type=\"d6p1:dateTime\" \
             xmlns:d6p1=\"http://www.w3.org/2001/XMLSchema\">{text}</Value></KeyValueOfstringanyType>"
        )
    };
    let times = [
        value("with", "2020-07-05T11:12:13Z"),
        value("without", "2020-07-05T11:12:13"),
        value("digits", "2020-07-05T11:12:13.1200000"),
        value("offset", "2020-07-05T13:12:13+02:00"),
    ];
    let times = times.concat();
    unchanged(
        &format!("<Filter i:type=\"CorrelationFilter\"><Properties>{times}</Properties></Filter>"),
        NO_ACTION,
    );
    unchanged(
        &format!(
            "<Filter i:type=\"SqlFilter\"><SqlExpression>a &lt; @without</SqlExpression>{LEVEL}\
             <Parameters>{times}</Parameters></Filter>"
        ),
        &format!(
            "<Action i:type=\"SqlRuleAction\"><SqlExpression>SET a = @offset</SqlExpression>{LEVEL}\
             <Parameters>{times}</Parameters></Action>"
        ),
    );
    let mut world = world();
    let body =
        format!("<Filter i:type=\"CorrelationFilter\"><Properties>{times}</Properties></Filter>");
    world.make(&format!("{RULES}/r"), "RuleDescription", &body);
    let order = broker::Order::DescribeRule {
        subscription: "t/Subscriptions/s".to_owned(),
        name: "r".to_owned(),
    };
    let Ok(broker::Answer::Rule(rule)) = world.order(order) else {
        panic!("the rule was made");
    };
    let broker::FilterDescription::Correlation(fields) = rule.filter else {
        panic!("it correlates");
    };
    let found = |key: &str| fields.properties.iter().find(|(known, _)| known == key);
    let utc = amqp::Value::Timestamp(1_593_947_533_000);
    for key in ["with", "without", "offset"] {
        assert_eq!(found(key).map(|(_, value)| value), Some(&utc), "{key}");
    }
}

#[test]
fn a_rule_is_replaced_as_a_whole_and_keeps_when_it_was_made() {
    let mut world = world();
    let uri = format!("{RULES}/Big");
    let body = |text: &str| {
        rule(&format!(
            r#"<Filter i:type="SqlFilter"><SqlExpression>{text}</SqlExpression></Filter>"#
        ))
    };
    assert_eq!(world.put(&uri, &body("n &gt; 5")).status, 201);
    world.mono = 9_000;
    let changed = world.update(&format!("{RULES}/big"), &body("n &gt; 6"));
    assert_eq!(changed.status, 200, "{changed:?}");
    assert_eq!(changed.value("SqlExpression"), Some("n &gt; 6"));
    assert_eq!(changed.value("Name"), Some("Big"));
    assert_eq!(changed.value("CreatedAt"), Some("2026-03-01T10:00:00.123Z"));
    assert_eq!(world.delete(&uri).status, 200);
    assert_eq!(world.get(&uri).status, 404);
    assert_eq!(world.delete(&uri).status, 404);
}

#[test]
fn a_new_subscription_has_the_default_rule_or_the_given_one_alone() {
    let mut world = world();
    let listed = world.get(RULES);
    assert_eq!(listed.body.matches("<entry ").count(), 1);
    assert_eq!(listed.value("Name"), Some("$Default"));
    let given = r#"<DefaultRuleDescription><Filter i:type="SqlFilter"><SqlExpression>color = 'blue'</SqlExpression>
        </Filter><Action i:type="SqlRuleAction"><SqlExpression>SET a = 1</SqlExpression></Action>
        <Name>blue-only</Name></DefaultRuleDescription>"#;
    let made = world.make("/t/Subscriptions/blue", "SubscriptionDescription", given);
    assert_eq!(made.value("DefaultRuleDescription"), None);
    let listed = world.get("/t/Subscriptions/blue/Rules/?api-version=2017-04");
    assert_eq!(listed.body.matches("<entry ").count(), 1);
    assert_eq!(listed.value("Name"), Some("blue-only"));
    // Nothing is made when the rule is refused.
    let wrong = entry(
        "SubscriptionDescription",
        &given.replace("color =", "color = ="),
    );
    let refused = world.put("/t/Subscriptions/red", &wrong);
    assert_eq!(refused.status, 400, "{refused:?}");
    assert_eq!(world.get("/t/Subscriptions/red").status, 404);
}

#[test]
fn an_action_without_an_expression_is_none() {
    let mut world = world();
    for (index, inner) in [
        "",
        "<SqlExpression/>",
        "<SqlExpression> </SqlExpression>",
        r#"<SqlExpression i:nil="true"/>"#,
    ]
    .iter()
    .enumerate()
    {
        let action = format!(r#"<Action i:type="SqlRuleAction">{inner}</Action>"#);
        let made = world.put(&format!("{RULES}/r{index}"), &rule(&action));
        assert_eq!(made.status, 201, "{inner}: {made:?}");
        assert!(made.body.contains(NO_ACTION), "{inner}: {made:?}");
    }
}

#[test]
fn what_makes_no_sense_is_refused_with_its_reason() {
    let mut world = world();
    let mut refused = |inner: &str, reason: &str| {
        let answered = world.put(&format!("{RULES}/r"), &rule(inner));
        assert_eq!(answered.status, 400, "{inner}: {answered:?}");
        assert!(answered.body.contains("SubCode=40000."), "{answered:?}");
        assert!(answered.body.contains(reason), "{answered:?}");
    };
    refused(r#"<Filter i:type="SqlFilter"/>"#, "SqlExpression");
    refused(r#"<Filter i:type="DateFilter"/>"#, "DateFilter");
    refused(
        r#"<Filter i:type="CorrelationFilter"/>"#,
        "at least one field",
    );
    refused(r#"<Action i:type="OtherAction"/>"#, "OtherAction");
    let sql = |text: &str| {
        format!(r#"<Filter i:type="SqlFilter"><SqlExpression>{text}</SqlExpression></Filter>"#)
    };
    refused(&sql("n &gt;"), "the rule 'r'");
    refused(&sql(&"x".repeat(1_025)), "1024");
    refused(&sql("n = @missing"), "missing");
    let typed = |kind: &str, text: &str| {
        format!(
            r#"<Filter i:type="CorrelationFilter"><Properties><KeyValueOfstringanyType><Key>k</Key><Value
            i:type="{kind}">{text}</Value></KeyValueOfstringanyType></Properties></Filter>"#
        )
    };
    refused(&typed("d6p1:int", "many"), "no int");
    refused(&typed("d6p1:matrix", "1"), "matrix");
    let name = request("PUT", &format!("{RULES}/a%3Fb"), &rule(""));
    assert_eq!(world.send(&name).status, 400);
    let name = format!("{RULES}/{}", "x".repeat(51));
    assert_eq!(world.put(&name, &rule("")).status, 400);
}

#[test]
fn a_rules_entry_has_its_parents_casing_and_no_author() {
    let mut world = world();
    let listed = world.get("/T/Subscriptions/S/Rules?api-version=2021-05");
    let entry = &listed.body[listed.body.find("<entry").unwrap()..];
    let entry = &entry[..entry.find("<content").unwrap()];
    expect![[r#"<entry xml:base="https://localhost:5300/T/Subscriptions/S/Rules?api-version=2021-05"><id>https://localhost:5300/T/Subscriptions/S/Rules/$Default?api-version=2021-05</id><title type="text">$Default</title><published>2026-03-01T10:00:00.123Z</published><updated>2026-03-01T10:00:00.123Z</updated><link rel="self" href="https://localhost:5300/T/Subscriptions/S/Rules/$Default?api-version=2021-05"/>"#]]
    .assert_eq(entry);
}
