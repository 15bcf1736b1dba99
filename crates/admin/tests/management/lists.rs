//! Lists: in pages, in the order of names, with the links that clients count on.

use expect_test::expect;

use crate::world::{Answered, World};

/// The titles of a page's entries.
fn titles(feed: &Answered) -> Vec<String> {
    let entries = feed.body.split("<entry ").skip(1);
    let titles = entries.map(|entry| {
        let start = entry.find("<title type=\"text\">").unwrap() + 19;
        entry[start..start + entry[start..].find('<').unwrap()].to_owned()
    });
    titles.collect()
}

/// Where the next page is, as clients find it: the second link before the first entry.
fn next(feed: &Answered) -> Option<String> {
    let head = feed.body.split("<entry ").next().unwrap();
    let mut links = head.split("<link ").skip(1);
    assert!(links.next().unwrap().starts_with("rel=\"self\""));
    let next = links.next()?;
    assert_eq!(links.next(), None);
    let href = next
        .strip_prefix("rel=\"next\" href=\"https://localhost:5300")
        .unwrap();
    Some(href[..href.find('"').unwrap()].replace("&amp;", "&"))
}

#[test]
fn a_page_looks_as_clients_expect() {
    let mut world = World::new();
    for name in ["b", "A", "c"] {
        world.make(&format!("/{name}"), "QueueDescription", "");
    }
    world.make("/t", "TopicDescription", "");
    let listed = world.get("/$Resources/queues?api-version=2021-05&$skip=0&$top=2");
    assert_eq!(listed.kind, "application/atom+xml;type=feed;charset=utf-8");
    let head = listed.body.split("<content").next().unwrap();
    expect![[r#"
        <feed xmlns="http://www.w3.org/2005/Atom">
        <title type="text">Queues</title>
        <id>https://localhost:5300/$Resources/queues?api-version=2021-05&amp;$skip=0&amp;$top=2</id>
        <updated>2026-03-01T10:00:00.123Z</updated>
        <link rel="self" href="https://localhost:5300/$Resources/queues?api-version=2021-05&amp;$skip=0&amp;$top=2"/>
        <link rel="next" href="https://localhost:5300/$Resources/queues?%24skip=2&amp;%24top=2&amp;api-version=2021-05"/>
        <entry xml:base="https://localhost:5300/$Resources/queues?api-version=2021-05&amp;$skip=0&amp;$top=2">
        <id>https://localhost:5300/A?api-version=2021-05</id>
        <title type="text">A</title>
        <published>2026-03-01T10:00:00.123Z</published>
        <updated>2026-03-01T10:00:00.123Z</updated>
        <author>
        <name>railbus</name>
        </author>
        <link rel="self" href="https://localhost:5300/A?api-version=2021-05"/>"#]]
    .assert_eq(&head.replace("><", ">\n<"));
    assert_eq!(titles(&listed), ["A", "b"]);
    assert!(
        listed.body.contains("<CountDetails"),
        "runtime properties come with lists"
    );
}

#[test]
fn a_slash_at_the_end_of_an_address_is_kept_in_it_and_not_in_those_below() {
    let mut world = World::new();
    world.make("/t", "TopicDescription", "");
    world.make("/t/Subscriptions/a", "SubscriptionDescription", "");
    world.make("/t/Subscriptions/b", "SubscriptionDescription", "");
    for (list, names) in [
        ("/T/subscriptions/", ["a", "b"]),
        ("/t/Subscriptions/a/Rules/", ["$Default", "r"]),
        ("/$Resources/Topics/", ["t", "u"]),
    ] {
        if list.contains("Rules") {
            world.make("/t/Subscriptions/a/Rules/r", "RuleDescription", "");
        } else if list.contains("Topics") {
            world.make("/u", "TopicDescription", "");
        }
        let listed = world.get(&format!("{list}?$top=1"));
        let address = format!("https://localhost:5300{list}");
        let id = format!("<id>{address}?$top=1</id>");
        assert!(listed.body.contains(&id), "{listed:?}");
        let link = format!(r#"<link rel="self" href="{address}?$top=1"/>"#);
        assert!(listed.body.contains(&link), "{listed:?}");
        let parent = match list {
            "/$Resources/Topics/" => "https://localhost:5300/",
            _ => &*address,
        };
        let entry = format!("<id>{parent}{}</id>", names[0]);
        assert!(listed.body.contains(&entry), "{entry} in {listed:?}");
        let next = next(&listed).unwrap();
        assert!(next.starts_with(&format!("{list}?%24skip=1")), "{next}");
        assert_eq!(titles(&world.get(&next)), [names[1]]);
    }
    let shown = world.get("/t/?api-version=2021-05");
    let id = "<id>https://localhost:5300/t/?api-version=2021-05</id>";
    assert!(shown.body.contains(id), "{shown:?}");
}

#[test]
fn all_names_come_once_however_large_the_pages_are() {
    let mut world = World::new();
    let mut names: Vec<_> = (0..250).map(|n| format!("queue-{n:03}")).collect();
    for name in names.iter().rev() {
        world.make(&format!("/{name}"), "QueueDescription", "");
    }
    names.sort();
    for (first, pages) in [
        ("/$Resources/Queues?api-version=2017-04", 3),
        ("/$Resources/Queues?$top=30", 9),
        ("/$Resources/Queues?&%24top=50&", 5),
    ] {
        let (mut found, mut count, mut at) = (Vec::new(), 0, Some(first.to_owned()));
        while let Some(uri) = at {
            let page = world.get(&uri);
            found.extend(titles(&page));
            at = next(&page);
            count += 1;
        }
        assert_eq!(found, names);
        assert_eq!(count, pages, "{first}");
    }
}

#[test]
fn a_list_may_be_empty_or_of_nothing() {
    let mut world = World::new();
    let empty = world.get("/$Resources/topics");
    assert_eq!(
        (empty.status, titles(&empty).len(), next(&empty)),
        (200, 0, None)
    );
    assert!(!empty.is_missing());
    assert!(empty.body.contains("<title type=\"text\">Topics</title>"));
    assert!(world.get("/t/Subscriptions").is_missing());
    world.make("/t", "TopicDescription", "");
    let empty = world.get("/t/Subscriptions/");
    assert!(
        empty
            .body
            .contains("<title type=\"text\">Subscriptions</title>")
    );
    assert!(world.get("/t/Subscriptions/s/Rules").is_missing());
    assert_eq!(next(&world.get("/$Resources/topics?$top=0")), None);
}

#[test]
fn pages_of_subscriptions_and_rules() {
    let mut world = World::new();
    world.make("/a/t", "TopicDescription", "");
    world.make("/a/t2", "TopicDescription", "");
    world.make("/a/t2/Subscriptions/other", "SubscriptionDescription", "");
    for name in ["x", "B", "a"] {
        world.make(
            &format!("/a/t/Subscriptions/{name}"),
            "SubscriptionDescription",
            "",
        );
    }
    let listed = world.get("/a/t/Subscriptions?$top=2");
    assert_eq!(titles(&listed), ["a", "B"]);
    assert!(
        listed
            .body
            .contains("<id>https://localhost:5300/a/t/Subscriptions/a</id>")
    );
    assert_eq!(titles(&world.get(&next(&listed).unwrap())), ["x"]);
    for name in ["R2", "r1"] {
        world.make(
            &format!("/a/t/Subscriptions/x/Rules/{name}"),
            "RuleDescription",
            "",
        );
    }
    let listed = world.get("/a/t/Subscriptions/x/Rules?$skip=1&$top=1");
    assert_eq!(titles(&listed), ["r1"]);
    assert_eq!(titles(&world.get(&next(&listed).unwrap())), ["R2"]);
}
