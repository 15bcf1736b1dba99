//! Bad input: requests that no client sends are refused and change nothing.

use proptest::prelude::*;

use crate::world::{World, entry, queue, request};

fn refused(body: &str, reason: &str) {
    let mut world = World::new();
    let answered = world.put("/q", body);
    assert_eq!(answered.status, 400, "{body}");
    assert!(answered.body.contains("SubCode=40000."), "{answered:?}");
    assert!(
        answered.body.contains("resource description is invalid"),
        "{answered:?}"
    );
    assert!(answered.body.contains(reason), "{answered:?}");
    assert!(world.get("/q").is_missing());
}

#[test]
fn what_is_no_description_is_refused() {
    refused("", "no element");
    refused("{}", "begins with text");
    refused("<entry", "syntax");
    refused(&queue("").replace("</entry>", ""), "too early");
    refused("<feed/>", "no entry");
    refused("<entry/>", "no content");
    refused("<entry><content/></entry>", "not one description");
    refused(
        "<entry><content><a/><b/></content></entry>",
        "not one description",
    );
    refused(&entry("StreamDescription", ""), "StreamDescription");
    refused(&queue("<LockDuration>&bomb;</LockDuration>"), "bomb");
    let bomb = r#"<!DOCTYPE e [<!ENTITY a "aa"><!ENTITY b "&a;&a;">]>"#;
    refused(&format!("{bomb}{}", queue("")), "document type");
    let deep = "<a>".repeat(5_000) + &"</a>".repeat(5_000);
    refused(&queue(&deep), "deeper");
    refused(&queue(&"<a/>".repeat(30_000)), "more than 20000 elements");
    refused(&queue("<UserMetadata>&#x0;</UserMetadata>"), "");
    refused(&queue("<UserMetadata>\u{7}</UserMetadata>"), "character");
}

#[test]
fn odd_addresses_are_refused_or_name_nothing() {
    let mut world = World::new();
    for uri in [
        "/",
        "//",
        "///",
        "/%00",
        "/%FF%FE",
        "/..",
        "/$namespaceinfo/x",
    ] {
        assert_eq!(world.put(uri, &queue("")).status, 400, "{uri}");
    }
    let mut odd = request("GET", "/q?api-version=%FF&$skip=%00", "");
    odd.headers_mut().remove("Host");
    assert_eq!(world.send(&odd).status, 400);
}

proptest! {
    #[test]
    fn no_body_is_too_odd(pieces in prop::collection::vec(prop::sample::select(vec![
        "<entry xmlns='http://www.w3.org/2005/Atom'>", "</entry>", "<content>", "</content>",
        "<QueueDescription>", "</QueueDescription>", "<RuleDescription>", "</RuleDescription>",
        "<LockDuration>PT", "1S</LockDuration>", "<Filter i:type='SqlFilter'>", "</Filter>",
        "<a:b", " xmlns:a='http://www.w3.org/2001/XMLSchema-instance'", " a:nil='true'", "/>",
        "&amp;", "&#65;", "&#xD800;", "<![CDATA[", "]]>", "<!--", "-->", "<?x", "?>", "<!DOCTYPE",
        "<Properties>", "</Properties>", "\u{0}", "ä", "<", ">", "&",
    ]), 0..20)) {
        let mut world = World::new();
        let body = pieces.concat();
        let status = world.put("/q", &body).status;
        prop_assert!(matches!(status, 201 | 400), "{status}");
        let status = world.put("/t/Subscriptions/s/Rules/r", &body).status;
        prop_assert!(matches!(status, 400 | 404), "{status}");
    }

    #[test]
    fn no_address_is_too_odd(
        method in prop::sample::select(vec!["GET", "PUT", "DELETE", "POST", "PATCH", "HEAD"]),
        segments in prop::collection::vec(prop::sample::select(vec![
            "a", "Subscriptions", "subscriptions", "Rules", "$Default", "$Resources", "queues",
            "%2F", "%24", "", "%", "%ZZ", "$DeadLetterQueue", "messages",
        ]), 0..8),
        query in "[a-z$=&%0-9]{0,20}",
    ) {
        let mut world = World::new();
        let uri = format!("/{}?{query}", segments.join("/"));
        if let Ok(uri) = uri.parse::<http::Uri>() {
            let answered = world.send(&request(method, &uri.to_string(), &queue("")));
            prop_assert!(matches!(answered.status, 200 | 201 | 400 | 404), "{answered:?}");
        }
    }
}
