//! The dialect of .NET: requests in the shapes that its client writes. The client itself runs in
//! `interop/dotnet`. (docs/spec/admin.md#4.1, #5, #7, #10)

use http::Request;

use crate::world::{Answered, World};

const SERVICE_BUS: &str = "http://schemas.microsoft.com/netservices/2010/10/servicebus/connect";
const INSTANCE: &str = "http://www.w3.org/2001/XMLSchema-instance";

/// A request with the headers that the client sends.
fn send(world: &mut World, method: &str, uri: &str, update: bool, body: &str) -> Answered {
    let mut request = Request::builder()
        .method(method)
        .uri(uri)
        .header("Host", "localhost")
        .header("Content-Type", "application/atom+xml")
        .header("Accept", "application/xml, application/atom+xml")
        .header(
            "x-ms-client-request-id",
            "5f3c1f9c-3a0c-4f0e-9c55-0d4f6d3d0f11",
        );
    if update {
        request = request.header("If-Match", "*");
    }
    let request = request.body(bytes::Bytes::from(body.to_owned())).unwrap();
    world.send(&request)
}

fn entry(description: &str) -> String {
    format!(
        "<?xml version=\"1.0\" encoding=\"utf-8\"?>\r\n<entry xmlns=\"http://www.w3.org/2005/Atom\">\r\n  \
         <content type=\"application/xml\">\r\n    {description}\r\n  </content>\r\n</entry>"
    )
}

#[test]
fn a_queue_is_made_and_changed_with_what_was_not_understood_sent_back() {
    let mut world = World::new();
    let uri = "/orders?api-version=2024-05";
    let rules = format!(
        "<AuthorizationRules><AuthorizationRule p6:type=\"SharedAccessAuthorizationRule\" xmlns:p6=\"{INSTANCE}\">\
         <ClaimType>SharedAccessKey</ClaimType><ClaimValue>None</ClaimValue>\
         <Rights><AccessRights>Manage</AccessRights><AccessRights>Listen</AccessRights><AccessRights>Send</AccessRights></Rights>\
         <KeyName>all</KeyName><PrimaryKey>p</PrimaryKey><SecondaryKey>s</SecondaryKey></AuthorizationRule></AuthorizationRules>"
    );
    let body = |rest: &str| {
        entry(&format!(
            "<QueueDescription xmlns=\"{SERVICE_BUS}\">\r\n      <LockDuration>PT45S</LockDuration>\
             <MaxSizeInMegabytes>1024</MaxSizeInMegabytes>\
             <RequiresDuplicateDetection>true</RequiresDuplicateDetection><RequiresSession>true</RequiresSession>\
             <DefaultMessageTimeToLive>PT8H</DefaultMessageTimeToLive>\
             <DeadLetteringOnMessageExpiration>true</DeadLetteringOnMessageExpiration>\
             <DuplicateDetectionHistoryTimeWindow>PT2M</DuplicateDetectionHistoryTimeWindow>\
             <MaxDeliveryCount>8</MaxDeliveryCount><EnableBatchedOperations>true</EnableBatchedOperations>\
             {rules}<Status>Active</Status><UserMetadata>mine</UserMetadata>\
             <AutoDeleteOnIdle>PT1H</AutoDeleteOnIdle><EnablePartitioning>false</EnablePartitioning>{rest}</QueueDescription>"
        ))
    };
    let made = send(&mut world, "PUT", uri, false, &body(""));
    assert_eq!(made.status, 201, "{made:?}");
    let shown = send(&mut world, "GET", &format!("{uri}&enrich=true"), false, "");
    for (name, value) in [
        ("LockDuration", "PT45S"),
        ("DefaultMessageTimeToLive", "PT8H"),
        ("DuplicateDetectionHistoryTimeWindow", "PT2M"),
        ("MaxDeliveryCount", "8"),
        ("UserMetadata", "mine"),
        ("AutoDeleteOnIdle", "PT1H"),
        ("KeyName", "all"),
        ("SecondaryKey", "s"),
    ] {
        assert_eq!(shown.value(name), Some(value));
    }
    let unknown = "<IsAnonymousAccessible>false</IsAnonymousAccessible>\
        <CreatedAt>2020-01-01T00:00:00Z</CreatedAt><EntityAvailabilityStatus>Available</EntityAvailabilityStatus>\
        <SkippedUpdate>false</SkippedUpdate>";
    let changed = send(&mut world, "PUT", uri, true, &body(unknown));
    assert_eq!(changed.status, 200, "{changed:?}");
    assert_eq!(changed.value("CreatedAt"), None);
    let again = send(&mut world, "GET", uri, false, "");
    assert_eq!(again.value("CreatedAt"), shown.value("CreatedAt"));
    assert_eq!(changed.value("SkippedUpdate"), None);
}

#[test]
fn a_subscription_comes_with_a_rule_whose_prefixes_are_odd() {
    let mut world = World::new();
    let topic = entry(&format!(
        "<TopicDescription xmlns=\"{SERVICE_BUS}\"><SupportOrdering>false</SupportOrdering></TopicDescription>"
    ));
    assert_eq!(
        send(&mut world, "PUT", "/t?api-version=2024-05", false, &topic).status,
        201
    );
    let schema = "http://www.w3.org/2001/XMLSchema";
    let value = |key: &str, kind: &str, namespace: &str, text: &str| {
        format!(
            "<KeyValueOfstringanyType><Key>{key}</Key><Value p9:type=\"l28:{kind}\" xmlns:l28=\"{namespace}\" \
             xmlns:p9=\"{INSTANCE}\">{text}</Value></KeyValueOfstringanyType>"
        )
    };
    let body = entry(&format!(
        "<SubscriptionDescription xmlns=\"{SERVICE_BUS}\"><LockDuration>PT1M</LockDuration>\
         <DeadLetteringOnFilterEvaluationExceptions>true</DeadLetteringOnFilterEvaluationExceptions>\
         <DefaultRuleDescription><Filter p4:type=\"CorrelationFilter\" xmlns:p4=\"{INSTANCE}\"><CorrelationId>c</CorrelationId>\
         <Properties>{}{}{}{}</Properties></Filter>\
         <Action p4:type=\"SqlRuleAction\" xmlns:p4=\"{INSTANCE}\"><SqlExpression>SET a='b'</SqlExpression></Action>\
         <Name>rule</Name></DefaultRuleDescription><MaxDeliveryCount>10</MaxDeliveryCount></SubscriptionDescription>",
        value("a", "string", schema, "x"),
        value("b", "long", schema, "5"),
        value("c", "duration", schema, "PT1S"),
        value(
            "d",
            "duration",
            "http://schemas.microsoft.com/2003/10/Serialization/",
            "PT2S"
        ),
    ));
    let uri = "/t/Subscriptions/s?api-version=2024-05";
    let made = send(&mut world, "PUT", uri, false, &body);
    assert_eq!(made.status, 201, "{made:?}");
    let rule = send(
        &mut world,
        "GET",
        "/t/Subscriptions/s/Rules/rule?api-version=2024-05",
        false,
        "",
    );
    for part in [
        "<Filter i:type=\"CorrelationFilter\"><CorrelationId>c</CorrelationId>",
        "<Key>b</Key><Value i:type=\"d6p1:long\"",
        "<Key>c</Key><Value i:type=\"d6p1:duration\" \
         xmlns:d6p1=\"http://schemas.microsoft.com/2003/10/Serialization/\">PT1S</Value>",
        "<Key>d</Key><Value i:type=\"d6p1:duration\" \
         xmlns:d6p1=\"http://schemas.microsoft.com/2003/10/Serialization/\">PT2S</Value>",
        "<Action i:type=\"SqlRuleAction\"><SqlExpression>SET a='b'</SqlExpression>",
    ] {
        assert!(rule.body.contains(part), "{part} in {}", rule.body);
    }
}

#[test]
fn lists_end_with_a_page_that_is_not_full() {
    let mut world = World::new();
    for n in 0..101 {
        let body = entry(&format!("<QueueDescription xmlns=\"{SERVICE_BUS}\"/>"));
        let uri = format!("/q{n}?api-version=2024-05");
        assert_eq!(send(&mut world, "PUT", &uri, false, &body).status, 201);
    }
    let mut counts = Vec::new();
    for skip in [0, 100] {
        let uri =
            format!("/$Resources/queues?api-version=2024-05&enrich=true&$skip={skip}&$top=100");
        let page = send(&mut world, "GET", &uri, false, "");
        counts.push(page.body.matches("<entry ").count());
    }
    assert_eq!(counts, [100, 1]);
}
